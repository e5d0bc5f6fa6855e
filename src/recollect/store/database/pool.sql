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
select check_placement(%(tenant)s, %(bucket)s, %(generation)s, %(writing)s)

-- name: check_served
select check_served(%(tenant)s, %(bucket)s::integer, %(writing)s)

-- name: show_cold
select set_config('recollect.cold', 'shown', true)

-- name: commit
commit

-- name: position
-- After a commit: whoever has replayed so much has it. What is flushed is sent at once, what is only written is not; so
-- the end of what is written is taken only where a commit does not wait for the flush.
select reached.lsn::text as lsn, left(pg_walfile_name(reached.lsn), 8) as timeline
from (select case when current_setting('synchronous_commit') = 'off' then pg_current_wal_insert_lsn()
                  else pg_current_wal_flush_lsn() end as lsn) reached

-- name: check_replayed
select check_replayed(%(timeline)s::bigint, %(lsn)s::pg_lsn, %(wait)s, %(staleness)s::double precision)

-- name: look_behind
-- Behind a pooler the process is not the one that the connection was told of. One that prepares in our place gives
-- every statement, this one too, a name of its own.
select pg_backend_pid() as process,
       exists (select from pg_prepared_statements where name like 'recollect\_%%') as ours
