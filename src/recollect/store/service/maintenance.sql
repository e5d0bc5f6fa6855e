-- name: due
select due as scope_id from due_scopes(%(wanted)s, 0, %(after)s, %(limit)s) as due order by due

-- name: defer_due
-- Not if one waits already, or has just failed; if failures are not kept, it replaces them.
with due as materialized (
    select scope_id, %(task)s || ':' || scope_id as lock
    from due_scopes(%(wanted)s, %(usual)s, %(after)s, %(limit)s) as due (scope_id)
), wanting as materialized (
    select scope_id, lock from due
    where not exists (select from procrastinate_jobs job where job.lock = due.lock and job.status = 'todo')
      and not exists (
          select from procrastinate_jobs job join job_failures on job_failures.job_id = job.id
          where job.lock = due.lock and job.status = 'failed'
            and failed_at > clock_timestamp() - %(rest_minutes)s * interval '1 minute'
      )
), replaced as (
    delete from procrastinate_jobs job using wanting
    where job.lock = wanting.lock and job.status = 'failed' and %(rest_minutes)s > 0
), deferred as materialized (
    select procrastinate_defer_jobs_v1(array_agg(
        row(%(task)s, %(task)s, 0, lock, null, jsonb_build_object('scope_id', scope_id), null)
        ::procrastinate_job_to_defer_v1 order by scope_id
    )) as ids
    from wanting
    having count(*) > 0
)
select (select count(*) from due) as scopes, (select max(scope_id) from due) as last,
       (select cardinality(ids) from deferred) as jobs

-- name: prune
select prune_kept(%(kept)s, %(before)s, %(limit)s) as gone

-- name: tenants_to_add_up
select tenant_id from tenants_to_add_up() as tenant_id order by tenant_id
