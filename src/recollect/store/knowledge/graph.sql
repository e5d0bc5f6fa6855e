-- name: entities
-- An entity that only a deleted conversation mentions is hidden with it.
select asked.id as asked, entities.id, entities.name, entities.type
from scopes cross join unnest(%(ids)s::uuid[]) as asked (id) cross join lateral (
    select leads_to(scopes.id, asked.id, %(as_of)s::timestamptz) as id offset 0
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
