-- name: entities
-- An entity that only a deleted conversation mentions is hidden with it.
select asked.id as asked, entities.id, entities.name, entities.type
from scopes cross join unnest(%(ids)s::uuid[]) as asked (id) cross join lateral (
    select case when %(led)s then leads_to(scopes.id, asked.id, %(as_of)s::timestamptz) else asked.id end as id
    offset 0
) led cross join lateral (
    select id, name, type from entities
    where scope_id = scopes.id and id between led.id and led.id order by id limit 1
) entities
where scopes.tenant_id = current_tenant() and scopes.agent = %(agent)s and scopes."user" = %(user)s
  and exists (
      select from unnest(members_of(scopes.id, entities.id, %(as_of)s::timestamptz)) as member (id)
      where is_mentioned(scopes.id, member.id, null)
  )

-- name: walk
with step as materialized (
    select scopes.id as scope_id, walked.*
    from scopes cross join lateral walk_facts(
        scopes.id,
        array(select distinct leads_to(scopes.id, start.id, %(as_of)s::timestamptz)
              from unnest(%(starts)s::uuid[]) as start (id)),
        %(hops)s, %(beam)s, coalesce(%(as_of)s::timestamptz, 'infinity'),
        coalesce(%(at)s::timestamptz, %(as_of)s::timestamptz, clock_timestamp()), %(hidden)s::text[], {allowed}
    ) walked
    where scopes.tenant_id = current_tenant() and scopes.agent = %(agent)s and scopes."user" = %(user)s
), walked as materialized (
    select scope_id, array_agg(id order by hop, place) as ids, array_agg(hop order by hop, place) as hops,
           array_agg(source order by hop, place) as sources, array_agg(target order by hop, place) as targets
    from step group by scope_id
)
select walked.hops[relation.place] as hop, walked.sources[relation.place] as source,
       walked.targets[relation.place] as target, relation.*
from walked cross join lateral read_relations(walked.scope_id, walked.ids) relation
order by relation.place

-- name: timeline
with place as (
    select id as scope_id from scopes
    where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
), unsynced as materialized (
    select from conversations
    where scope_id = (select scope_id from place) and not synced and state in ('deleted', 'purging') limit 1
), touching as (
    select id, coalesce(valid_at, '-infinity') as since from beliefs
    where scope_id = (select scope_id from place) and subject_id = %(entity)s
      and (%(as_of)s::timestamptz is null or created_at <= %(as_of)s::timestamptz)
      and (%(as_of)s::timestamptz is null or superseded_at is null or superseded_at > %(as_of)s::timestamptz)
      and (withheld_for is null or withheld_for <> all (%(hidden)s::text[]))
    union
    select id, coalesce(valid_at, '-infinity') from beliefs
    where scope_id = (select scope_id from place) and object_id = %(entity)s
      and (%(as_of)s::timestamptz is null or created_at <= %(as_of)s::timestamptz)
      and (%(as_of)s::timestamptz is null or superseded_at is null or superseded_at > %(as_of)s::timestamptz)
      and (withheld_for is null or withheld_for <> all (%(hidden)s::text[]))
), shown as materialized (
    select id, since from touching
    where (since, id) > (coalesce(%(after)s::timestamptz, '-infinity'), %(after_id)s)
      and (not exists (select from unsynced) or not rests_on_deleted((select scope_id from place), id))
    order by since, id
    limit %(limit)s
)
select relation.*
from place cross join lateral read_relations(
    place.scope_id, array(select id from shown order by since, id)
) relation
order by relation.place

-- name: moment
select coalesce(%(as_of)s::timestamptz, greatest(last_written_at, clock_timestamp())) as as_of,
       coalesce(%(at)s::timestamptz, %(as_of)s::timestamptz, clock_timestamp()) as at
from scopes where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s

-- name: page_facts
select relation.*
from scopes cross join lateral read_relations(
    scopes.id,
    array(select page_facts(
        scopes.id, %(cursor)s, %(as_of)s::timestamptz, %(at)s::timestamptz, %(hidden)s::text[], {allowed}, %(limit)s))
) relation
where scopes.tenant_id = current_tenant() and scopes.agent = %(agent)s and scopes."user" = %(user)s
order by relation.place
