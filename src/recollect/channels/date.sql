-- name: within
-- Each kind and period is one range of the index, read from its end. A month has many days, so if there are too many
-- memories, those with most words of the cue come first.
with happened as materialized (
    select found.id, found.occurred_at, max(periods.score) as score
    from unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[], %(scores)s::double precision[])
             as periods (starts_at, ends_at, score)
    cross join unnest(%(kinds)s::text[]) as kinds (kind)
    cross join lateral (
        select memories.id, memories.occurred_at from memories
        where memories.scope_id = %(scope_id)s and memories.kind = kinds.kind and memories.withheld is null
          and memories.occurred_at >= periods.starts_at and memories.occurred_at < periods.ends_at
          and not memories.idle
          and (memories.expires_at is null or memories.expires_at > now()){filter}
        order by memories.occurred_at desc, memories.id desc
        limit %(most)s
    ) found
    group by found.id, found.occurred_at
)
select happened.id, happened.score
from happened left join lateral (
    select memory_terms.weights <#> %(words)s::sparsevec as apart from memory_terms
    where memory_terms.scope_id = %(scope_id)s and memory_terms.id between happened.id and happened.id
    order by memory_terms.id limit 1
) worded on %(words)s::sparsevec is not null
order by happened.score desc, worded.apart, happened.occurred_at desc, happened.id desc
limit %(limit)s
