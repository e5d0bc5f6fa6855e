-- name: named
-- Each by its key: a join may read all items of the scope.
-- The total size of the values is limited; beyond the limit, no values.
select item.path, item.key, text, memory_id, revision, created_at, updated_at, numbers,
       case when sum(length(value::text)) over () <= %(largest)s then value end as value
from unnest(%(paths)s::text[], %(keys)s::text[]) as asked (path, key)
cross join lateral (
    select path, key, value, text, memory_id, revision, created_at, updated_at,
           case when %(vectors)s then embedding::real[] end as numbers
    from items
    where scope_id = {this_scope} and path = asked.path collate "C" and key = asked.key collate "C"
    order by path, key limit 1
) item

-- name: standing
-- In a locked scope: the time of the write, and the stored items.
select scopes.last_written_at, item.*
from scopes
left join lateral (
    select found.*
    from unnest(%(paths)s::text[], %(keys)s::text[]) as asked (path, key)
    cross join lateral (
        select path, key, memory_id, revision, created_at from items
        where scope_id = scopes.id and path = asked.path collate "C" and key = asked.key collate "C"
        order by path, key limit 1
    ) found
) item on true
where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s

-- name: range
and path >= %(first)s::text and path < %(beyond)s::text

-- name: only
and (cardinality(%(fields)s::text[]) = 0
     or meets(value, %(fields)s::text[], %(operators)s::text[], %(operands)s::jsonb[]))

-- name: shown
select path, key, text, memory_id, revision, created_at, updated_at, score,
       case when sum(length(value::text)) over () <= %(largest)s then value end as value
from found

-- name: newest
with found as (
    select path, key, value, text, memory_id, revision, created_at, updated_at,
           null as score
    from items
    where scope_id = {this_scope} {range} {only}
    order by updated_at desc, path, key
    limit %(limit)s offset %(offset)s
)
{shown} order by updated_at desc, path, key

-- name: nearest
with found as (
    select path, key, value, text, memory_id, revision, created_at, updated_at,
           -(vectors.embedding <#> %(vector)s::{type}({dimensions})) as score
    from items
    join {vectors} vectors on vectors.scope_id = items.scope_id and vectors.id = items.memory_id
    where items.scope_id = %(scope_id)s {range} {only}
    order by score desc, path, key
    limit %(limit)s offset %(offset)s
)
{shown} order by score desc, path, key

-- name: wording
-- By words, if nothing can be embedded: rare words first, without a comparable score.
with found as (
    select path, key, value, text, memory_id, revision, created_at, updated_at,
           null as score, matched.score as rank
    from match_terms(
        %(scope_id)s, %(terms)s::bigint[], %(slots)s::integer[], array['event'], 0::smallint, null, null,
        array[]::uuid[], %(memory_count)s, null
    ) as matched
    join items on items.scope_id = %(scope_id)s and items.memory_id = matched.id
    where true {range} {only}
    order by rank desc, path, key
    limit %(limit)s offset %(offset)s
)
{shown} order by rank desc, path, key

-- name: own
with found as (
    select path, key, value, text, memory_id, revision, created_at, updated_at,
           -(embedding <#> %(vector)s::vector) as score
    from items
    where scope_id = {this_scope} {range}
      and vector_dims(embedding) = %(dimensions)s {only}
    order by score desc, path, key
    limit %(limit)s offset %(offset)s
)
{shown} order by score desc, path, key

-- name: paths
select distinct case
    when %(depth)s::integer is null then path
    else array_to_string((string_to_array(left(path, -1), %(closing)s))[:%(depth)s::integer], %(closing)s)
        || %(closing)s
end collate "C" as path
from items
where scope_id = {this_scope} {range}
  and (%(under)s::text is null or path ~ %(under)s::text)
  and (%(suffix)s::text is null or path ~ %(suffix)s::text)
order by 1
limit %(limit)s offset %(offset)s

-- name: store
insert into items (scope_id, path, key, value, text, embedding, memory_id, revision, created_at, updated_at)
select %(scope_id)s, path, key, value, text, embedding, memory_id, revision, created_at, updated_at
from unnest(
    %(paths)s::text[], %(keys)s::text[], %(values)s::jsonb[], %(texts)s::text[], %(embeddings)b::vector[],
    %(memory_ids)s::uuid[], %(revisions)s::bigint[], %(beginnings)s::timestamptz[], %(updates)s::timestamptz[]
) as given (path, key, value, text, embedding, memory_id, revision, created_at, updated_at)
on conflict (scope_id, path, key) do update
set value = excluded.value, text = excluded.text, embedding = excluded.embedding, memory_id = excluded.memory_id,
    revision = excluded.revision, created_at = excluded.created_at, updated_at = excluded.updated_at

-- name: drop
select drop_items(%(scope_id)s, %(paths)s::text[], %(keys)s::text[])

-- name: outcome
select outcome from idempotency_keys
where scope_id = {this_scope}
  and key = %(idempotency_key)s

-- name: record_outcome
update idempotency_keys set outcome = %(outcome)s where scope_id = %(scope_id)s and key = %(idempotency_key)s
