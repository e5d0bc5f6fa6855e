-- name: tenants
select id, name from tenants order by id

-- name: identify
insert into server_identity (catalog_id, number) values (%(catalog_id)s, %(number)s) on conflict do nothing

-- name: know
insert into known_shards (number, name, service_address, owner_address, direct_address)
values (%(number)s, %(name)s, %(service)s, %(owner)s, %(direct)s)
on conflict (number) do update
set name = excluded.name, service_address = excluded.service_address, owner_address = excluded.owner_address,
    direct_address = excluded.direct_address

-- name: enter
-- In the catalog.
insert into shards (id, name, service_address, owner_address, direct_address)
values (%(number)s, %(name)s, %(service)s, %(owner)s, %(direct)s)
on conflict (id) do update
set name = excluded.name, service_address = excluded.service_address, owner_address = excluded.owner_address,
    direct_address = excluded.direct_address
