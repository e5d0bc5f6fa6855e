-- name: shards
select id, name, service_address as address, direct_address, state,
       (select id::text from catalog_identity) as catalog_id
from shards order by id

-- name: placements
-- Of one tenant, or of all.
select tenant_id, first_bucket, last_bucket, shard_id, generation from placements
where tenant_id = %(tenant_id)s or %(tenant_id)s::integer is null
order by tenant_id, first_bucket

-- name: catalog_id
select id::text as id from catalog_identity

-- name: set_state
update shards set state = %(state)s where name = %(name)s returning id

-- name: find_shard
select id from shards where name = %(name)s

-- name: addresses
select id as number, name, service_address as service, owner_address as owner, direct_address as direct,
       (select id::text from catalog_identity) as catalog_id
from shards order by id

-- name: load
-- The load of each shard, by tenants and by buckets.
select shards.name, shards.state, count(distinct placements.tenant_id) as tenants,
       coalesce(sum(placements.last_bucket - placements.first_bucket + 1), 0)::bigint as buckets
from shards left join placements on placements.shard_id = shards.id
group by shards.id order by shards.id

-- name: find_tenant
select id from tenants where name = %(name)s

-- name: add_tenant
insert into tenants (name) values (%(name)s) on conflict (name) do nothing

-- name: place
-- A new tenant is placed completely on the open shard with the fewest buckets.
insert into placements (tenant_id, first_bucket, last_bucket, shard_id, generation)
select %(tenant_id)s, -1, 4095, chosen.id, 1
from (
    select shards.id from shards left join placements on placements.shard_id = shards.id
    where shards.state = 'open'
    group by shards.id
    order by coalesce(sum(placements.last_bucket - placements.first_bucket + 1), 0), shards.id limit 1
) chosen
where not exists (select from placements where tenant_id = %(tenant_id)s)

-- name: place_on
insert into placements (tenant_id, first_bucket, last_bucket, shard_id, generation)
select %(tenant_id)s, * from unnest(
    %(firsts)s::smallint[], %(lasts)s::smallint[], %(shards)s::smallint[], %(generations)s::integer[])

-- name: known_shards
-- On a shard.
select number, name, service_address as service, owner_address as owner, direct_address as direct
from known_shards order by number

-- name: known_tenants
-- On a shard.
select id, name from tenants where id = %(tenant_id)s or name = %(name)s

-- name: lock
select pg_advisory_xact_lock(7230045918273646)

-- name: serve
-- On the shard itself: the tenant with its number, and its buckets there.
with named as (
    insert into tenants (id, name) select %(tenant_id)s, %(name)s
    where not exists (select from tenants where id = %(tenant_id)s)
)
insert into placements (tenant_id, first_bucket, last_bucket, generation)
values (%(tenant_id)s, %(first_bucket)s, %(last_bucket)s, %(generation)s)
on conflict (tenant_id, first_bucket) do nothing
