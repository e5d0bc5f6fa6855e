-- name: scopes
select id from scopes
where tenant_id = current_tenant() and (%(agent)s = '' or agent = %(agent)s)
  and ("user" = %(user)s or (%(user)s like '/%%' and "user" = %(user)s || '/' || id)) order by id

-- name: lock
select id from scopes where id = %(scope_id)s and "user" = %(user)s for no key update

-- name: count
select count(*) as rows from {table} where scope_id = %(scope_id)s

-- name: count_cold
-- Receipts of its earlier content are in the database, and counted here.
select counts - 'purge_receipts' || '{"cold_objects": 1}' as counts
from cold_objects where scope_id = %(scope_id)s and state = 'held'

-- name: release_objects
update cold_objects set state = 'unneeded', since = clock_timestamp()
where scope_id = %(scope_id)s and state <> 'unneeded'

-- name: erase
delete from {table} where scope_id = %(scope_id)s

-- name: reset
update scopes
set memory_count = 0, event_count = 0, thought_count = 0, chat_count = 0, term_count = 0, unreflected_importance = 0,
    unreflected_memories = 0, has_keywords = false, has_names = false, has_topics = false,
    -- A scope that was created again before the erasure resumed gets a different name.
    has_evidence = false, "user" = %(name)s || case when exists (
        select from scopes other
        where other.tenant_id = scopes.tenant_id and other.agent = scopes.agent and other."user" = %(name)s
    ) then '/' || id else '' end,
    tier = 'hot', tier_since = case when tier = 'hot' then tier_since else clock_timestamp() end
where id = %(scope_id)s

-- name: cancel
-- Waiting jobs of the scope have no data left, and must not leave a record.
select procrastinate_cancel_job_v1(id, false, true) from procrastinate_jobs
where status = 'todo' and (args ->> 'scope_id')::bigint = %(scope_id)s

-- name: unfinished
select id from erasure_receipts
where tenant_id = current_tenant() and "user" = %(user)s and agent = %(agent)s and erased_at is null
order by begun_at limit 1

-- name: begin
insert into erasure_receipts (tenant_id, id, agent, "user", asked_by)
values (current_tenant(), %(id)s, %(agent)s, %(user)s, %(asked_by)s)
on conflict (tenant_id, id) do nothing

-- name: defer
-- The call that begins an erasure usually finishes it; if not, this job does.
select procrastinate_defer_jobs_v1(array[
    row('erase', 'erase', 0, %(lock)s, null, %(arguments)s, clock_timestamp() + %(seconds)s * interval '1 second')
    ::procrastinate_job_to_defer_v1
])

-- name: end_job
select procrastinate_cancel_job_v1(id, false, true) from procrastinate_jobs
where status = 'todo' and lock = %(lock)s and exists (
    select from erasure_receipts
    where tenant_id = current_tenant() and id = %(id)s and erased_at is not null and unreported = 0)

-- name: note
-- Count erased rows, here or on another server; a receipt that is summed up does not change.
update erasure_receipts
set scopes = scopes + %(scopes)s, removed = (
    select coalesce(jsonb_object_agg(key, value), '{}')
    from (
        select key, sum(value::bigint) as value
        from (select * from jsonb_each_text(removed) union all select * from jsonb_each_text(%(removed)s::jsonb)) each
        group by key
    ) summed
)
where tenant_id = current_tenant() and id = %(id)s and erased_at is null

-- name: await_mirrors
select await_mirrors(%(scope_id)s, %(id)s)

-- name: hold
select id from erasure_receipts where tenant_id = current_tenant() and id = %(id)s for no key update

-- name: finish
update erasure_receipts
set erased_at = coalesce(erased_at, clock_timestamp()), unreported = %(unreported)s,
    mirrors = mirrors || %(mirrors)s,
    finished_at = coalesce(finished_at, case
        when %(unreported)s = 0 and not exists (select from awaited_mirrors where receipt_id = %(id)s)
        then clock_timestamp() end)
where tenant_id = current_tenant() and id = %(id)s
returning id, agent, "user", asked_by, scopes, removed, begun_at, erased_at, finished_at, mirrors

-- name: receipt
select id, agent, "user", asked_by, scopes, removed, begun_at, erased_at, finished_at, mirrors from erasure_receipts
where tenant_id = current_tenant() and id = %(id)s

-- name: receipts
select id, agent, "user", asked_by, scopes, removed, begun_at, erased_at, finished_at, mirrors from erasure_receipts
where tenant_id = current_tenant() and (%(user)s = '' or "user" = %(user)s)
order by begun_at desc, id limit %(limit)s
