-- name: read
select profile, metadata from agents where tenant_id = current_tenant() and agent = %(agent)s

-- name: write_profile
insert into agents (tenant_id, agent, profile) values (current_tenant(), %(agent)s, %(profile)s)
on conflict (tenant_id, agent) do update set profile = excluded.profile
returning profile, metadata

-- name: write
insert into agents (tenant_id, agent, profile, metadata)
values (current_tenant(), %(agent)s, %(profile)s, %(metadata)s)
on conflict (tenant_id, agent) do update
set profile = excluded.profile, metadata = agents.metadata || excluded.metadata
