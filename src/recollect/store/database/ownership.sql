-- name: has_database
select from pg_database where datname = %(name)s

-- name: create_database
create database {name}

-- name: create_tenant
insert into tenants (name) select %(name)s where not exists (select from tenants where name = %(name)s)
on conflict (name) do nothing

-- name: find_tenant
select id from tenants where name = %(name)s

-- name: start_block
insert into tenant_blocks (block) select %(block)s where not exists (select from tenant_blocks)

-- name: first_block
select min(block) as block from tenant_blocks

-- name: set_budget
update tenants set tokens_per_day = %(tokens)s where name = %(name)s returning id

-- name: wake
-- Jobs deferred to another day are tried at once; this does no harm to other waiting jobs.
update procrastinate_jobs set scheduled_at = clock_timestamp()
where status = 'todo' and attempts > 0 and scheduled_at > clock_timestamp()
  and (args ->> 'scope_id')::bigint >> 40 = %(tenant_id)s

-- name: tenant_limits
select requests_per_second, burst, bytes_per_minute, largest_body, change_streams from tenants where name = %(name)s

-- name: limit_tenant
update tenants set requests_per_second = %(requests_per_second)s, burst = %(burst)s, bytes_per_minute = %(bytes_per_minute)s,
    largest_body = %(largest_body)s, change_streams = %(change_streams)s
where name = %(name)s

-- name: act_for
-- Row-level security binds the owner, too.
select set_config('recollect.tenant', %(tenant)s, true)

-- name: key_limits
select requests_per_second, burst, bytes_per_minute, largest_body, change_streams from api_keys
where tenant_id = current_tenant() and id = %(key_id)s

-- name: limit_key
update api_keys set requests_per_second = %(requests_per_second)s, burst = %(burst)s, bytes_per_minute = %(bytes_per_minute)s,
    largest_body = %(largest_body)s, change_streams = %(change_streams)s
where tenant_id = current_tenant() and id = %(key_id)s
