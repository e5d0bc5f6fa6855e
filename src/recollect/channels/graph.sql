-- name: reach
with start as materialized (
    select find_named(
        %(scope_id)s, %(names)s::text[], %(firsts)s::integer[], %(lasts)s::integer[], %(most)s) as ids
), step as materialized (
    select walked.* from start cross join lateral walk_facts(
        %(scope_id)s, start.ids, %(hops)s, %(beam)s, coalesce(%(as_of)s::timestamptz, 'infinity'),
        coalesce(%(at)s::timestamptz, %(as_of)s::timestamptz, clock_timestamp()), %(hidden)s::text[], null
    ) walked
    where cardinality(start.ids) > 0
)
select start.ids as starts, step.hop, step.id, step.source, step.target,
       {allowed} as allowed
from start left join step on true
order by step.hop, step.place

-- name: allowed
step.id in (
    select memories.id from memories
    where memories.scope_id = %(scope_id)s and memories.id = any (array(select id from step)){filter}
    offset 0
)
