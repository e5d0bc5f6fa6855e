-- name: claims
select tenant_id, first_bucket, last_bucket, generation, state, awaited from placements order by tenant_id, first_bucket

-- name: strays
-- The number of a tenant's rows in buckets that a server does not serve.
select coalesce(placements.state, '') as state, count(*) as rows
from (
    select (id >> 28 & 4095)::integer as bucket from scopes where tenant_id = %(tenant_id)s
    union all
    select -1 from api_keys where tenant_id = %(tenant_id)s
) held
left join placements on placements.tenant_id = %(tenant_id)s and bucket between first_bucket and last_bucket
where coalesce(placements.state, 'closed') = 'closed'
group by 1

-- name: leftovers
select 'the replication slot ' || slot_name || ' is not in use' as name from pg_replication_slots
where not active and coalesce(database, current_database()) = current_database()
union all
select 'there is the subscription ' || subname from pg_subscription
where subdbid = (select oid from pg_database where datname = current_database())

-- name: is_primary
select not pg_is_in_recovery() as primary

-- name: hold_tenant
-- Wait for running writes.
select pg_advisory_xact_lock(placement_lock(), %(tenant_id)s)

-- name: cut_claim
update placements set last_bucket = %(last_bucket)s, state = %(state)s
where tenant_id = %(tenant_id)s and first_bucket = %(first_bucket)s

-- name: add_claim
insert into placements (tenant_id, first_bucket, last_bucket, generation, state, awaited)
values (%(tenant_id)s, %(first_bucket)s, %(last_bucket)s, %(generation)s, %(state)s, %(awaited)s)

-- name: take_over
update catalog_identity set id = %(catalog_id)s

-- name: add_tenants
insert into tenants (id, name) overriding system value
select * from unnest(%(ids)s::integer[], %(names)s::text[]) on conflict do nothing

-- name: count_on
select setval(pg_get_serial_sequence('tenants', 'id'), greatest(max(id), 1)) from tenants
