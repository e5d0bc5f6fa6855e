-- name: read_log
-- One statement, so that the newest number and the rows are from the same snapshot.
select incarnations.id as incarnation, former.ids as former, place.id as scope_id, place.change_number as newest,
       log.number, log.at, log.operation, log.ids
from incarnations
left join (
    select id, change_number from scopes
    where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
) place on true
cross join lateral (
    select coalesce(array_agg(former_incarnations.id), '{}') as ids from former_incarnations
    where tenant_id = current_tenant() and (place.id >> 28 & 4095) between first_bucket and last_bucket
) former
left join lateral (
    select number, at, operation, ids from changes
    where scope_id = place.id and number > coalesce(%(after)s, place.change_number)
    order by number limit %(limit)s
) log on true
order by log.number

-- name: newest
select scope_id, number from newest_changes(%(scopes)s)

-- name: standing
select standing_keys as key_id from standing_keys(%(tenants)s, %(keys)s)

-- name: channel
select change_channel() as channel

-- name: listen
listen {channel}

-- name: ping
select pg_notify(%(channel)s, '')

-- name: wait_for_lock
select set_config('lock_timeout', %(milliseconds)s, true)

-- name: register
-- Scopes with running writes are skipped.
update scopes set followed_until = clock_timestamp() + %(seconds)s * interval '1 second'
where id in (select id from scopes where id = any (%(scopes)s) for no key update skip locked)
returning id

-- name: register_busy
update scopes set followed_until = clock_timestamp() + %(seconds)s * interval '1 second'
where id = any (%(scopes)s) returning id
