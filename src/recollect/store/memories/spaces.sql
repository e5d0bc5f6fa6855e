-- name: tenants
select id, name from tenants order by id

-- name: lock_spaces
lock table embedding_spaces in share row exclusive mode

-- name: find_space
select id, model, dimensions, state, precision from embedding_spaces where id = %(space)s

-- name: has_active_space
select from embedding_spaces where state = 'active'

-- name: create_space
select create_embedding_space(%(space)s, %(model)s, %(dimensions)s, %(precision)s)

-- name: switch_space
select switch_embedding_space(%(space)s)

-- name: defer_fill
select procrastinate_defer_jobs_v1(array[
    row('fill', 'fill', 0, 'fill', null, jsonb_build_object('space_id', %(space)s::int), null)
    ::procrastinate_job_to_defer_v1
])

-- name: newest_transaction
select pg_snapshot_xmax(pg_current_snapshot())::text as boundary

-- name: all_newer
select pg_snapshot_xmin(pg_current_snapshot()) >= %(boundary)s::xid8 as passed

-- name: delete_space
delete from embedding_spaces where id = %(space)s and state <> 'active' returning id

-- name: drop_vectors
drop table {vectors}

-- name: bind
select set_config('recollect.tenant', %(tenant)s, false)

-- name: large_scopes
select id, memory_count from scopes
where tenant_id = current_tenant() and memory_count >= %(at_least)s
  and approximate_space is distinct from %(space)s
order by memory_count desc

-- name: active_space
select id, model, dimensions, state, precision from embedding_spaces where state = 'active'

-- name: count_indexes
select count(*) as indexes from pg_indexes where indexname like 'vectors\_%\_of\_%'

-- name: broken_index
select indexrelid from pg_index where indexrelid = to_regclass(%(name)s) and not indisvalid

-- name: drop_index
drop index concurrently {index}

-- name: fold_scope
update scopes set folded_space = %(space)s where id = %(scope_id)s

-- name: fold_vectors
update {vectors} vectors set importance = memory_features.importance
from memory_features
where vectors.scope_id = {scope} and vectors.importance is null
  and memory_features.scope_id = {scope} and memory_features.id = vectors.id

-- name: index_scope
create index concurrently if not exists {index} on {vectors}
using hnsw ((fold_importance(embedding, importance)::{type}({width})) {operators})
with (m = 24, ef_construction = 128)
where scope_id = {scope}

-- name: index_importance
create index concurrently if not exists {index} on {vectors} (importance) where scope_id = {scope} and not idle

-- name: size_of_index
select pg_relation_size(to_regclass(%(name)s)) as bytes

-- name: compact_index
reindex index concurrently {index}

-- name: analyze
analyze {vectors}

-- name: mark_indexed
update scopes set approximate_space = %(space)s where id = %(scope_id)s
