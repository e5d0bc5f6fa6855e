-- name: begin_moving
-- The move is not logged: the content is the same afterwards.
select set_config('recollect.cold', 'moving', true)

-- name: mark
update scopes set tier = 'leaving', tier_since = clock_timestamp()
where id = any (%(scopes)s::bigint[]) and tier = 'hot'
returning id

-- name: find
select id, agent, "user", memory_count, tier, tier_since from scopes
where tenant_id = current_tenant() and {not_erased} and (%(agent)s::text is null or agent = %(agent)s)
  and (%(user)s::text is null or "user" = %(user)s)
order by id

-- name: read_mark
select tier, tier_since, change_number from scopes where id = %(scope_id)s

-- name: lock
select tier, tier_since, change_number, agent, "user" from scopes where id = %(scope_id)s for no key update

-- name: is_busy
-- Pending work in the scope, or pending changes for mirrors, that need its rows.
select exists (
           select from procrastinate_jobs where status = 'todo' and lock = any (%(locks)s::text[])
       ) or exists (
           select from procrastinate_jobs where status = 'doing' and lock = any (%(locks)s::text[])
       ) or exists (select from unmirrored where scope_id = %(scope_id)s)
       or exists (select from awaited_mirrors where scope_id = %(scope_id)s) as busy

-- name: begin_object
insert into cold_objects (scope_id, name) values (%(scope_id)s, %(name)s)

-- name: hold_object
-- Memories that end at a time, or by a rule, must be found while the rows are not here.
update cold_objects
set state = 'held', since = clock_timestamp(), bytes = %(bytes)s, sha256 = %(sha256)s, counts = %(counts)s,
    expires_at = (select min(expires_at) from memories where scope_id = %(scope_id)s),
    idle_since = (select min(idle_since) from conversations
                  where scope_id = %(scope_id)s and id <> '' and state in ('active', 'archived')),
    deleted_at = (select min(changed_at) from conversations where scope_id = %(scope_id)s and state = 'deleted'),
    recalled_at = (select min(asked_at) from recalls where scope_id = %(scope_id)s)
where scope_id = %(scope_id)s and name = %(name)s and state = 'writing'
returning name

-- name: delete
delete from {table} where scope_id = %(scope_id)s

-- name: become
update scopes set tier = %(tier)s, tier_since = clock_timestamp() where id = %(scope_id)s

-- name: remirror
select remirror(%(scope_id)s)

-- name: held
select name, bytes, sha256, counts from cold_objects where scope_id = %(scope_id)s and state = 'held'

-- name: release_object
update cold_objects set state = 'unneeded', since = clock_timestamp()
where scope_id = %(scope_id)s and name = %(name)s and state = %(state)s
returning name

-- name: unneeded
select scope_id, name from cold_objects where scope_id = any (%(scopes)s::bigint[]) and state = 'unneeded'

-- name: forget_object
delete from cold_objects where scope_id = %(scope_id)s and name = %(name)s and state = 'unneeded'

-- name: mark_due
select mark_leaving(%(days)s, %(limit)s) as marked

-- name: defer_moves
with due as materialized (
    select scope_id, %(task)s || ':' || scope_id as lock
    from due_to_move(%(task)s, %(seconds)s, %(archive_after_days)s, %(delete_after_days)s, %(purge_after_days)s,
                     %(recall_days)s, %(after)s, %(limit)s) as due (scope_id)
), deferred as materialized (
    select procrastinate_defer_jobs_v1(array_agg(
        row(%(task)s, %(task)s, 0, lock, null, jsonb_build_object('scope_id', scope_id), null)
        ::procrastinate_job_to_defer_v1 order by scope_id
    )) as ids
    from due
    where not exists (select from procrastinate_jobs job where job.lock = due.lock and job.status = 'todo')
    having count(*) > 0
)
select (select count(*) from due) as scopes, (select max(scope_id) from due) as last,
       (select cardinality(ids) from deferred) as jobs

-- name: to_remove
select scope_id, name from objects_to_remove(%(seconds)s, %(limit)s)

-- name: standing
select cold, leaving, bytes, unneeded from cold_standing()
