-- Who may ask, and what is done for whom: roles, tenants, keys, scopes, the one rule that keeps tenants apart, jobs, and
-- what calls of models cost.

create extension if not exists vector;
create extension if not exists ltree;
create extension if not exists btree_gist;
create extension if not exists pg_trgm;

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

-- The matcher owns the few functions that row-level security would keep from an index, and reads their tables alone.
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

-- Tenants are numbered in blocks of 1,024, so that servers that number their own do not meet. A server alone takes one block
-- after the other; where it begins is up to `recollect migrate --first-block`. Number 0 is nobody's.
create table tenant_blocks (
    block integer primary key check (block between 0 and 8191),
    used integer not null default 0 check (used between 0 and 1024)
);

create function next_tenant() returns integer
    language plpgsql as $$
declare
    open_block integer;
    number integer;
begin
    lock table tenant_blocks in exclusive mode;
    open_block := (select min(block) from tenant_blocks where used < 1024);
    if open_block is null then
        insert into tenant_blocks (block) select coalesce(max(block) + 1, 0) from tenant_blocks returning block into open_block;
    end if;
    update tenant_blocks set used = used + case when block = 0 and used = 0 then 2 else 1 end
    where block = open_block returning block * 1024 + used - 1 into number;
    return number;
end $$;
revoke execute on function next_tenant() from public;

create table tenants (
    id integer primary key default next_tenant() check (id between 1 and 8388607),
    name text not null unique,
    created_at timestamptz not null default clock_timestamp(),
    -- How many tokens enrichment may spend a day; null means as configured.
    tokens_per_day bigint check (tokens_per_day >= 0),
    -- What all of its keys together may ask of one process; null means without a limit.
    requests_per_second double precision check (requests_per_second > 0), burst integer check (burst > 0),
    bytes_per_minute bigint check (bytes_per_minute > 0),
    largest_body integer check (largest_body > 0),
    change_streams integer check (change_streams > 0)
);
-- The names of tenants are the operator's alone.
grant select (id, tokens_per_day, requests_per_second, burst, bytes_per_minute, largest_body, change_streams)
    on tenants to recollect_service;

-- Set per transaction, never per session. Unset or empty means nobody, and nobody sees nothing.
create function current_tenant() returns bigint
    language sql stable parallel safe
    return nullif(current_setting('recollect.tenant', true), '')::bigint;

-- A scope's number is its tenant's (bits 40 and up), its bucket (12 bits, see core/service/numbers.py) and a number within
-- the bucket (28 bits). So one range on the first column of every key is a tenant, which is the whole policy, and a smaller
-- one a bucket: no tenant column in the rows, and index-only scans stay index-only. Where a tenant lies on several servers,
-- whoever asks is bound to the buckets of one placement (see `check_placement`).
create function first_scope() returns bigint
    language sql stable parallel safe
    return (current_tenant() << 12 | coalesce(nullif(current_setting('recollect.first_bucket', true), '')::bigint, 0)) << 28;

create function last_scope() returns bigint
    language sql stable parallel safe
    return (current_tenant() << 12 | coalesce(nullif(current_setting('recollect.last_bucket', true), '')::bigint, 4095)) << 28
        | 268435455;

-- The key that changes something; null where a library or a job does.
create function current_key() returns uuid
    language sql stable parallel safe
    return nullif(current_setting('recollect.key_id', true), '')::uuid;

create function presented_key() returns bytea
    language sql stable parallel safe
    return decode(nullif(current_setting('recollect.key', true), ''), 'hex');

create table api_keys (
    tenant_id integer not null references tenants,
    id uuid not null default gen_random_uuid(),
    secret_hash bytea not null unique check (length(secret_hash) = 32),
    name text not null,
    rights text[] not null check (rights <@ array['read', 'write', 'admin', 'delegate'] and cardinality(rights) > 0),
    trust smallint not null check (trust between 0 and 100),
    created_at timestamptz not null default clock_timestamp(),
    revoked_at timestamptz,
    -- Whom it may name; null means any. The service may not change them: a key is bound for as long as it lives.
    agent text,
    "user" text,
    expires_at timestamptz,
    -- The key that it was made by and ends with: a session of the console, or a key for a product's own user. There is no
    -- foreign key: a parent that is gone refuses as one that is revoked.
    parent uuid,
    -- To the day: written by the first request of a day.
    last_used_at timestamptz,
    -- What it may ask of one process, together with the keys that it made; null means without a limit.
    requests_per_second double precision check (requests_per_second > 0), burst integer check (burst > 0),
    bytes_per_minute bigint check (bytes_per_minute > 0),
    largest_body integer check (largest_body > 0),
    change_streams integer check (change_streams > 0),
    primary key (tenant_id, id),
    constraint children_expire check (parent is null or expires_at is not null),
    constraint bound_from_the_agent_on check (agent is not null or "user" is null)
);
alter table api_keys enable row level security;
alter table api_keys force row level security;
create policy of_tenant on api_keys
    using (tenant_id = (select current_tenant())) with check (tenant_id = (select current_tenant()));
-- Whoever shows a secret may see the key it belongs to: this is how a caller becomes a tenant.
create policy of_presenter on api_keys for select using (secret_hash = (select presented_key()));
grant select, insert on api_keys to recollect_service;
grant update (revoked_at, last_used_at) on api_keys to recollect_service;
create index expiring_keys on api_keys (expires_at) where expires_at is not null;

-- The key at the top of those that a key ends with, or itself; null, and not let in, if one is revoked, expired or gone.
create function root_key(tenant integer, shown uuid) returns uuid
    language plpgsql stable as $$
declare
    looked_at uuid := shown;
    root uuid;
begin
    while looked_at is not null loop
        root := looked_at;
        select k.parent into looked_at from api_keys k
        where k.tenant_id = tenant and k.id = root and k.revoked_at is null
          and (k.expires_at is null or k.expires_at > clock_timestamp());
        if not found then
            return null;
        end if;
    end loop;
    return root;
end $$;

-- How many scopes a bucket of a tenant has had: a number is given once, and moves with its tenant.
create table scope_counters (
    tenant_id integer not null references tenants,
    bucket smallint not null check (bucket between 0 and 4095),
    last_number integer not null check (last_number between 1 and 268435455),
    primary key (tenant_id, bucket)
) with (fillfactor = 70);
alter table scope_counters enable row level security;
alter table scope_counters force row level security;
create policy of_tenant on scope_counters
    using (tenant_id = (select current_tenant())) with check (tenant_id = (select current_tenant()));
grant select, insert on scope_counters to recollect_service;
grant update (last_number) on scope_counters to recollect_service;

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
    unreflected_memories integer not null default 0,
    last_written_at timestamptz not null default '-infinity',
    approximate_space integer,
    -- The space whose vectors carry importance here: that of the approximate index, from the time it is begun.
    folded_space integer,
    -- Whether anything was ever filed under keywords, names of entities or topics, or rests on evidence: a recall does not
    -- ask for the others.
    has_keywords boolean not null default false,
    has_names boolean not null default false,
    has_topics boolean not null default false,
    has_evidence boolean not null default false,
    -- The number of the newest row of its change log.
    change_number bigint not null default 0,
    -- Until when somebody listens for its changes: whoever logs one tells them. Renewed while they follow.
    followed_until timestamptz,
    -- What the indexes of the list hold instead of columns that every write changes: the hour of the last write, and the
    -- size, from 16 on in steps of a twelfth. Most writes change neither, and so write to no index.
    written_hour timestamp not null generated always as (date_trunc('hour', last_written_at at time zone 'UTC')) stored,
    size_step integer not null generated always as (
        case when memory_count < 16 then memory_count else floor(8 * ln(memory_count::float8) / ln(2::float8)) end
    ) stored,
    unique (tenant_id, agent, "user"),
    check (id >> 40 = tenant_id)
) with (fillfactor = 70);
-- What the planner knows of the names of scopes would tell a reader those of other tenants, by its estimates.
alter table scopes alter agent set statistics 0, alter "user" set statistics 0;
create index scopes_by_time on scopes (tenant_id, written_hour desc);
create index scopes_by_size on scopes (tenant_id, size_step desc, id desc);
alter table scopes enable row level security;
alter table scopes force row level security;
-- Lists go by other indexes than that of the numbers: so the range of the buckets is no condition of an index.
create policy of_tenant on scopes
    using (tenant_id = (select current_tenant())
           and (id between (select first_scope()) and (select last_scope())) is true)
    with check (tenant_id = (select current_tenant()));
grant select, insert on scopes to recollect_service;
grant update (
    memory_count, event_count, thought_count, chat_count, term_count,
    unreflected_importance, unreflected_memories, last_written_at, has_keywords, has_names, has_topics, has_evidence,
    change_number, followed_until, "user"
) on scopes to recollect_service;

-- Note that a scope has what is asked for by one channel only.
create function note_filed() returns trigger
    language plpgsql as $$
begin
    case tg_table_name
    when 'memory_keywords' then
        update scopes set has_keywords = true where id in (select scope_id from filed) and not has_keywords;
    when 'mentions' then
        update scopes set has_names = true where id in (select scope_id from filed) and not has_names;
    when 'topics' then
        update scopes set has_topics = true where id in (select scope_id from filed) and not has_topics;
    when 'evidence' then
        update scopes set has_evidence = true where id in (select scope_id from filed) and not has_evidence;
    end case;
    return null;
end $$;

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
-- Agents with rules of their own for upkeep.
create index agents_retaining on agents (tenant_id, agent)
    where profile ?| array['archive_after_days', 'delete_after_days', 'purge_after_days'];
create index agents_fading on agents (tenant_id, agent) where profile ? 'fading_days';
create index agents_closing on agents (tenant_id, agent) where profile ? 'idle_minutes';

-- What an erasure removed from the scopes of a user, or of one agent if it is named, by table, in numbers.
create table erasure_receipts (
    tenant_id integer not null references tenants,
    id uuid not null default gen_random_uuid(),
    agent text not null default '',
    "user" text not null,
    asked_by text not null,
    scopes integer not null default 0,
    removed jsonb not null default '{}',
    begun_at timestamptz not null default clock_timestamp(),
    -- Null while it is under way; a job goes on with what was broken off.
    erased_at timestamptz,
    -- When no mirror had any of it either.
    finished_at timestamptz,
    -- How many other servers have not reported that nothing is left there; on these themselves 0.
    unreported integer not null default 0,
    -- What became of it in each mirror, by its name.
    mirrors jsonb not null default '{}',
    primary key (tenant_id, id)
);
alter table erasure_receipts enable row level security;
alter table erasure_receipts force row level security;
create policy of_tenant on erasure_receipts
    using (tenant_id = (select current_tenant())) with check (tenant_id = (select current_tenant()));
grant select, insert on erasure_receipts to recollect_service;
grant update (scopes, removed, erased_at, finished_at, unreported, mirrors) on erasure_receipts to recollect_service;
create index erasure_receipts_by_time on erasure_receipts (tenant_id, begun_at desc);

-- Put the policy of scoped tables on one of them; used by every file that makes such a table.
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

-- Jobs: the engine's own tables, used by the service's role; jobs carry ids, never content.
grant select, insert, update, delete
    on procrastinate_jobs, procrastinate_events, procrastinate_periodic_defers, procrastinate_workers
    to recollect_service;
grant usage on sequence procrastinate_jobs_id_seq, procrastinate_events_id_seq, procrastinate_periodic_defers_id_seq
    to recollect_service;
-- A write asks whether its scope has a job waiting already; the engine indexes locks of running jobs only.
create index waiting_jobs_by_lock on procrastinate_jobs (lock) where status = 'todo';
create index failed_jobs_by_lock on procrastinate_jobs (lock) where status = 'failed';
-- The engine's tables know no tenants: whoever asks for a tenant's jobs says so in the query, and finds them by this.
create index unfinished_jobs_by_tenant on procrastinate_jobs (((args ->> 'scope_id')::bigint >> 40), id)
    where status in ('todo', 'doing', 'failed');

-- Why a job failed the last time: the engine keeps when, not why. Our own errors' words, which never quote content.
create table job_failures (
    job_id bigint primary key references procrastinate_jobs on delete cascade,
    reason text not null,
    failed_at timestamptz not null default clock_timestamp()
);
grant select, insert, update on job_failures to recollect_service;

-- What was done for a job, written in the transaction that does it. It goes with the job, which nobody can run again then.
create table job_effects (
    scope_id bigint not null,
    key text not null check (length(key) between 1 and 255),
    job_id bigint not null references procrastinate_jobs on delete cascade,
    done_at timestamptz not null default clock_timestamp(),
    primary key (scope_id, key)
);
select protect_scoped('job_effects');
create index job_effects_of_job on job_effects (job_id);

-- How far a job is that takes more than a moment; `total` is null where nobody knows.
create table job_progress (
    job_id bigint primary key references procrastinate_jobs on delete cascade,
    done bigint not null,
    total bigint,
    updated_at timestamptz not null default clock_timestamp()
);
grant select, insert, update on job_progress to recollect_service;

-- Every step that was taken and every call of a model: who, for what, at which cost, and how it went.
create table ledger (
    scope_id bigint not null,
    tenant_id bigint not null generated always as (scope_id >> 40) stored,
    id uuid not null default gen_random_uuid(),
    at timestamptz not null default clock_timestamp(),
    step text not null,
    model text not null default '', -- empty where no model was asked
    prompt_version text not null default '',
    prompt_tokens bigint not null default 0,
    completion_tokens bigint not null default 0,
    -- In the currency of the configured prices; null where none is configured.
    price double precision,
    milliseconds double precision not null,
    outcome text not null,
    calls bigint not null default 1, -- more than one where a day was added up
    source_id uuid, -- what it was done for: a segment, or nothing named
    primary key (scope_id, at, id)
);
select protect_scoped('ledger');
create index ledger_by_time on ledger (tenant_id, at) include (prompt_tokens, completion_tokens);
-- By time alone, for upkeep over all tenants. A line that sums up a day has the first moment of the day.
create index ledger_lines on ledger (at) where (at at time zone 'UTC')::time <> '00:00';
create index ledger_sums on ledger (at) where (at at time zone 'UTC')::time = '00:00';
