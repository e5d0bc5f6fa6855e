-- name: able
-- Replication reads and writes past row-level security.
select rolsuper or rolreplication and rolbypassrls
       and has_parameter_privilege('session_replication_role', 'SET') as able,
       current_setting('wal_level') = 'logical' as logical
from pg_roles where rolname = current_user

-- name: versions
select (select array_agg(name order by name) from schema_migrations) as steps,
       (select array_agg((id, model, dimensions, state)::text order by id) from embedding_spaces) as spaces,
       exists (select from embedding_spaces where state = 'filling')
           or exists (select from procrastinate_jobs where task_name = 'fill' and status in ('todo', 'doing')) as being_filled

-- name: forget_served
delete from placements where tenant_id = %(tenant_id)s and state <> 'closed'

-- name: align
-- What the catalog says of this shard; what is closed stays as it is.
insert into placements (tenant_id, first_bucket, last_bucket, generation)
select %(tenant_id)s, first_bucket, last_bucket, generation
from unnest(%(starts)s::smallint[], %(ends)s::smallint[], %(generations)s::integer[])
    as given (first_bucket, last_bucket, generation)

-- name: tables
-- What has rows of scopes, of buckets or of a tenant, with its columns. What mirrors hold of a scope is the server's own;
-- what was done for a job goes with the job.
select tables.table_name::text as name, own.columns, 'scope_id' = any (own.columns) as of_scopes
from information_schema.tables
cross join lateral (
    select array_agg(column_name::text order by ordinal_position) as columns from information_schema.columns own
    where own.table_schema = 'public' and own.table_name = tables.table_name
) own
where table_schema = 'public' and table_type = 'BASE TABLE'
  and table_name not in ('awaited_mirrors', 'job_effects', 'mirror_positions', 'unmirrored')
  and ('scope_id' = any (own.columns)
       or table_name in ('scopes', 'scope_counters', 'agents', 'api_keys', 'erasure_receipts', 'tenant_keys'))
order by table_name

-- name: read_tenant
select id, name, tokens_per_day, requests_per_second, burst, bytes_per_minute, largest_body, change_streams from tenants
where id = %(tenant_id)s

-- name: copy_tenant
insert into tenants (id, name, tokens_per_day, requests_per_second, burst, bytes_per_minute, largest_body, change_streams)
overriding system value
values (%(id)s, %(name)s, %(tokens_per_day)s, %(requests_per_second)s, %(burst)s, %(bytes_per_minute)s,
        %(largest_body)s, %(change_streams)s)
on conflict (id) do update set tokens_per_day = excluded.tokens_per_day,
    requests_per_second = excluded.requests_per_second, burst = excluded.burst,
    bytes_per_minute = excluded.bytes_per_minute, largest_body = excluded.largest_body,
    change_streams = excluded.change_streams

-- name: has_other_part
select exists (select from placements where tenant_id = %(tenant_id)s and state <> 'closed') as present

-- name: expect
-- Still to come: nobody is served by it yet.
insert into placements (tenant_id, first_bucket, last_bucket, generation, state, closed_at)
values (%(tenant_id)s, %(first_bucket)s, %(last_bucket)s, %(generation)s, 'closed', 'infinity')
on conflict (tenant_id, first_bucket) do nothing

-- name: left_behind
-- Closed here, in part or whole, from a move before.
select first_bucket, last_bucket from placements
where tenant_id = %(tenant_id)s and state = 'closed'
  and first_bucket <= %(last_bucket)s and last_bucket >= %(first_bucket)s
  and (first_bucket, generation) is distinct from (%(first_bucket)s, %(generation)s)

-- name: closed_long_ago
select tenant_id, first_bucket, last_bucket from placements
where state = 'closed' and closed_at < clock_timestamp() - %(hours)s * interval '1 hour'

-- name: has_publication
select exists (select from pg_publication where pubname = %(name)s) as present

-- name: has_slot
select exists (select from pg_replication_slots where slot_name = %(name)s) as present

-- name: has_subscription
select exists (select from pg_subscription where subname = %(name)s and subdbid = (
    select oid from pg_database where datname = current_database())) as present

-- name: create_slot
select pg_create_logical_replication_slot(%(name)s, 'pgoutput')

-- name: drop_slot
select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = %(name)s and not active

-- name: publish
create publication {name} for {tables}

-- name: publish_table
table only {table} where ({filter})

-- name: of_scopes
{column} >= {first} and {column} <= {last}

-- name: of_buckets
tenant_id = {tenant} and bucket >= {first} and bucket <= {last}

-- name: of_tenant
tenant_id = {tenant}

-- name: drop_publication
drop publication if exists {name}

-- name: subscribe
create subscription {name} connection {source} publication {name}
-- What it has applied it has also flushed, and says so at once.
with (create_slot = false, slot_name = {slot}, disable_on_error = true, synchronous_commit = 'on')

-- name: detach
alter subscription {name} disable

-- name: unslot
alter subscription {name} set (slot_name = none)

-- name: unsubscribe
drop subscription if exists {name}

-- name: progress
select subenabled as enabled,
       (select count(*) from pg_subscription_rel where srsubid = sub.oid) as tables,
       (select count(*) from pg_subscription_rel where srsubid = sub.oid and srsubstate in ('r', 's')) as copied
from pg_subscription sub
where subname = %(name)s and subdbid = (select oid from pg_database where datname = current_database())

-- name: position
select pg_current_wal_insert_lsn()::text as position

-- name: behind
select coalesce(greatest(%(position)s::pg_lsn - confirmed_flush_lsn, 0), 1)::bigint as bytes
from pg_replication_slots where slot_name = %(name)s

-- name: checksum
select count(*) as rows, coalesce(sum(hashtextextended(row({columns})::text, 0)::numeric), 0)::text as checksum
from {table} where {filter}

-- name: past_triggers
set session_replication_role = replica

-- name: remove
delete from {table} where {filter}

-- name: drop_placement
delete from placements where tenant_id = %(tenant_id)s and first_bucket = %(first_bucket)s and state = 'closed'
