-- name: has_database
select from pg_database where datname = %(name)s

-- name: create_database
create database {name}

-- name: create_tenant
insert into tenants (name) values (%(name)s) on conflict (name) do nothing

-- name: find_tenant
select id from tenants where name = %(name)s

-- name: tenants
select id, name from tenants order by id

-- name: lock_spaces
lock table embedding_spaces in share row exclusive mode

-- name: find_space
select id, model, dimensions, state from embedding_spaces where model = %(model)s and dimensions = %(dimensions)s

-- name: has_active_space
select from embedding_spaces where state = 'active'

-- name: create_space
select create_embedding_space(%(model)s, %(dimensions)s)

-- name: switch_space
select switch_embedding_space(%(space)s)

-- name: retired_space
select from embedding_spaces where id = %(space)s and state = 'retired'

-- name: drop_trigger
drop trigger {trigger} on memories

-- name: drop_vectors
drop table {vectors}

-- name: delete_space
delete from embedding_spaces where id = %(space)s

-- name: bind
select set_config('recollect.tenant', %(tenant)s, false)

-- name: large_scopes
select id, memory_count from scopes
where tenant_id = current_tenant() and memory_count >= %(at_least)s
  and approximate_space is distinct from %(space)s
order by memory_count desc

-- name: count_indexes
select count(*) as indexes from pg_indexes where indexname like 'vectors\_%\_of\_%'

-- name: index_scope
create index concurrently if not exists {index} on {vectors} using hnsw (embedding halfvec_ip_ops)
with (m = 16, ef_construction = 128)
where scope_id = {scope}

-- name: mark_indexed
update scopes set approximate_space = %(space)s where id = %(scope_id)s
