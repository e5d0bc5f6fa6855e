-- name: newest
select version, wrapped, wrapped_by from tenant_keys where tenant_id = current_tenant() order by version desc limit 1

-- name: add
insert into tenant_keys (tenant_id, version, wrapped, wrapped_by)
values (current_tenant(), %(version)s, %(wrapped)s, %(wrapped_by)s)
on conflict do nothing

-- name: all
select version, wrapped, wrapped_by from tenant_keys where tenant_id = current_tenant() order by version

-- name: rewrap
update tenant_keys set wrapped = %(wrapped)s, wrapped_by = %(wrapped_by)s
where tenant_id = current_tenant() and version = %(version)s and wrapped_by = %(before)s

-- name: tenants
select id from tenants order by id
