-- Who may ask: roles, tenants, keys, scopes, and the one rule that keeps tenants apart.

create extension if not exists vector;
create extension if not exists ltree;
create extension if not exists btree_gist;

do $$
begin
    if (select string_to_array(extversion, '.')::int[] < array[0, 8] from pg_extension where extname = 'vector') then
        raise exception 'Recollect needs pgvector 0.8 or newer: update the extension, then migrate again.';
    end if;
end $$;

-- The service's role owns nothing and cannot pass row-level security. Give it a password to let it log in.
do $$
begin
    if not exists (select from pg_roles where rolname = 'recollect_service') then
        create role recollect_service login nosuperuser nobypassrls;
    end if;
exception when duplicate_object or unique_violation then null;
end $$;

-- The last resort against statements of callers who have left; every transaction sets a shorter limit of its own.
do $$
begin
    alter role recollect_service set statement_timeout = '60s';
    alter role recollect_service set lock_timeout = '20s';
exception when insufficient_privilege then
    raise notice 'Set statement_timeout and lock_timeout of recollect_service yourself: see the deployment page.';
end $$;

-- The matcher owns one function and reads one table: see 0003.
do $$
begin
    if not exists (select from pg_roles where rolname = 'recollect_matcher') then
        create role recollect_matcher nologin nosuperuser nobypassrls;
    end if;
exception when duplicate_object or unique_violation then null;
end $$;

-- An owner who is no superuser may hand a function to the matcher only as its member.
do $$
begin
    if not pg_has_role(current_user, 'recollect_matcher', 'set') then
        execute format('grant recollect_matcher to %I', current_user);
    end if;
end $$;

grant usage on schema public to recollect_service, recollect_matcher;

create table tenants (
    id integer generated always as identity primary key check (id between 1 and 8388607),
    name text not null unique,
    created_at timestamptz not null default clock_timestamp()
);
-- The worker walks the tenants by number; their names are the operator's alone.
grant select (id) on tenants to recollect_service;

-- Set per transaction, never per session. Unset or empty means nobody, and nobody sees nothing.
create function current_tenant() returns bigint
    language sql stable parallel safe
    return nullif(current_setting('recollect.tenant', true), '')::bigint;

-- A scope's number begins with its tenant's (bits 40 and up), so that one range on the first column of every
-- key is the whole policy: no tenant column in the rows, and index-only scans stay index-only.
create function first_scope() returns bigint
    language sql stable parallel safe
    return current_tenant() << 40;

create function last_scope() returns bigint
    language sql stable parallel safe
    return current_tenant() << 40 | 1099511627775;

create function presented_key() returns bytea
    language sql stable parallel safe
    return decode(nullif(current_setting('recollect.key', true), ''), 'hex');

create table api_keys (
    tenant_id integer not null references tenants,
    id uuid not null default gen_random_uuid(),
    secret_hash bytea not null unique check (length(secret_hash) = 32),
    name text not null,
    rights text[] not null check (rights <@ array['read', 'write', 'admin'] and cardinality(rights) > 0),
    trust smallint not null check (trust between 0 and 100),
    created_at timestamptz not null default clock_timestamp(),
    revoked_at timestamptz,
    primary key (tenant_id, id)
);
alter table api_keys enable row level security;
alter table api_keys force row level security;
create policy of_tenant on api_keys
    using (tenant_id = (select current_tenant())) with check (tenant_id = (select current_tenant()));
-- Whoever shows a secret may see the key it belongs to: this is how a caller becomes a tenant.
create policy of_presenter on api_keys for select using (secret_hash = (select presented_key()));
grant select, insert on api_keys to recollect_service;
grant update (revoked_at) on api_keys to recollect_service;

create sequence scope_numbers as bigint maxvalue 1099511627775;
grant usage on sequence scope_numbers to recollect_service;

create table scopes (
    id bigint primary key,
    tenant_id integer not null references tenants,
    agent text not null,
    "user" text not null,
    memory_count bigint not null default 0,
    event_count bigint not null default 0,
    thought_count bigint not null default 0,
    chat_count bigint not null default 0,
    term_count bigint not null default 0,
    unreflected_importance double precision not null default 0,
    unreflected_events integer not null default 0,
    last_written_at timestamptz not null default '-infinity',
    approximate_space integer,
    unique (tenant_id, agent, "user"),
    check (id >> 40 = tenant_id)
) with (fillfactor = 70);
alter table scopes enable row level security;
alter table scopes force row level security;
create policy of_tenant on scopes
    using (tenant_id = (select current_tenant())) with check (tenant_id = (select current_tenant()));
grant select, insert on scopes to recollect_service;
grant update (
    memory_count, event_count, thought_count, chat_count, term_count,
    unreflected_importance, unreflected_events, last_written_at
) on scopes to recollect_service;

-- What an agent goes by in all its scopes, where a call says nothing else.
create table agents (
    tenant_id integer not null references tenants,
    agent text not null,
    profile jsonb not null default '{}',
    metadata jsonb not null default '{}',
    primary key (tenant_id, agent)
);
alter table agents enable row level security;
alter table agents force row level security;
create policy of_tenant on agents
    using (tenant_id = (select current_tenant())) with check (tenant_id = (select current_tenant()));
grant select, insert, update on agents to recollect_service;

-- Put the policy of scoped tables on one of them; used by every migration that adds such a table.
create function protect_scoped(protected regclass) returns void
    language plpgsql as $$
begin
    execute format('alter table %s enable row level security', protected);
    execute format('alter table %s force row level security', protected);
    execute format(
        'create policy of_tenant on %s to recollect_service '
        'using (scope_id >= (select first_scope()) and scope_id <= (select last_scope())) '
        'with check (scope_id >= (select first_scope()) and scope_id <= (select last_scope()))', protected);
    execute format('grant select, insert, update, delete on %s to recollect_service', protected);
end $$;
revoke execute on function protect_scoped(regclass) from public;
