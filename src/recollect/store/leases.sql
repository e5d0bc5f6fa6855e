-- name: hold
-- For share: whoever would take the job over waits until this transaction has ended.
select id from procrastinate_jobs
where id = %(job_id)s and status = 'doing' and attempts = %(attempt)s
for share

-- name: claim
insert into job_effects (scope_id, key, job_id) values (%(scope_id)s, %(key)s, %(job_id)s)
on conflict (scope_id, key) do nothing
returning key

-- name: forget
delete from job_effects
where scope_id between first_scope() and last_scope()
  and not exists (select from procrastinate_jobs where procrastinate_jobs.id = job_effects.job_id)

-- name: finish
with held as materialized (
    select id from procrastinate_jobs
    where id = %(job_id)s and status = 'doing' and attempts = %(attempt)s
    for update
)
select procrastinate_finish_job_v1(id, %(status)s::procrastinate_job_status, %(delete_job)s) from held

-- name: retry
with held as materialized (
    select id from procrastinate_jobs
    where id = %(job_id)s and status = 'doing' and attempts = %(attempt)s
    for update
)
select procrastinate_retry_job_v2(id, %(retry_at)s, %(priority)s, %(queue)s, %(lock)s) from held
