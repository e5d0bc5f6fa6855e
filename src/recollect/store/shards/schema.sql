-- name: create
-- The catalog: a small database of its own, which says where everything lies. It has no content, and no call waits for
-- it: every process keeps what it says.
do $$
begin
    if not exists (select from pg_roles where rolname = 'recollect_service') then
        create role recollect_service login nosuperuser nobypassrls;
    end if;
exception when duplicate_object or unique_violation then null;
end $$;

create extension if not exists btree_gist;

create table if not exists shards (
    id smallint primary key generated always as identity,
    name text not null unique check (name ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
    service_address text not null,
    owner_address text not null,
    -- Past a pooler, for whoever listens or works.
    direct_address text not null default '',
    -- Of the service's role, for reads.
    replica_addresses text[] not null default '{}',
    state text not null default 'open' check (state in ('open', 'draining'))
);
-- The owner's addresses are for operators alone.
grant select (id, name, service_address, direct_address, replica_addresses, state) on shards to recollect_service;

-- Tenants are numbered here, not by their servers.
create table if not exists tenants (
    id integer primary key generated always as identity check (id between 1 and 8388607),
    name text not null unique,
    created_at timestamptz not null default clock_timestamp()
);

-- Together the placements of a tenant hold every bucket from -1 (what belongs to no scope) to 4095 once.
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

-- A move of some buckets of a tenant: how far it has come. A shard's name in the middle of one is not needed by callers.
create table if not exists moves (
    id integer primary key generated always as identity,
    tenant_id integer not null references tenants,
    first_bucket smallint not null,
    last_bucket smallint not null,
    source smallint not null references shards,
    target smallint not null references shards check (target <> source),
    -- `switched` is the decision: until then the source is in charge, from then on the target.
    state text not null default 'copying' check (state in ('copying', 'fenced', 'switched', 'done', 'ended')),
    begun_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz,
    -- Why it was given up.
    reason text not null default ''
);
-- One at a time of a tenant: its fence is one lock.
create unique index if not exists moves_under_way on moves (tenant_id) where state not in ('done', 'ended');

-- Whoever keeps a copy of the map is told of which tenant it has changed; of shards, by an empty word.
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
