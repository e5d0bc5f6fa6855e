-- name: newest
select newest.id
from unnest(%(kinds)s::text[]) as kinds (kind) cross join lateral (
    select memories.id, memories.occurred_at from memories
    where memories.scope_id = %(scope_id)s and memories.kind = kinds.kind and memories.withheld is null
      and not memories.idle
      and (memories.expires_at is null or memories.expires_at > now()){filter}
    order by memories.occurred_at desc, memories.id desc
    limit %(limit)s
) newest
order by newest.occurred_at desc, newest.id desc
limit %(limit)s

-- name: admitted
select features.id from memory_features features
where features.scope_id = %(scope_id)s
  and (features.expires_at is null or features.expires_at > now()){states}{filter}
order by features.occurred_at desc, features.id desc
limit %(limit)s

-- name: now
features.state = 'current'

-- name: then
features.state in ('current', 'past')
