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
where (job.args ->> 'scope_id')::bigint between %(first)s and %(last)s and job.task_name not in ('erase', 'mirror')
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

-- name: incarnations
-- By which cursors the log of the buckets is known here.
select id::text as id, %(first_bucket)s::smallint as first_bucket, %(last_bucket)s::smallint as last_bucket from incarnations
union
select id::text, greatest(first_bucket, %(first_bucket)s), least(last_bucket, %(last_bucket)s) from former_incarnations
where tenant_id = %(tenant_id)s and first_bucket <= %(last_bucket)s and last_bucket >= %(first_bucket)s

-- name: know_incarnation
insert into former_incarnations (tenant_id, first_bucket, last_bucket, id)
values (%(tenant_id)s, %(first_bucket)s, %(last_bucket)s, %(id)s) on conflict do nothing

-- name: unfinished
-- Receipts that wait for a mirror of this server, or for other servers.
select (select count(*) from awaited_mirrors where scope_id between %(first)s and %(last)s)
     + (select count(*) from erasure_receipts where tenant_id = %(tenant_id)s and finished_at is null) as receipts

-- name: forget_positions
-- What mirrors know from before is compared as a whole.
update mirror_positions set position = 0 where scope_id between %(first)s and %(last)s

-- name: feed_mirrors
-- The mirrors of this server have to hold what has come, or to let go of what has gone.
insert into unmirrored (scope_id, number)
select id, change_number from scopes
where id between %(first)s and %(last)s and change_number > 0 and exists (select from mirrors)
on conflict (scope_id) do update set number = excluded.number

-- name: defer_feeding
select note_unmirrored(scope_id, number) from unmirrored where scope_id between %(first)s and %(last)s limit 1
