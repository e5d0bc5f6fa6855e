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
           or exists (select from procrastinate_jobs where task_name = 'fill' and status in ('todo', 'doing')) as filling

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
       or table_name in ('scopes', 'scope_counters', 'agents', 'api_keys', 'erasure_receipts'))
order by table_name

-- name: read_tenant
select id, name, tokens_per_day from tenants where id = %(tenant_id)s

-- name: copy_tenant
insert into tenants (id, name, tokens_per_day) overriding system value
values (%(id)s, %(name)s, %(tokens_per_day)s)
on conflict (id) do update set tokens_per_day = excluded.tokens_per_day

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

-- name: hold
select pg_advisory_lock(placement_lock(), %(tenant_id)s)

-- name: release
select pg_advisory_unlock(placement_lock(), %(tenant_id)s)

-- name: begin_snapshot
begin isolation level repeatable read, read only

-- name: end_snapshot
commit

-- name: same_texts
-- A checksum is made of texts: they must be written in one way.
select set_config('timezone', 'UTC', false), set_config('datestyle', 'ISO', false),
       set_config('intervalstyle', 'postgres', false), set_config('extra_float_digits', '1', false),
       set_config('bytea_output', 'hex', false)

-- name: checksum
select count(*) as rows, coalesce(sum(hashtextextended(row({columns})::text, 0)::numeric), 0)::text as checksum
from {table} where {filter}

-- name: change_numbers
select count(*) as scopes, coalesce(sum(hashtextextended(row(id, change_number)::text, 0)::numeric), 0)::text as checksum
from scopes where id between %(first)s and %(last)s

-- name: fence
select fence_placement(%(tenant_id)s, %(first_bucket)s, %(seconds)s)

-- name: unfence
update placements set state = 'open', closed_at = null
where tenant_id = %(tenant_id)s and first_bucket = %(first_bucket)s

-- name: close
select close_placement(%(tenant_id)s, %(first_bucket)s) as closed

-- name: open
update placements set state = 'open', generation = %(generation)s, closed_at = null
where tenant_id = %(tenant_id)s and first_bucket = %(first_bucket)s

-- name: jobs
select job.id, job.queue_name, job.task_name, job.priority, job.lock, job.queueing_lock, job.args, job.scheduled_at,
       job.status = 'failed' as failed, failure.reason,
       (select array_agg(job_effects.scope_id) from job_effects where job_effects.job_id = job.id) as scopes,
       (select array_agg(key) from job_effects where job_effects.job_id = job.id) as keys,
       (select array_agg(shard) from moved_jobs where moved_jobs.job_id = job.id) as former_shards,
       (select array_agg(number) from moved_jobs where moved_jobs.job_id = job.id) as former_numbers
from procrastinate_jobs job left join job_failures failure on failure.job_id = job.id
where (job.args ->> 'scope_id')::bigint between %(first)s and %(last)s and job.task_name <> 'mirror'
  and job.status in ('todo', 'doing', 'failed')
order by job.id

-- name: take_job
-- Once, even if it is told twice; and only where none of its lock waits already.
with taken as (
    select unnest(procrastinate_defer_jobs_v1(array[
        row(%(queue_name)s, %(task_name)s, %(priority)s, %(lock)s, %(queueing_lock)s, %(args)s, %(scheduled_at)s)
        ::procrastinate_job_to_defer_v1
    ])) as id
    where not exists (select from moved_jobs where shard = %(shard)s and number = %(id)s)
), known as (
    insert into moved_jobs (shard, number, job_id)
    select %(shard)s, %(id)s, id from taken
    union all
    select former.shard, former.number, taken.id
    from taken, unnest(%(former_shards)s::smallint[], %(former_numbers)s::bigint[]) as former (shard, number)
), done as (
    insert into job_effects (scope_id, key, job_id)
    select effect.scope_id, effect.key, taken.id
    from taken, unnest(%(scopes)s::bigint[], %(keys)s::text[]) as effect (scope_id, key)
), failed as (
    insert into job_failures (job_id, reason) select id, coalesce(%(reason)s, '') from taken where %(failed)s
)
select id from taken where %(failed)s

-- name: fail_job
update procrastinate_jobs set status = 'failed' where id = %(id)s

-- name: drop_jobs
delete from procrastinate_jobs where id = any (%(ids)s)

-- name: past_triggers
set session_replication_role = replica

-- name: remove
delete from {table} where {filter}

-- name: mirror_anew
-- The mirrors of this server know nothing of what has come.
insert into unmirrored (scope_id, number)
select id, change_number from scopes
where id between %(first)s and %(last)s and change_number > 0 and exists (select from mirrors)
on conflict do nothing

-- name: drop_placement
delete from placements where tenant_id = %(tenant_id)s and first_bucket = %(first_bucket)s and state = 'closed'
