-- Mirrors in other engines: which there are, how far each has followed in every scope, and which receipts wait for them.

-- A mirror is filled beside the one that answers, and takes its place when it is whole: each filling is a generation.
create table mirrors (
    name text not null check (name ~ '^[a-z0-9_]{1,40}$'),
    generation integer not null check (generation > 0),
    state text not null default 'building' check (state in ('building', 'ready')),
    -- The record that it was filled from, and whose vectors it holds.
    incarnation uuid not null,
    space_id integer,
    -- How many times it was written to. It keeps the number itself: if it knows a lower one, it has lost what it had.
    beats bigint not null default 0,
    -- The number of this server, where it is one of several: the names that the engine knows begin with it.
    shard smallint not null default 0,
    made_at timestamptz not null default clock_timestamp(),
    primary key (name, generation)
);
create unique index mirrors_one_each on mirrors (name, state);
grant select, insert, update, delete on mirrors to recollect_service;

-- The newest change of a scope that a mirror has acknowledged; what it has not is kept in the log, within a bound.
create table mirror_positions (
    scope_id bigint not null,
    mirror text not null,
    generation integer not null,
    position bigint not null,
    applied_at timestamptz not null default clock_timestamp(),
    primary key (scope_id, mirror, generation)
) with (fillfactor = 70);
select protect_scoped('mirror_positions');

-- Scopes with changes that not every mirror has: the number of the newest, written with it.
create table unmirrored (
    scope_id bigint primary key,
    number bigint not null,
    since timestamptz not null default clock_timestamp()
) with (fillfactor = 70);
select protect_scoped('unmirrored');

-- Whether this server has a scope: not if it was erased, or if another server has it now.
create function is_present(asked_scope bigint) returns boolean
    language sql stable
    return is_served(asked_scope) and exists (select from scopes where id = asked_scope);

-- A receipt of a purge or an erasure is finished when every mirror has followed to this number, and was seen not to have
-- what is gone.
create table awaited_mirrors (
    scope_id bigint not null,
    receipt_id uuid not null,
    mirror text not null,
    number bigint not null,
    primary key (scope_id, receipt_id, mirror)
);
select protect_scoped('awaited_mirrors');

-- Let the worker know that a scope has changed, where there is a mirror. A tenant's scopes are fed together: the job bears
-- the first number that a scope of the tenant could have.
create function note_unmirrored(changed_scope bigint, changed_number bigint) returns void
    language plpgsql as $$
declare
    first_of_tenant bigint := changed_scope >> 40 << 40;
begin
    insert into unmirrored (scope_id, number) values (changed_scope, changed_number)
    on conflict (scope_id) do update set number = excluded.number;
    perform procrastinate_defer_jobs_v1(array[
        row('mirror', 'mirror', 0, 'mirror:' || first_of_tenant, null,
            jsonb_build_object('scope_id', first_of_tenant), null)::procrastinate_job_to_defer_v1])
    where not exists (select from procrastinate_jobs where lock = 'mirror:' || first_of_tenant and status = 'todo');
end $$;

-- What has been erased from the record is awaited of every mirror that there is; return of how many.
create function await_mirrors(asked_scope bigint, receipt uuid) returns bigint
    language sql as $$
    with awaited as (
        insert into awaited_mirrors (scope_id, receipt_id, mirror, number)
        select distinct asked_scope, receipt, mirrors.name, scopes.change_number
        from mirrors, scopes where scopes.id = asked_scope
        on conflict (scope_id, receipt_id, mirror) do update set number = excluded.number
        returning mirror
    )
    select count(*) from awaited
$$;

create policy of_upkeep on unmirrored to recollect_upkeep using (true);
create policy of_upkeep on mirror_positions to recollect_upkeep using (true);
create policy of_upkeep on awaited_mirrors to recollect_upkeep using (true);
grant select on unmirrored, mirrors to recollect_upkeep;
grant select (scope_id, mirror, generation, position) on mirror_positions to recollect_upkeep;
grant select (scope_id, mirror) on awaited_mirrors to recollect_upkeep;

-- How a mirror stands over all tenants: how many scopes it holds, in how many it lacks something, and since how many seconds
-- at most.
create function mirror_standing(asked_mirror text, asked_generation integer)
    returns table (scopes bigint, behind bigint, seconds double precision)
    language sql stable security definer
    set search_path = pg_catalog, public, pg_temp
as $$
    with lacking as materialized (
        select unmirrored.scope_id, unmirrored.since, coalesce(held.position, 0) as position
        from unmirrored left join mirror_positions held
            on held.scope_id = unmirrored.scope_id and held.mirror = asked_mirror and held.generation = asked_generation
        where unmirrored.number > coalesce(held.position, 0)
    )
    select (select count(*) from mirror_positions held
            where held.mirror = asked_mirror and held.generation = asked_generation),
           count(*),
           coalesce(extract(epoch from clock_timestamp() - min(coalesce((
               select at from changes where changes.scope_id = lacking.scope_id and number = lacking.position + 1
           ), lacking.since))), 0)::float8
    from lacking
$$;
select hand_to_upkeep('mirror_standing(text, integer)');
