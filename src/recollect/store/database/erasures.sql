-- name: hold
select pg_advisory_xact_lock_shared(7230045918273646)

-- name: hold_alone
select pg_advisory_xact_lock(7230045918273646)
