-- name: defer
select procrastinate_defer_jobs_v1(array[
    row(%(task)s, %(task)s, 0, %(lock)s, null, %(arguments)s, null)::procrastinate_job_to_defer_v1
])
where not exists (select from procrastinate_jobs where lock = %(lock)s and status = 'todo')

-- name: note_failure
insert into job_failures (job_id, reason) values (%(job_id)s, %(reason)s)
on conflict (job_id) do update set reason = excluded.reason, failed_at = clock_timestamp()

-- name: unfinished
select job.task_name as task,
       case job.status when 'todo' then 'waiting' when 'doing' then 'running' else job.status::text end as state,
       count(*) as jobs, max(job.id) as newest, max(job.attempts) as attempts,
       coalesce(failure.reason, '') as reason, max(failure.failed_at) as failed_at
from procrastinate_jobs job left join job_failures failure on failure.job_id = job.id
where job.status not in ('succeeded', 'cancelled')
group by job.task_name, job.status, failure.reason
order by job.task_name, job.status, newest

-- name: counts
select task_name, status::text as status, count(*) as jobs, min(scheduled_at) as oldest
from procrastinate_jobs group by 1, 2 order by 1, 2
