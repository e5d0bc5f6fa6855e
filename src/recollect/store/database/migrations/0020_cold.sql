-- Cold scopes: a scope that nobody touched for long lies in object storage, and comes back when it is asked for.

alter table scopes
    -- Where its rows are: here (`hot`), here and about to leave unless somebody asks for it (`leaving`), or in an object.
    add column tier text not null default 'hot' check (tier in ('hot', 'leaving', 'cold')),
    -- Since when; null for one that was never anything but hot.
    add column tier_since timestamptz;
grant update (tier, tier_since) on scopes to recollect_service;
create index scopes_hot_by_time on scopes (written_hour) where tier = 'hot';
create index scopes_leaving on scopes (tier_since) where tier = 'leaving';

-- Who meets a scope that is not hot is told so by an error that names it, and cannot take it for an empty one. A list, which
-- reads no rows of scopes, shows it (`shown`), and so does who moves it (`moving`). Of another tenant nothing is told.
create function meet_cold(met_tenant integer, met_scope bigint) returns boolean
    language plpgsql stable cost 10000 as $$
begin
    if met_tenant is distinct from current_tenant() or current_setting('recollect.cold', true) in ('shown', 'moving') then
        return true;
    end if;
    raise exception 'The scope is not hot.' using errcode = 'RC003', detail = met_scope::text;
end $$;
alter policy of_tenant on scopes
    using (tenant_id = (select current_tenant())
           and (id between (select first_scope()) and (select last_scope())) is true and (tier = 'hot' or meet_cold(tenant_id, id)));

-- The objects of scopes. A row is there before its object is, and goes after it.
create table cold_objects (
    scope_id bigint not null,
    name text not null,
    -- On its way out; what its scope comes back from; or of no use to anybody and to be removed.
    state text not null default 'writing' check (state in ('writing', 'held', 'unneeded')),
    since timestamptz not null default clock_timestamp(),
    bytes bigint,
    sha256 text,
    -- How many rows it holds, by table.
    counts jsonb not null default '{}',
    -- When something in it comes to its end by itself or by a rule: the first expiry of a memory, the longest idle
    -- conversation, the first that was deleted, the oldest recall that is kept.
    expires_at timestamptz,
    idle_since timestamptz,
    deleted_at timestamptz,
    recalled_at timestamptz,
    primary key (scope_id, name)
);
select protect_scoped('cold_objects');
create unique index cold_objects_held on cold_objects (scope_id) where state = 'held';
create index cold_objects_left on cold_objects (since) where state <> 'held';

-- The keys that objects are sealed with, one of each tenant, wrapped by the operator's master key.
create table tenant_keys (
    tenant_id integer not null references tenants on delete cascade,
    version integer not null check (version > 0),
    wrapped bytea not null,
    -- Which master key it is wrapped by: the beginning of its hash.
    wrapped_by text not null,
    made_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, version)
);
alter table tenant_keys enable row level security;
alter table tenant_keys force row level security;
create policy of_tenant on tenant_keys
    using (tenant_id = (select current_tenant())) with check (tenant_id = (select current_tenant()));
grant select, insert on tenant_keys to recollect_service;
grant update (wrapped, wrapped_by) on tenant_keys to recollect_service;

-- Let mirrors compare a scope that left or came back with the record: they hold what is hot.
create function remirror(moved_scope bigint) returns void
    language plpgsql as $$
begin
    if exists (select from mirrors) then
        update mirror_positions set position = 0 where scope_id = moved_scope;
        perform note_unmirrored(id, change_number) from scopes where id = moved_scope and change_number > 0;
    end if;
end $$;

create policy of_upkeep on cold_objects to recollect_upkeep using (true);
create policy of_upkeep on accesses to recollect_upkeep using (true);
grant select (scope_id, name, state, since, bytes, expires_at, idle_since, deleted_at, recalled_at) on cold_objects
    to recollect_upkeep;
grant update (state, since) on cold_objects to recollect_upkeep;
grant select (tier, tier_since, written_hour, last_written_at, followed_until), update (tier, tier_since) on scopes
    to recollect_upkeep;
grant select (scope_id, last_accessed_at) on accesses to recollect_upkeep;
grant select (accessed_at) on access_log to recollect_upkeep;

-- Mark scopes that nobody wrote to, recalled from or followed for so many days: whoever asks for one takes the mark away.
create function mark_leaving(days double precision, most integer) returns bigint
    language plpgsql security definer
    set search_path = pg_catalog, public, pg_temp
    set plan_cache_mode = force_custom_plan
as $$
declare
    before timestamptz := now() - days * interval '1 day';
    marked bigint;
begin
    update scopes set tier = 'leaving', tier_since = clock_timestamp()
    where id in (
        select id from scopes
        where tier = 'hot' and written_hour <= before at time zone 'UTC' and last_written_at <= before and memory_count > 0
          and is_writable(id) and coalesce(tier_since, '-infinity') <= before and coalesce(followed_until, '-infinity') < now()
          and not exists (select from access_log where scope_id = scopes.id and accessed_at > before)
          and not exists (select from accesses where scope_id = scopes.id and last_accessed_at > before)
        limit most
        for no key update skip locked);
    get diagnostics marked = row_count;
    return marked;
end $$;

-- Scopes that are marked for as many seconds, and cold ones in which a rule of retention may have something to do.
create function due_to_move(
    wanted text, seconds double precision,
    archive_days double precision, delete_days double precision, purge_days double precision, recall_days double precision,
    after bigint, most integer
) returns setof bigint
    language plpgsql stable security definer
    set search_path = pg_catalog, public, pg_temp
    set plan_cache_mode = force_custom_plan
as $$
begin
    if wanted = 'freeze' then
        return query select id from scopes
        where tier = 'leaving' and tier_since <= now() - seconds * interval '1 second' and id > after and is_writable(id)
        order by id limit most;
        return;
    end if;
    return query
    select held.scope_id from cold_objects held
    join scopes on scopes.id = held.scope_id
    left join agents on agents.tenant_id = scopes.tenant_id and agents.agent = scopes.agent
    cross join lateral (
        select coalesce((profile ->> 'archive_after_days')::float8, archive_days) as archive_days,
               coalesce((profile ->> 'delete_after_days')::float8, delete_days) as delete_days,
               coalesce((profile ->> 'purge_after_days')::float8, purge_days) as purge_days
    ) rule
    where held.state = 'held' and held.scope_id > after and is_served(held.scope_id)
      and (held.expires_at <= now()
           or held.idle_since <= now() - least(nullif(rule.archive_days, 0), nullif(rule.delete_days, 0)) * interval '1 day'
           or held.deleted_at <= now() - nullif(rule.purge_days, 0) * interval '1 day'
           or held.recalled_at <= now() - nullif(recall_days, 0) * interval '1 day')
    order by held.scope_id limit most;
end $$;

-- Objects to remove: those that are of no use, and after some seconds those of attempts that were broken off.
create function objects_to_remove(seconds double precision, most integer) returns table (scope_id bigint, name text)
    language sql security definer
    set search_path = pg_catalog, public, pg_temp
as $$
    update cold_objects set state = 'unneeded'
    where state = 'writing' and since <= now() - seconds * interval '1 second' and is_writable(scope_id);
    select scope_id, name from cold_objects where state = 'unneeded' and is_served(scope_id) order by since limit most
$$;

-- How many scopes are cold, and about to become so, and how many bytes their objects have, over all tenants.
create function cold_standing() returns table (cold bigint, leaving bigint, bytes bigint, unneeded bigint)
    language sql stable security definer
    set search_path = pg_catalog, public, pg_temp
as $$
    select (select count(*) from cold_objects where state = 'held' and is_served(scope_id)),
           (select count(*) from scopes where tier = 'leaving' and is_served(id)),
           (select coalesce(sum(bytes), 0)::bigint from cold_objects where state = 'held' and is_served(scope_id)),
           (select count(*) from cold_objects where state <> 'held' and is_served(scope_id))
$$;

select hand_to_upkeep(
    'mark_leaving(double precision, integer)',
    'due_to_move(text, double precision, double precision, double precision, double precision, double precision, '
        'bigint, integer)',
    'objects_to_remove(double precision, integer)', 'cold_standing()');
