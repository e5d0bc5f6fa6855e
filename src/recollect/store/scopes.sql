-- name: admit
select tenant_id, name, rights, trust, (place).*
from admit(%(hash)s, %(agent)s, %(user)s, %(patience)s)

-- name: locate
select * from locate(%(agent)s, %(user)s)

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

-- name: close_writing
update scopes
set memory_count = memory_count + %(memories)s, term_count = term_count + %(terms)s,
    last_written_at = greatest(last_written_at, %(written_at)s)
where id = %(scope_id)s

-- name: tenants
select id from tenants order by id
