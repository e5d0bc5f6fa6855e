-- name: newest
select latest.id
from scopes, lateral latest_accesses(scopes.id, %(kinds)s::text[], null, %(limit)s) as latest
where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
group by latest.id
order by max(latest.accessed_at) desc, latest.id desc
limit %(limit)s

-- name: gathered
select unreflected_importance as importance, unreflected_memories as memories from scopes
where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s

-- name: mark_reflected
update scopes
set unreflected_importance = greatest(0, unreflected_importance - %(importance)s),
    unreflected_memories = greatest(0, unreflected_memories - %(memories)s)
where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s

-- name: hold
select id, unreflected_memories from scopes
where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
for no key update

-- name: written
select memory_ids, embedded from idempotency_keys
where scope_id = {this_scope}
  and key = %(key)s

-- name: names
select agent, "user" from scopes where id = %(scope_id)s
