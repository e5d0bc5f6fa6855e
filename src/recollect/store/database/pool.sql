-- name: begin
begin isolation level read committed

-- name: hold_snapshot
set transaction isolation level repeatable read

-- name: bind
select set_config('recollect.tenant', %(tenant)s, true),
       set_config('statement_timeout', %(milliseconds)s, true),
       set_config('idle_in_transaction_session_timeout', %(milliseconds)s, true),
       set_config('hnsw.ef_search', '200', true),
       set_config('hnsw.iterative_scan', 'strict_order', true)

-- name: commit
commit
