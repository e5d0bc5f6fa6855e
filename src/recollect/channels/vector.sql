-- name: nearest
select id, -(embedding <#> %(vector)s::{type}({dimensions})) as score
from {vectors}
where scope_id = %(scope_id)s
  and (%(kinds)s::text[] is null or kind = any (%(kinds)s::text[]))
  and (%(min_trust)s::smallint = 0 or trust >= %(min_trust)s::smallint)
  and (%(before)s::uuid is null or id < %(before)s::uuid)
  and (%(at)s::timestamptz is null or id in (select true_at(%(scope_id)s, %(at)s::timestamptz)))
order by embedding <#> %(vector)s::{type}({dimensions})
limit %(limit)s

-- name: nearest_indexed
select id, -(embedding <#> %(vector)s::{type}) as score
from {vectors}
where scope_id = %(scope_id)s
order by (fold_importance(embedding, importance)::{type}({dimensions})) <#> (%(vector)s::{type} || '[0,0]'::{type})
limit %(limit)s

-- name: avoid_sorting
select set_config('enable_sort', 'off', true)

-- name: allow_sorting
select set_config('enable_sort', 'on', true)
