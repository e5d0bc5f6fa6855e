-- name: create
insert into api_keys (tenant_id, secret_hash, name, rights, trust, agent, "user")
values (current_tenant(), decode(%(hash)s, 'hex'), %(name)s, %(rights)s, %(trust)s, %(agent)s, %(user)s)
returning id, name, rights, trust, created_at, revoked_at, agent, "user"

-- name: all
select id, name, rights, trust, created_at, revoked_at, agent, "user" from api_keys
where tenant_id = current_tenant() order by created_at, id

-- name: revoke
update api_keys set revoked_at = coalesce(revoked_at, clock_timestamp())
where tenant_id = current_tenant() and id = %(id)s
returning id, name, rights, trust, created_at, revoked_at, agent, "user"
