-- name: begin
begin isolation level read committed

-- name: begin_snapshot
begin isolation level repeatable read, read only

-- name: hold_snapshot
set transaction isolation level repeatable read

-- name: bind
select set_config('recollect.tenant', %(tenant)s, true),
       set_config('recollect.key_id', %(key_id)s, true),
       set_config('statement_timeout', %(milliseconds)s, true),
       set_config('idle_in_transaction_session_timeout', %(milliseconds)s, true),
       set_config('hnsw.ef_search', '200', true),
       set_config('hnsw.iterative_scan', 'strict_order', true)

-- name: check_placement
select check_placement(%(tenant)s, %(bucket)s, %(generation)s, %(writing)s, %(restoring)s)

-- name: check_served
select check_served(%(tenant)s, %(bucket)s::integer, %(writing)s, %(restoring)s)

-- name: show_cold
select set_config('recollect.cold', 'shown', true)

-- name: commit
commit

-- name: look_behind
-- Behind a pooler the process differs from the one that the connection knows. A pooler that prepares for us renames
-- every statement, including this one.
select pg_backend_pid() as process,
       exists (select from pg_prepared_statements where name like 'recollect\_%%') as ours
