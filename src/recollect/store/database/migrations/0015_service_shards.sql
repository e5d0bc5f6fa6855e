-- Which server of which catalog this is; a server alone has no row here. It is written once, by the first `shard add`.
create table server_identity (
    single boolean primary key default true check (single),
    catalog_id uuid not null,
    number smallint not null check (number > 0)
);
grant select on server_identity to recollect_service;

-- The servers of the catalog, as this one last heard of them: a lost catalog is made again from them. No passwords.
create table known_shards (
    number smallint primary key check (number > 0),
    name text not null,
    service_address text not null,
    owner_address text not null,
    direct_address text not null default ''
);

-- Which buckets of which tenants this server serves, if it is one of several. A server alone has rows here only for tenants
-- whose writes were suspended. Bucket -1 stands for the data of a tenant outside any scope: keys, limits, receipts.
create table placements (
    tenant_id integer not null references tenants,
    first_bucket smallint not null check (first_bucket between -1 and 4095),
    last_bucket smallint not null check (last_bucket between first_bucket and 4095),
    -- Incremented whenever the buckets are resumed or placed elsewhere; a caller with an earlier one has an old map.
    generation integer not null check (generation > 0),
    -- `fenced` is read and not written: the tenant's writes are suspended. `closed` is served by another server, and the
    -- rows stay.
    state text not null default 'open' check (state in ('open', 'fenced', 'closed')),
    -- How many memories must be restored here before writes resume; null if no rows are awaited.
    awaited bigint,
    primary key (tenant_id, first_bucket),
    exclude using gist (tenant_id with =, int4range(first_bucket, last_bucket, '[]') with &&)
);
alter table placements enable row level security;
create policy of_tenant on placements
    using (tenant_id = (select current_tenant())) with check (tenant_id = (select current_tenant()));
grant select on placements to recollect_service;

-- Whether this server serves a scope: upkeep leaves out the scopes of others. A server alone serves every scope.
create function is_served(asked_scope bigint) returns boolean
    language sql stable
    return not exists (select from server_identity)
        or exists (
            select from placements
            where tenant_id = asked_scope >> 40 and (asked_scope >> 28 & 4095) between first_bucket and last_bucket
              and state <> 'closed');

-- Whether upkeep may write to a scope: it is served here, and its tenant is not suspended.
create function is_writable(asked_scope bigint) returns boolean
    language sql stable
    return is_served(asked_scope)
        and not exists (select from placements where tenant_id = asked_scope >> 40 and state = 'fenced');

-- The number of the locks that keep the writes of a tenant and its suspension apart.
create function placement_lock() returns integer
    language sql immutable parallel safe
    return 7077;

-- Refuse a write to a tenant whose writes are suspended. A restore may write to buckets that await their rows.
create function check_writable(asked_tenant integer, asked_bucket integer, restoring boolean) returns void
    language plpgsql security definer
    set search_path = pg_catalog, public, pg_temp
as $$
begin
    if exists (select from placements where tenant_id = asked_tenant and state = 'fenced'
               and not (restoring and awaited is not null)
               and coalesce(asked_bucket between first_bucket and last_bucket, true)) then
        raise exception 'The writes of the tenant are suspended.' using errcode = 'RC002';
    end if;
end $$;
revoke execute on function check_writable(integer, integer, boolean) from public;
grant execute on function check_writable(integer, integer, boolean) to recollect_service;

-- Bind a transaction to the buckets of one placement, and refuse it if it goes by an old map. A write also keeps a
-- suspension waiting until it has ended: it takes a lock first, and then looks with a snapshot of its own.
create function check_placement(
    asked_tenant integer, asked_bucket integer, known_generation integer, writing boolean, restoring boolean
) returns void
    language plpgsql security definer
    set search_path = pg_catalog, public, pg_temp
as $$
declare
    served record;
begin
    if writing then
        perform pg_advisory_xact_lock_shared(placement_lock(), asked_tenant);
    end if;
    select first_bucket, last_bucket, generation, state into served from placements
    where tenant_id = asked_tenant and asked_bucket between first_bucket and last_bucket;
    if not found or served.generation <> known_generation or served.state = 'closed' then
        raise exception 'The buckets are served elsewhere.' using errcode = 'RC001';
    elsif writing then
        perform check_writable(asked_tenant, asked_bucket, restoring);
    end if;
    perform set_config('recollect.first_bucket', greatest(served.first_bucket, 0)::text, true),
            set_config('recollect.last_bucket', served.last_bucket::text, true);
end $$;
revoke execute on function check_placement(integer, integer, integer, boolean, boolean) from public;
grant execute on function check_placement(integer, integer, integer, boolean, boolean) to recollect_service;

-- The same without a map: for a job, which works for one server, and for a write on a server alone. Without a bucket, some
-- part of the tenant must be served here.
create function check_served(asked_tenant integer, asked_bucket integer, writing boolean, restoring boolean) returns void
    language plpgsql security definer
    set search_path = pg_catalog, public, pg_temp
as $$
begin
    if writing then
        perform pg_advisory_xact_lock_shared(placement_lock(), asked_tenant);
    end if;
    if exists (select from server_identity) and not exists (
        select from placements where tenant_id = asked_tenant and state <> 'closed'
        and coalesce(asked_bucket between first_bucket and last_bucket, true)
    ) then
        raise exception 'The buckets are served elsewhere.' using errcode = 'RC001';
    elsif writing then
        perform check_writable(asked_tenant, asked_bucket, restoring);
    end if;
end $$;
revoke execute on function check_served(integer, integer, boolean, boolean) from public;
grant execute on function check_served(integer, integer, boolean, boolean) to recollect_service;

-- Suspend the writes of a tenant on this server: wait for those under way, and refuse those that come.
create function suspend_writes(asked_tenant integer) returns void
    language plpgsql as $$
begin
    perform pg_advisory_xact_lock(placement_lock(), asked_tenant);
    if not exists (select from server_identity) then
        insert into placements (tenant_id, first_bucket, last_bucket, generation) values (asked_tenant, -1, 4095, 1)
        on conflict do nothing;
    end if;
    update placements set state = 'fenced' where tenant_id = asked_tenant and state = 'open';
end $$;
revoke execute on function suspend_writes(integer) from public;

-- Resume them under the next generation, if all memories are here that are awaited.
create function resume_writes(asked_tenant integer) returns void
    language plpgsql as $$
declare
    lacking bigint;
begin
    perform pg_advisory_xact_lock(placement_lock(), asked_tenant);
    -- Row-level security binds the owner, too.
    perform set_config('recollect.tenant', asked_tenant::text, true);
    select max(awaited) - (select coalesce(sum(memory_count), 0) from scopes where tenant_id = asked_tenant) into lacking
    from placements where tenant_id = asked_tenant and state = 'fenced';
    if lacking > 0 then
        raise exception '% memories are not restored yet.', lacking using errcode = 'RC005', detail = lacking;
    end if;
    update placements set state = 'open', generation = generation + 1, awaited = null
    where tenant_id = asked_tenant and state = 'fenced';
end $$;
revoke execute on function resume_writes(integer) from public;
