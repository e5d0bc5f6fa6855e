-- name: reach
with start as materialized (
    select coalesce(array_agg(id order by weight desc, id), '{{}}') as ids,
           coalesce(array_agg(weight order by weight desc, id), '{{}}') as weights
    from find_starts(
        %(scope_id)s, %(names)s::text[], %(firsts)s::integer[], %(lasts)s::integer[], %(spelled)s::text[],
        %(space)s::integer, %(vector)s::halfvec, %(floor)s::real, %(shares)s::real[], {hits}, %(most)s::integer, %(as_of)s::timestamptz)
), step as materialized (
    select walked.* from start cross join lateral walk_facts(
        -- Only named entities are followed over several hops: around others, the nearest facts are enough.
        %(scope_id)s, start.ids, case when start.weights[1] >= %(named)s then %(hops)s else 1 end, %(beam)s, coalesce(%(as_of)s::timestamptz, 'infinity'),
        coalesce(%(at)s::timestamptz, %(as_of)s::timestamptz, clock_timestamp()), %(hidden)s::text[], null
    ) walked
    where cardinality(start.ids) > 0
)
select start.ids as starts, start.weights, step.hop, step.id, step.source, step.target,
       {allowed} as allowed
from start left join step on true
order by step.hop, step.place

-- name: allowed
step.id in (
    select memories.id from memories
    where memories.scope_id = %(scope_id)s and memories.id = any (array(select id from step)){filter}
    offset 0
)
