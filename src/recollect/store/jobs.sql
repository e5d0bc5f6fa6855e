-- name: defer
select procrastinate_defer_jobs_v1(array[
    row(%(task)s, %(task)s, 0, %(lock)s, null, %(arguments)s, null)::procrastinate_job_to_defer_v1
])
where not exists (select from procrastinate_jobs where lock = %(lock)s and status = 'todo')

-- name: counts
select task_name, status::text as status, count(*) as jobs, min(scheduled_at) as oldest
from procrastinate_jobs group by 1, 2 order by 1, 2
