-- name: create
-- The catalog: a small separate database of the locations of all data. It has no content, and no call waits for it:
-- every process has a copy.
do $$
begin
    if not exists (select from pg_roles where rolname = 'recollect_service') then
        create role recollect_service login nosuperuser nobypassrls;
    end if;
exception when duplicate_object or unique_violation then null;
end $$;

create extension if not exists btree_gist;

-- Each server stores this ID with its own number, so that a server of another catalog is refused.
create table if not exists catalog_identity (
    single boolean primary key default true check (single),
    id uuid not null default gen_random_uuid()
);
insert into catalog_identity default values on conflict do nothing;
grant select on catalog_identity to recollect_service;

create table if not exists shards (
    -- The number in the identity of the server.
    id smallint primary key check (id > 0),
    name text not null unique check (name ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
    service_address text not null,
    owner_address text not null,
    -- Past a pooler, for listeners and workers.
    direct_address text not null default '',
    state text not null default 'open' check (state in ('open', 'draining'))
);
-- The owner's addresses are only for operators.
grant select (id, name, service_address, direct_address, state) on shards to recollect_service;

-- Tenants are numbered here, not by their servers.
create table if not exists tenants (
    id integer primary key generated always as identity check (id between 1 and 8388607),
    name text not null unique,
    created_at timestamptz not null default clock_timestamp()
);

-- Together the placements of a tenant have every bucket from -1 (data of no scope) to 4095 once.
create table if not exists placements (
    tenant_id integer not null references tenants,
    first_bucket smallint not null check (first_bucket between -1 and 4095),
    last_bucket smallint not null check (last_bucket between first_bucket and 4095),
    shard_id smallint not null references shards,
    generation integer not null check (generation > 0),
    primary key (tenant_id, first_bucket),
    exclude using gist (tenant_id with =, int4range(first_bucket, last_bucket, '[]') with &&)
);
create index if not exists placements_by_shard on placements (shard_id);
grant select on placements to recollect_service;

-- Notify processes with a copy of the map which tenant has changed; for shards, with an empty text.
create or replace function tell_tenant() returns trigger
    language plpgsql as $$
begin
    perform pg_notify('recollect_map', coalesce(new.tenant_id, old.tenant_id)::text);
    return null;
end $$;
create or replace trigger tell_tenant after insert or update or delete on placements
    for each row execute function tell_tenant();

create or replace function tell_shards() returns trigger
    language plpgsql as $$
begin
    perform pg_notify('recollect_map', '');
    return null;
end $$;
create or replace trigger tell_shards after insert or update or delete on shards
    for each statement execute function tell_shards()
