-- name: authorize
select tenant_id, key_id, name, rights, trust, bound_agent, bound_user, counted_as, key_limits, tenant_limits, agent, "user",
       (place).*
from authorize(%(hash)s, %(agent)s, %(user)s, %(lock_timeout)s)

-- name: locate
select * from locate(%(agent)s, %(user)s)

-- name: users
select "user" from scopes
where tenant_id = current_tenant() and agent = %(agent)s and memory_count > 0
order by "user" limit %(limit)s

-- name: open_for_writing
with continued as (
    update scopes
    set last_written_at = greatest(date_trunc('milliseconds', clock_timestamp()), last_written_at + interval '1 ms')
    where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
    returning id, memory_count, term_count, last_written_at, unreflected_importance, unreflected_memories
), counted as (
    insert into scope_counters (tenant_id, bucket, last_number)
    select current_tenant(), %(bucket)s, 1
    where not exists (select from continued)
    on conflict (tenant_id, bucket) do update set last_number = scope_counters.last_number + 1
    returning last_number
), begun as (
    insert into scopes (id, tenant_id, agent, "user", last_written_at)
    select (current_tenant() << 12 | %(bucket)s::bigint) << 28 | last_number, current_tenant(), %(agent)s, %(user)s,
           date_trunc('milliseconds', clock_timestamp())
    from counted
    on conflict (tenant_id, agent, "user") do update
    set last_written_at =
        greatest(date_trunc('milliseconds', clock_timestamp()), scopes.last_written_at + interval '1 ms')
    returning id, memory_count, term_count, last_written_at, unreflected_importance, unreflected_memories
)
select * from continued union all select * from begun

-- name: lock
-- A write locks the scope: no other write comes between.
select id from scopes
where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
for no key update

-- name: close_writing
update scopes
set memory_count = memory_count + %(memories)s, event_count = event_count + %(events)s,
    thought_count = thought_count + %(thoughts)s, chat_count = chat_count + %(chats)s,
    term_count = term_count + %(terms)s,
    unreflected_importance = unreflected_importance + %(importance)s,
    unreflected_memories = unreflected_memories + %(unreflected)s,
    last_written_at = greatest(last_written_at, %(written_at)s)
where id = %(scope_id)s

-- name: reset_reflection_backlog
update scopes set unreflected_importance = %(importance)s, unreflected_memories = %(memories)s where id = %(scope_id)s

-- name: defer_reflection
with waiting as materialized (
    select id from procrastinate_jobs
    where lock = %(lock)s and status = 'todo' and args ->> 'now' is not distinct from %(now)s::text
    order by id limit 1
), deferred as materialized (
    select unnest(procrastinate_defer_jobs_v1(array[
        row('reflect', 'reflect', 0, %(lock)s, null,
            jsonb_strip_nulls(jsonb_build_object(
                'scope_id', %(scope_id)s::bigint, 'count', %(memories)s::integer, 'now', %(now)s::text
            )), null)
        ::procrastinate_job_to_defer_v1
    ])) as id
    where not exists (select from waiting)
), begun as (
    update scopes set unreflected_importance = 0, unreflected_memories = 0
    where id = %(scope_id)s and exists (select from deferred)
)
select id from waiting union all select id from deferred

-- name: begin_moving
select set_config('recollect.cold', 'moving', true)

-- name: touch
-- A call that uses a scope keeps it from leaving.
with kept as (
    update scopes set tier = 'hot', tier_since = clock_timestamp() where id = %(scope_id)s and tier = 'leaving'
    returning id
)
select case when exists (select from kept) then 'hot' else tier end as tier from scopes where id = %(scope_id)s
