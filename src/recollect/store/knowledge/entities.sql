-- name: candidates
-- For every name: entities with exactly this name, with this alias, and with similar names.
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
            -- Only the index of names has this order.
            order by mentions.normalised, mentions.entity_id limit 10000
        ) every
    ) called
    union all
    select number, id, 'similar', alike
    from match_names(%(scope_id)s, %(names)s::text[], %(least)s::real[], %(most)s)
    where %(most)s > 0
)
select distinct on (found.number, entities.id)
       found.number - 1 as number, entities.id, entities.name, entities.type, found.way, found.alike
from found cross join lateral (
    -- The name of an absorbed entity means the one that absorbed it.
    select id, name, type from entities
    where entities.scope_id = %(scope_id)s and entities.id = (select leads_to(%(scope_id)s, found.id, null))
    order by entities.id limit 1
) entities
order by found.number, entities.id, array_position('{exact,alias,similar}', found.way)

-- name: ensure
with given as (
    select distinct on (normalised, type) id, name, normalised, type
    from unnest(%(ids)s::uuid[], %(names)s::text[], %(normalised)s::text[], %(types)s::text[])
        as given (id, name, normalised, type)
    order by normalised, type, id
), made as (
    insert into entities (scope_id, id, name, normalised, type, created_at)
    select %(scope_id)s, id, name, normalised, type, %(moment)s from given
    on conflict (scope_id, normalised, type) do nothing
    returning id, normalised, type
)
select id, normalised, type from made
union all
select leads_to(%(scope_id)s, called.id, null), called.normalised, called.type
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

-- name: read
-- An entity is visible with any of its mentions, with its own name if a mention has it. It includes the mentions of
-- absorbed entities. With a time, only entities known then are read, and merges of that time apply.
with place as (
    select id as scope_id from scopes
    where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
), merging as materialized (
    select exists (select from entity_merges where scope_id = (select scope_id from place)) as merged
), named as materialized (
    -- Once for all of them: a lookup for each entity would walk through the scope's mentions.
    select distinct entity_id as id from mentions
    where scope_id = (select scope_id from place) and %(search)s <> '' and position(%(search)s in normalised) > 0
)
select entities.id, entities.type, called.names, called.description,
       coalesce(case when entities.name = any (called.names) then entities.name end, called.names[1]) as name,
       nullif(joined.leads_to, entities.id) as merged_into
from entities
cross join lateral (
    select case when (select merged from merging) then leads_to(entities.scope_id, entities.id, %(as_of)s::timestamptz)
                else entities.id end as leads_to,
           case when (select merged from merging) then members_of(entities.scope_id, entities.id, %(as_of)s::timestamptz)
                else array[entities.id] end as members
    offset 0
) joined
cross join lateral (
    select array_agg(name order by mentioned_at desc, name) as names,
           (array_agg(description order by mentioned_at desc) filter (where description <> ''))[1] as description
    from unnest(joined.members) as member (id) cross join lateral (
        select name, description, mentioned_at from mentions
        where mentions.scope_id = (select scope_id from place) and mentions.entity_id = member.id
          and source_in_sight(mentions.scope_id, mentions.source_id)
        order by mentioned_at desc
        limit 200
    ) newest
    having count(*) > 0
) called
where entities.scope_id = (select scope_id from place)
  and (%(ids)s::uuid[] is null or entities.id = any (array(select unnest(%(ids)s::uuid[]))))
  -- An absorbed entity is shown only if it is requested by ID.
  and (%(ids)s::uuid[] is not null or joined.leads_to = entities.id)
  and (%(as_of)s::timestamptz is null or entities.created_at <= %(as_of)s::timestamptz)
  and entities.id > %(cursor)s
  and (%(type)s = '' or entities.type = %(type)s)
  and (
      %(search)s = '' or position(%(search)s in entities.normalised) > 0
      or exists (select from unnest(joined.members) as member (id) where member.id in (select id from named))
  )
order by entities.id
limit %(limit)s

-- name: near
-- The entities with the nearest vectors, including vectors of absorbed ones.
with place as (
    select id as scope_id from scopes
    where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
)
select leads_to(held.scope_id, held.id, %(as_of)s::timestamptz) as id
from entity_vectors held
where held.scope_id = (select scope_id from place) and held.space_id = %(space_id)s
group by 1
order by min(held.embedding <#> %(vector)s::halfvec), 1
limit %(limit)s

-- name: worded
-- The entities with most of the terms in a name or in a description.
with place as (
    select id as scope_id from scopes
    where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
)
select leads_to((select scope_id from place), mentions.entity_id, %(as_of)s::timestamptz) as id
from mentions cross join unnest(%(terms)s::text[]) as asked (term)
where mentions.scope_id = (select scope_id from place)
  and (position(asked.term in mentions.normalised) > 0 or position(asked.term in lower(mentions.description)) > 0)
group by 1
order by count(distinct asked.term) desc, 1
limit %(limit)s

-- name: by_facts
-- The number of current facts in recall about each entity, at either end.
with place as (
    select id as scope_id from scopes
    where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
), counted as materialized (
    select ends.id, count(*) as facts
    from (
        select subject_id as id from beliefs
        where scope_id = (select scope_id from place) and superseded_at is null and subject_id is not null
          and withheld_for is null
        union all
        select object_id from beliefs
        where scope_id = (select scope_id from place) and superseded_at is null and subject_id is not null
          and withheld_for is null and object_id <> subject_id
    ) ends
    group by ends.id
)
select counted.id, counted.facts
from counted join entities on entities.scope_id = (select scope_id from place) and entities.id = counted.id
where (%(cursor)s::uuid is null
       or (counted.facts, counted.id) < ((select facts from counted last where last.id = %(cursor)s::uuid), %(cursor)s::uuid))
  and (%(type)s = '' or entities.type = %(type)s)
  and (
      %(search)s = '' or position(%(search)s in entities.normalised) > 0
      or exists (
          select from mentions where mentions.scope_id = entities.scope_id and mentions.entity_id = entities.id
            and position(%(search)s in mentions.normalised) > 0
      )
  )
order by counted.facts desc, counted.id desc
limit %(limit)s
