-- name: create
insert into api_keys (tenant_id, secret_hash, name, rights, trust, agent, "user", expires_at, parent)
values (current_tenant(), decode(%(hash)s, 'hex'), %(name)s, %(rights)s, %(trust)s, %(agent)s, %(user)s,
        %(expires_at)s, %(parent)s)
returning id, name, rights, trust, created_at, revoked_at, agent, "user", expires_at, parent, last_used_at,
          requests_per_second, burst, bytes_per_minute, largest_body, change_streams

-- name: all
-- Invalid child keys are omitted: there may be one for each user and day.
select id, name, rights, trust, created_at, revoked_at, agent, "user", expires_at, parent, last_used_at,
       requests_per_second, burst, bytes_per_minute, largest_body, change_streams
from api_keys
where tenant_id = current_tenant()
  and (parent is null or (revoked_at is null and expires_at > clock_timestamp()))
order by created_at, id

-- name: one
select id, name, rights, trust, created_at, revoked_at, agent, "user", expires_at, parent, last_used_at,
       requests_per_second, burst, bytes_per_minute, largest_body, change_streams
from api_keys
where tenant_id = current_tenant() and id = %(id)s

-- name: revoke
update api_keys set revoked_at = coalesce(revoked_at, clock_timestamp())
where tenant_id = current_tenant() and id = %(id)s and (%(parent)s::uuid is null or parent = %(parent)s)
returning id, name, rights, trust, created_at, revoked_at, agent, "user", expires_at, parent, last_used_at,
          requests_per_second, burst, bytes_per_minute, largest_body, change_streams
