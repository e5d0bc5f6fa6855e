-- name: newest
select newest.id
from unnest(%(kinds)s::text[]) as kinds (kind) cross join lateral (
    select memories.id, memories.occurred_at from memories
    where memories.scope_id = %(scope_id)s and memories.kind = kinds.kind and memories.withheld is null
      and not memories.idle
      and memories.trust >= %(min_trust)s::smallint
      and (memories.expires_at is null or memories.expires_at > now())
      and (%(before)s::uuid is null or memories.id < %(before)s::uuid)
      and (%(at)s::timestamptz is null or memories.id in (select true_at(%(scope_id)s, %(at)s::timestamptz)))
    order by memories.occurred_at desc, memories.id desc
    limit %(limit)s
) newest
order by newest.occurred_at desc, newest.id desc
limit %(limit)s
