-- name: present
select set_config('recollect.key', %(hash)s, true)

-- name: authenticate
select tenant_id, name, rights, trust, set_config('recollect.tenant', tenant_id::text, true)
from api_keys
where secret_hash = decode(%(hash)s, 'hex') and revoked_at is null

-- name: locate
select scopes.id as scope_id, scopes.memory_count, scopes.approximate_space,
       space.id as space_id, space.model, space.dimensions, space.state
from (select current_tenant() as tenant_id) caller
left join scopes
    on scopes.tenant_id = caller.tenant_id and scopes.agent = %(agent)s and scopes."user" = %(user)s
left join embedding_spaces space on space.state = 'active'

-- name: open_for_writing
with continued as (
    update scopes
    set last_written_at = greatest(date_trunc('milliseconds', clock_timestamp()), last_written_at + interval '1 ms')
    where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
    returning id, memory_count, term_count, last_written_at
), begun as (
    insert into scopes (id, tenant_id, agent, "user", last_written_at)
    select current_tenant() << 40 | nextval('scope_numbers'), current_tenant(), %(agent)s, %(user)s,
           date_trunc('milliseconds', clock_timestamp())
    where not exists (select from continued)
    on conflict (tenant_id, agent, "user") do update
    set last_written_at =
        greatest(date_trunc('milliseconds', clock_timestamp()), scopes.last_written_at + interval '1 ms')
    returning id, memory_count, term_count, last_written_at
)
select * from continued union all select * from begun

-- name: count_written
update scopes set memory_count = memory_count + %(memories)s, term_count = term_count + %(terms)s
where id = %(scope_id)s

-- name: tenants
select id from tenants order by id
