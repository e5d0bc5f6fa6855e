-- name: defer
-- A waiting job is locked: no worker starts it before this transaction has ended, as it would not see the changes.
with waiting as materialized (
    select id from procrastinate_jobs where lock = %(lock)s and status = 'todo' for share
)
select procrastinate_defer_jobs_v1(array[
    row(%(task)s, %(task)s, 0, %(lock)s, null, %(arguments)s, null)::procrastinate_job_to_defer_v1
])
where not exists (select from waiting)

-- name: record_job_failure
insert into job_failures (job_id, reason) values (%(job_id)s, %(reason)s)
on conflict (job_id) do update set reason = excluded.reason, failed_at = clock_timestamp()

-- name: unfinished
select job.task_name as task,
       case job.status when 'todo' then 'waiting' when 'doing' then 'running' else job.status::text end as state,
       count(*) as jobs, max(job.id) as newest, max(job.attempts) as attempts,
       coalesce(failure.reason, '') as reason, max(failure.failed_at) as failed_at,
       extract(epoch from max(clock_timestamp() - deferred.at) filter (where job.status = 'todo'))::float8
           as lag_seconds,
       sum(progress.done)::bigint as done, sum(progress.total)::bigint as total
from procrastinate_jobs job
left join job_failures failure on failure.job_id = job.id
left join job_progress progress on progress.job_id = job.id and job.status = 'doing'
left join lateral (
    select min(at) as at from procrastinate_events where job_id = job.id and type = 'deferred'
) deferred on job.status = 'todo'
where job.status in ('todo', 'doing', 'failed')
group by job.task_name, job.status, failure.reason
order by job.task_name, job.status, newest

-- name: find
-- Newest first. The engine's tables have no row-level security: the tenant is a part of the query.
select job.id, job.task_name as task, coalesce(scopes.agent, '') as agent, coalesce(scopes."user", '') as "user",
       case job.status when 'todo' then 'waiting' when 'doing' then 'running' else job.status::text end as state,
       job.attempts, coalesce(failure.reason, '') as reason, job.scheduled_at, times.deferred_at, times.started_at,
       case when job.status = 'todo'
           then extract(epoch from clock_timestamp() - times.deferred_at)::float8 end as lag_seconds,
       progress.done, progress.total
from procrastinate_jobs job
left join scopes on scopes.id = (job.args ->> 'scope_id')::bigint
left join job_failures failure on failure.job_id = job.id
left join job_progress progress on progress.job_id = job.id
cross join lateral (
    select min(at) filter (where type = 'deferred') as deferred_at,
           max(at) filter (where type = 'started') as started_at
    from procrastinate_events where job_id = job.id
) times
where (job.args ->> 'scope_id')::bigint >> 40 = current_tenant()
  and (job.args ->> 'scope_id')::bigint between first_scope() and last_scope()
  and job.status in ('todo', 'doing', 'failed')
  and (%(id)s::bigint is null or job.id = %(id)s and %(shard)s = %(own)s)
  and (%(status)s::procrastinate_job_status is null or job.status = %(status)s::procrastinate_job_status)
  and (%(task)s::text is null or job.task_name = %(task)s)
  and (%(cursor)s::bigint is null or job.id < %(cursor)s)
  and {of_scopes}
order by job.id desc
limit %(limit)s

-- name: tenant
select (args ->> 'scope_id')::bigint >> 40 as tenant_id from procrastinate_jobs job where job.id = %(id)s and %(shard)s = %(own)s

-- name: retry
-- Periodic tasks are queued again later, and may be waiting already. Without a tenant, all are retried.
with chosen as materialized (
    select id from procrastinate_jobs job
    where status = 'failed' and queueing_lock is null
      and (%(tenant_id)s::bigint is null or (args ->> 'scope_id')::bigint between first_scope() and last_scope())
      and (%(id)s::bigint is null or job.id = %(id)s and %(shard)s = %(own)s)
      and (%(task)s::text is null or task_name = %(task)s)
      and {of_scopes}
    order by id
    for update
)
select id, procrastinate_retry_job_v2(id, clock_timestamp(), null, null, null) from chosen order by id

-- name: record_progress
insert into job_progress (job_id, done, total)
select id, %(done)s, %(total)s from procrastinate_jobs
where id = %(job_id)s and status = 'doing' and attempts = %(attempt)s
on conflict (job_id) do update set done = excluded.done, total = excluded.total, updated_at = excluded.updated_at

-- name: counts
select task_name, status::text as status, count(*) as jobs from procrastinate_jobs
where status in ('todo', 'doing', 'failed') group by 1, 2 order by 1, 2

-- name: ready
-- Whether the engine would start a job now: it is due, and no job with its lock runs or waits before it.
select exists (
    select from procrastinate_jobs job
    where status = 'todo' and coalesce(scheduled_at, '-infinity') <= clock_timestamp()
      and not exists (
          select from procrastinate_jobs other
          where other.lock = job.lock
            and (other.status = 'doing'
                 or other.status = 'todo' and (other.priority, -other.id) > (job.priority, -job.id))
      )
) as ready

-- name: busy
-- Whether a job of these scopes runs, or is due and no job with its lock waits before it for a later time.
select exists (
    select from scopes
    join procrastinate_jobs job on (job.args ->> 'scope_id')::bigint = scopes.id
    where scopes.tenant_id = current_tenant()
      and (job.args ->> 'scope_id')::bigint >> 40 = current_tenant()
      and job.status in ('todo', 'doing', 'failed')
      and (scopes.agent, scopes."user") in (select * from unnest(%(agents)s::text[], %(users)s::text[]))
      and (job.status = 'doing'
           or job.status = 'todo' and coalesce(job.scheduled_at, '-infinity') <= clock_timestamp()
           and not exists (
               select from procrastinate_jobs other
               where other.lock = job.lock and other.status = 'todo' and other.scheduled_at > clock_timestamp()
                 and (other.priority, -other.id) > (job.priority, -job.id)
           ))
) as busy

-- name: hold
-- For share: another worker that takes the job over waits until this transaction has ended.
select id from procrastinate_jobs
where id = %(job_id)s and status = 'doing' and attempts = %(attempt)s
for share

-- name: claim
insert into job_effects (scope_id, key, job_id) values (%(scope_id)s, %(key)s, %(job_id)s)
on conflict (scope_id, key) do nothing
returning key

-- name: take
select id, status, task_name, priority, lock, queueing_lock, args, scheduled_at, queue_name, attempts, worker_id,
       coalesce((args ->> 'scope_id')::bigint >> 40, 0) as tenant_id
from take_job(%(worker_id)s, %(after)s, %(queues)s::text[], %(most_chats)s)

-- name: finish
-- A periodic task has a queueing lock: if it succeeds, its earlier failures are deleted.
with held as materialized (
    select id, queue_name, queueing_lock from procrastinate_jobs
    where id = %(job_id)s and status = 'doing' and attempts = %(attempt)s
    for update
), over as (
    delete from procrastinate_jobs before using held
    where %(status)s = 'succeeded' and before.queue_name = held.queue_name
      and before.queueing_lock = held.queueing_lock and before.status = 'failed'
)
select procrastinate_finish_job_v1(id, %(status)s::procrastinate_job_status, %(delete_job)s) from held

-- name: retry_held
with held as materialized (
    select id from procrastinate_jobs
    where id = %(job_id)s and status = 'doing' and attempts = %(attempt)s
    for update
)
select procrastinate_retry_job_v2(
    -- By the clock that decides when it is due, and without a time if it is due at once: clocks are set.
    id, case when %(seconds)s > 0 then clock_timestamp() + %(seconds)s * interval '1 second' end,
    %(priority)s, %(queue)s, %(lock)s
) from held

-- name: fix_heartbeats
-- After the clock was set back: running workers send another heartbeat soon, and dead ones must not seem alive.
update procrastinate_workers set last_heartbeat = now() where last_heartbeat > now()

-- name: by_task
-- Of one tenant, and of one agent or user of it if named.
select counted.task, counted.waiting, counted.running, counted.failed,
       (
           select extract(epoch from clock_timestamp() - min(at))::float8 from procrastinate_events
           where job_id = counted.oldest and type = 'deferred'
       ) as oldest_seconds
from (
    select job.task_name as task, count(*) filter (where job.status = 'todo') as waiting,
           count(*) filter (where job.status = 'doing') as running,
           count(*) filter (where job.status = 'failed') as failed,
           min(job.id) filter (where job.status = 'todo') as oldest
    from procrastinate_jobs job
    where (job.args ->> 'scope_id')::bigint >> 40 = current_tenant()
      and (job.args ->> 'scope_id')::bigint between first_scope() and last_scope()
      and job.status in ('todo', 'doing', 'failed')
      and {of_scopes}
    group by job.task_name
) counted
order by counted.task

-- name: of_scopes
-- Of all scopes of the tenant, of all of an agent, or of one.
(%(agent)s::text is null or (job.args ->> 'scope_id')::bigint in (
    select id from scopes
    where tenant_id = current_tenant() and agent = %(agent)s and (%(user)s::text is null or "user" = %(user)s)
))
