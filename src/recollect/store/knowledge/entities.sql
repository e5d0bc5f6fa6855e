-- name: candidates
-- For every name: entities of exactly this name, of this alias, and of similar names.
with given as materialized (
    select number::integer, normalised from unnest(%(names)s::text[]) with ordinality as given (normalised, number)
), found as (
    -- One index lookup for each name: as a join, all names of the scope would be read.
    select given.number, called.id, 'exact' as way, 1::real as alike
    from given cross join lateral (
        select id from entities
        where entities.scope_id = %(scope_id)s and entities.normalised = given.normalised
        order by entities.normalised, entities.type limit 20
    ) called
    union all
    select given.number, called.entity_id, 'alias', 1::real
    from given cross join lateral (
        select distinct entity_id from (
            select entity_id from mentions
            where mentions.scope_id = %(scope_id)s and mentions.normalised = given.normalised
              and not mentions.source_id = any (array(select unnest(%(without)s::uuid[])))
            -- Only the index of names gives this order.
            order by mentions.normalised, mentions.entity_id limit 10000
        ) every
    ) called
    union all
    select number, id, 'similar', alike
    from match_names(%(scope_id)s, %(names)s::text[], %(least)s::real[], %(most)s)
    where %(most)s > 0
)
select distinct on (found.number, found.id)
       found.number - 1 as number, found.id, entities.name, entities.type, found.way, found.alike
from found cross join lateral (
    select name, type from entities
    where entities.scope_id = %(scope_id)s and entities.id between found.id and found.id
    order by entities.id limit 1
) entities
order by found.number, found.id, array_position('{exact,alias,similar}', found.way)

-- name: ensure
with given as (
    select distinct on (normalised, type) id, name, normalised, type
    from unnest(%(ids)s::uuid[], %(names)s::text[], %(normalised)s::text[], %(types)s::text[])
        as given (id, name, normalised, type)
    order by normalised, type, id
), made as (
    insert into entities (scope_id, id, name, normalised, type)
    select %(scope_id)s, id, name, normalised, type from given
    on conflict (scope_id, normalised, type) do nothing
    returning id, normalised, type
)
select id, normalised, type from made
union all
select called.id, called.normalised, called.type
from given cross join lateral (
    select id, normalised, type from entities
    where entities.scope_id = %(scope_id)s and entities.normalised = given.normalised and entities.type = given.type
    order by entities.normalised, entities.type limit 1
) called

-- name: mention
insert into mentions (scope_id, source_id, entity_id, normalised, name, description, mentioned_at)
select distinct on (source_id, entity_id, normalised)
       %(scope_id)s, source_id, entity_id, normalised, name, description, mentioned_at
from unnest(%(sources)s::uuid[], %(entities)s::uuid[], %(normalised)s::text[], %(names)s::text[],
            %(descriptions)s::text[], %(moments)s::timestamptz[])
    as given (source_id, entity_id, normalised, name, description, mentioned_at)
order by source_id, entity_id, normalised, description desc
on conflict (scope_id, source_id, entity_id, normalised) do update
set description = case when excluded.description <> '' then excluded.description else mentions.description end,
    mentioned_at = greatest(mentions.mentioned_at, excluded.mentioned_at)

-- name: known
select id, name, type from entities where scope_id = %(scope_id)s and id = any (%(ids)s)

-- name: read
-- An entity is visible with any of its mentions, under its own name if that is among them.
with place as (
    select id as scope_id from scopes
    where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
)
select entities.id, entities.type, called.names, called.description,
       coalesce(case when entities.name = any (called.names) then entities.name end, called.names[1]) as name
from entities
cross join lateral (
    select array_agg(name order by mentioned_at desc, name) as names,
           (array_agg(description order by mentioned_at desc) filter (where description <> ''))[1] as description
    from (
        select name, description, mentioned_at from mentions
        where mentions.scope_id = (select scope_id from place) and mentions.entity_id = entities.id
          and source_in_sight(mentions.scope_id, mentions.source_id)
        order by mentioned_at desc
        limit 200
    ) newest
    having count(*) > 0
) called
where entities.scope_id = (select scope_id from place)
  and (%(ids)s::uuid[] is null or entities.id = any (array(select unnest(%(ids)s::uuid[]))))
  and entities.id > %(cursor)s
  and (%(type)s = '' or entities.type = %(type)s)
  and (
      %(search)s = '' or position(%(search)s in entities.normalised) > 0
      or exists (
          select from mentions where mentions.scope_id = (select scope_id from place)
            and mentions.entity_id = entities.id and position(%(search)s in mentions.normalised) > 0
      )
  )
order by entities.id
limit %(limit)s
