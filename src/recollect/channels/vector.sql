-- name: nearest
select id, -(embedding <#> %(vector)s::{type}({dimensions})) as score
from {vectors} vectors
where scope_id = %(scope_id)s{filter}
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
