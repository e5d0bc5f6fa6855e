-- Upkeep over all tenants: one statement finds what is due in any of them, and reads as much as is due.

-- This role owns the functions below and reads what they look at; nobody logs in as it.
do $$
begin
    if not exists (select from pg_roles where rolname = 'recollect_upkeep') then
        create role recollect_upkeep nologin nosuperuser nobypassrls;
    end if;
exception when duplicate_object or unique_violation then null;
end $$;
do $$
begin
    if not pg_has_role(current_user, 'recollect_upkeep', 'set') then
        -- Without inheriting it: the owner may hand functions over, and sees no more rows than before.
        execute format('grant recollect_upkeep to %I with inherit false, set true', current_user);
    end if;
exception when insufficient_privilege then
    raise exception 'Another owner has made the role recollect_upkeep on this server: as a superuser, run "grant '
        'recollect_upkeep to %".', current_user;
end $$;
grant usage on schema public to recollect_upkeep;

-- Let functions read with the rights of this role, and nobody but the service call them.
create function hand_to_upkeep(variadic handed regprocedure[]) returns void
    language plpgsql as $$
declare
    each regprocedure;
begin
    grant create on schema public to recollect_upkeep;
    foreach each in array handed loop
        execute format('revoke execute on function %s from public', each);
        execute format('grant execute on function %s to recollect_service', each);
        execute format('alter function %s owner to recollect_upkeep', each);
    end loop;
    revoke create on schema public from recollect_upkeep;
end $$;
revoke execute on function hand_to_upkeep(regprocedure[]) from public;

do $$
declare
    read text;
begin
    foreach read in array array[
        'pending_embeddings', 'access_log', 'memories', 'conversations', 'segments', 'scopes', 'agents', 'beliefs',
        'idempotency_keys', 'shown_memories', 'recalls', 'ledger', 'changes', 'change_readers', 'api_keys',
        'placements'] loop
        execute format('create policy of_upkeep on %I to recollect_upkeep using (true)', read);
    end loop;
end $$;
grant select (scope_id) on pending_embeddings, access_log to recollect_upkeep;
grant select (scope_id, expires_at, withheld) on memories to recollect_upkeep;
grant select (scope_id, id, state, synced, last_number, running, idle_since, idle_hour, changed_at) on conversations
    to recollect_upkeep;
grant select (scope_id, conversation_id, state) on segments to recollect_upkeep;
grant select (id, tenant_id, agent, "user", memory_count, change_number) on scopes to recollect_upkeep;
grant select on agents, placements, server_identity, procrastinate_jobs, job_failures to recollect_upkeep;
grant select (scope_id, id, superseded_at, invalid_at, withheld_for) on beliefs to recollect_upkeep;
grant select (scope_id, key, created_at), delete on idempotency_keys to recollect_upkeep;
grant select (scope_id, conversation_id, memory_id, computed_at), delete on shown_memories to recollect_upkeep;
grant select (scope_id, id), delete on recalls to recollect_upkeep;
grant select (scope_id, number, at), delete on changes to recollect_upkeep;
grant select (scope_id, position) on change_readers to recollect_upkeep;
grant select (tenant_id, id, parent, expires_at, revoked_at), delete on api_keys to recollect_upkeep;
grant select (scope_id, tenant_id, id, at), delete on ledger to recollect_upkeep;

-- Scopes that want a job of a kind, in the order of their numbers; `usual` is what holds where an agent says nothing.
create function due_scopes(wanted text, usual double precision, after bigint, most integer) returns setof bigint
    language plpgsql stable security definer
    set search_path = pg_catalog, public, pg_temp
    set plan_cache_mode = force_custom_plan
as $$
begin
    case wanted
    when 'embed' then return query
        select distinct scope_id from pending_embeddings
        where scope_id > after and is_writable(scope_id) order by scope_id limit most;
    when 'fold' then return query
        select distinct scope_id from access_log
        where scope_id > after and is_writable(scope_id) order by scope_id limit most;
    when 'sync_state' then return query
        select distinct scope_id from conversations
        where scope_id > after and not synced and is_writable(scope_id) order by scope_id limit most;
    when 'rederive' then return query
        select distinct scope_id from memories
        where scope_id > after and withheld = 'to_rederive' and is_writable(scope_id) order by scope_id limit most;
    when 'mirror' then return query
        -- The scopes of a tenant are fed by one job. Of those that another server has now, mirrors have to let go.
        select distinct scope_id >> 40 << 40 from unmirrored
        where scope_id > after + 1099511627775 or after = 0 order by 1 limit most;
    when 'held' then return query
        select distinct scope_id from mirror_positions
        where scope_id > after and is_served(scope_id) and exists (select from scopes where id = scope_id)
        order by scope_id limit most;
    when 'awaited' then return query
        select distinct scope_id from awaited_mirrors
        where scope_id > after and is_served(scope_id) order by scope_id limit most;
    when 'expire' then return query
        select distinct scope_id from memories
        where expires_at <= now() and withheld is null and scope_id > after and is_writable(scope_id)
        order by scope_id limit most;
    when 'fill' then return query
        select id from scopes where id > after and memory_count > 0 and tier <> 'cold' and is_writable(id) order by id limit most;
    when 'fade' then return query
        -- Either all scopes but those of the agents that say otherwise, or those of the agents that say so alone.
        select scopes.id from scopes
        left join agents on agents.tenant_id = scopes.tenant_id and agents.agent = scopes.agent
        where usual > 0 and scopes.id > after and memory_count > 0 and tier = 'hot' and is_writable(scopes.id)
          and coalesce((profile ->> 'fading_days')::float8, usual) > 0
        union all
        select scopes.id from agents
        join scopes on scopes.tenant_id = agents.tenant_id and scopes.agent = agents.agent
        where usual <= 0 and scopes.id > after and memory_count > 0 and tier = 'hot' and is_writable(scopes.id)
          and profile ? 'fading_days' and (profile ->> 'fading_days')::float8 > 0
        order by 1 limit most;
    when 'enrich' then return query
        -- Where a segment waits, or a conversation has become silent.
        with shortest as materialized (
            select least(nullif(usual, 0), min((profile ->> 'idle_minutes')::float8)) as minutes from agents
            where profile ? 'idle_minutes' and (profile ->> 'idle_minutes')::float8 > 0
        )
        select segments.scope_id from segments
        join conversations on conversations.scope_id = segments.scope_id and conversations.id = segments.conversation_id
        where segments.scope_id > after and segments.state = 'closed' and is_writable(segments.scope_id)
          and conversations.state in ('active', 'archived') and conversations.synced
        union
        select silent.scope_id from conversations silent
        join scopes on scopes.id = silent.scope_id
        left join agents on agents.tenant_id = scopes.tenant_id and agents.agent = scopes.agent
        cross join lateral (
            select coalesce((profile ->> 'idle_minutes')::float8, usual) as minutes
        ) rule
        where silent.scope_id > after and silent.running and is_writable(silent.scope_id)
          and silent.state in ('active', 'archived') and silent.synced
          and silent.idle_hour <= (now() - (select minutes from shortest) * interval '1 minute') at time zone 'UTC'
          and rule.minutes > 0 and idle_since <= now() - rule.minutes * interval '1 minute'
        order by 1 limit most;
    end case;
end $$;

-- Conversations that may be due to move on by the rules of their agents or by the usual ones; 0 days is never.
create function due_conversations(
    archive_days double precision, delete_days double precision, purge_days double precision,
    after_scope bigint, after_id text, most integer
) returns table (
    scope_id bigint, agent text, "user" text, profile jsonb, id text, state text, last_number bigint,
    idle_since timestamptz, changed_at timestamptz)
    language plpgsql stable security definer
    set search_path = pg_catalog, public, pg_temp
    set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    idle_days double precision := least(nullif(archive_days, 0), nullif(delete_days, 0));
begin
    return query
    with ruled as materialized (
        select tenant_id, agents.agent, agents.profile,
               coalesce((agents.profile ->> 'archive_after_days')::float8, archive_days) as archive_days,
               coalesce((agents.profile ->> 'delete_after_days')::float8, delete_days) as delete_days,
               coalesce((agents.profile ->> 'purge_after_days')::float8, purge_days) as purge_days
        from agents
        where agents.profile ?| array['archive_after_days', 'delete_after_days', 'purge_after_days']
    ), overdue as (
        select scope_id, id from conversations
        where id <> '' and state = 'active' and idle_hour <= (now() - idle_days * interval '1 day') at time zone 'UTC'
          and idle_since <= now() - idle_days * interval '1 day'
        union all
        select scope_id, id from conversations
        where state = 'archived'
          and idle_hour <= (now() - nullif(delete_days, 0) * interval '1 day') at time zone 'UTC'
          and idle_since <= now() - nullif(delete_days, 0) * interval '1 day'
        union all
        select scope_id, id from conversations
        where state = 'deleted' and changed_at <= now() - nullif(purge_days, 0) * interval '1 day'
    ), found as (
        select scopes.agent, scopes."user", ruled.profile, conversations.scope_id, conversations.id
        from ruled
        join scopes on scopes.tenant_id = ruled.tenant_id and scopes.agent = ruled.agent
        join conversations on conversations.scope_id = scopes.id
        -- The journal of a scope stays as long as its events do.
        where conversations.id <> '' and case conversations.state
            when 'active' then idle_since <=
                now() - least(nullif(ruled.archive_days, 0), nullif(ruled.delete_days, 0)) * interval '1 day'
            when 'archived' then idle_since <= now() - nullif(ruled.delete_days, 0) * interval '1 day'
            when 'deleted' then changed_at <= now() - nullif(ruled.purge_days, 0) * interval '1 day'
            else false end
        union all
        select scopes.agent, scopes."user", agents.profile, overdue.scope_id, overdue.id
        from overdue
        join scopes on scopes.id = overdue.scope_id
        left join agents on agents.tenant_id = scopes.tenant_id and agents.agent = scopes.agent
        where not coalesce(
            agents.profile ?| array['archive_after_days', 'delete_after_days', 'purge_after_days'], false)
    )
    select found.scope_id, found.agent, found."user", found.profile, found.id, conversations.state,
           conversations.last_number, conversations.idle_since, conversations.changed_at
    from (
        select * from found
        where (found.scope_id, found.id) > (after_scope, after_id) and is_writable(found.scope_id)
        order by found.scope_id, found.id
        limit most
    ) found
    join conversations on conversations.scope_id = found.scope_id and conversations.id = found.id
    order by found.scope_id, found.id;
end $$;

-- Facts that have come to their end while they were believed, and are still in the indexes.
create function ended_facts(most integer) returns table (scope_id bigint, id uuid)
    language sql stable security definer
    set search_path = pg_catalog, public, pg_temp
as $$
    select scope_id, id from beliefs
    where superseded_at is null and invalid_at <= now() and withheld_for is null and is_writable(scope_id)
    order by invalid_at limit most
$$;

-- Tenants whose lines of the ledger can be added up.
create function tenants_to_add_up() returns setof bigint
    language sql stable security definer
    set search_path = pg_catalog, public, pg_temp
as $$
    select distinct tenant_id from ledger
    where at < date_trunc('day', clock_timestamp(), 'UTC') - interval '48 hours'
      and (at at time zone 'UTC')::time <> '00:00' and is_writable(scope_id)
$$;

-- Delete the oldest of what is kept for a time only, and say how many.
create function prune_kept(kept text, before timestamptz, most integer) returns bigint
    language plpgsql security definer
    set search_path = pg_catalog, public, pg_temp
    set plan_cache_mode = force_custom_plan
as $$
declare
    -- Ids begin with the millisecond of their writing.
    milliseconds bigint := floor(extract(epoch from before) * 1000) + 1;
    first_id uuid := (lpad(to_hex(milliseconds), 12, '0') || repeat('0', 20))::uuid;
    gone bigint;
begin
    case kept
    when 'keys' then
        delete from idempotency_keys where (scope_id, key) in (
            select scope_id, key from idempotency_keys
            where created_at < before and is_writable(scope_id) order by created_at limit most);
    when 'shown_memories' then
        delete from shown_memories where (scope_id, conversation_id, memory_id) in (
            select scope_id, conversation_id, memory_id from shown_memories
            where computed_at < before and is_writable(scope_id) order by computed_at limit most);
    when 'recalls' then
        delete from recalls where (scope_id, id) in (
            select scope_id, id from recalls where id < first_id and is_writable(scope_id) order by id limit most);
    when 'changes' then
        -- Those that a reader has not read are kept longer.
        delete from changes where (scope_id, number) in (
            select scope_id, number from changes
            where at < before and is_writable(scope_id) and not exists (
                select from change_readers reader
                where reader.scope_id = changes.scope_id and reader.position < changes.number
                union all
                select from mirror_positions mirrored
                where mirrored.scope_id = changes.scope_id and mirrored.position < changes.number)
            limit most);
    when 'unread_changes' then
        delete from changes where (scope_id, number) in (
            select scope_id, number from changes where at < before and is_writable(scope_id) limit most);
    when 'expired_keys' then
        delete from api_keys where (tenant_id, id) in (
            select tenant_id, id from api_keys
            where expires_at < before order by expires_at limit most);
    when 'costs' then
        delete from ledger where (scope_id, at, id) in (
            select scope_id, at, id from ledger
            where at < before and (at at time zone 'UTC')::time = '00:00' and is_writable(scope_id)
            union all
            select scope_id, at, id from ledger
            where at < before and (at at time zone 'UTC')::time <> '00:00' and is_writable(scope_id)
            limit most);
    end case;
    get diagnostics gone = row_count;
    return gone;
end $$;

-- The numbers of the newest changes of scopes that a process follows, of all tenants at once; not of those that have gone.
create function newest_changes(followed bigint[]) returns table (scope_id bigint, number bigint)
    language sql stable security definer
    set search_path = pg_catalog, public, pg_temp
as $$
    select id, change_number from scopes where id = any (followed) and is_served(id)
$$;

-- Those of the keys of a process's followers that are still let in.
create function standing_keys(tenants integer[], shown uuid[]) returns setof uuid
    language sql stable security definer
    set search_path = pg_catalog, public, pg_temp
as $$
    select given.key from unnest(tenants, shown) as given (tenant, key) where root_key(given.tenant, given.key) is not null
$$;

select hand_to_upkeep(
    'due_scopes(text, double precision, bigint, integer)',
    'due_conversations(double precision, double precision, double precision, bigint, text, integer)',
    'ended_facts(integer)', 'tenants_to_add_up()', 'prune_kept(text, timestamptz, integer)',
    'newest_changes(bigint[])', 'standing_keys(integer[], uuid[])');

-- Whether the jobs of a queue wait for the chat model, which may take minutes to answer, or not answer at all.
create function waits_for_chat(queue character varying) returns boolean
    language sql immutable parallel safe
    return queue = any ('{enrich,reflect,rederive}'::text[]);

-- Workers take turns by tenant: a tenant's jobs that wait, those without a time before those with one. What is done for no
-- tenant in particular has a turn of its own, that of number 0.
create index waiting_jobs_by_turn on procrastinate_jobs (
    coalesce((args ->> 'scope_id')::bigint >> 40, 0), waits_for_chat(queue_name), coalesce(scheduled_at, '-infinity'), id)
    where status = 'todo';

-- Whether a job that waits may begin: of its lock none runs, and none waits before it.
create function can_begin(job procrastinate_jobs) returns boolean
    language sql stable as $$
    select job.lock is null or not exists (
        select from procrastinate_jobs other where other.lock = job.lock and other.status = 'doing'
    ) and not exists (
        select from procrastinate_jobs other
        where other.lock = job.lock and other.status = 'todo' and (other.priority, -other.id) > (job.priority, -job.id)
    )
$$;

-- Take the next job for a worker: of the first tenant after the given one that has a job which could begin, its oldest. The
-- engine's own function takes the oldest of all, for which a tenant with many jobs lets every other one wait. Of a tenant
-- that has as many jobs in this worker as may wait for the chat model, one that does not.
create function take_job(worker bigint, after_tenant bigint, queues text[], most_chats integer)
    returns setof procrastinate_jobs
    language plpgsql
    set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
as $$
declare
    moment timestamptz := clock_timestamp();
    turn bigint := after_tenant;
    lap integer := 0;
    chosen bigint;
begin
    loop
        turn := (
            select coalesce((args ->> 'scope_id')::bigint >> 40, 0) from procrastinate_jobs
            where status = 'todo' and coalesce((args ->> 'scope_id')::bigint >> 40, 0) > turn
            order by coalesce((args ->> 'scope_id')::bigint >> 40, 0) limit 1);
        if turn is null or lap = 1 and turn > after_tenant then
            exit when lap = 1;
            lap := 1;
            turn := -1;
            continue;
        end if;
        select min(least(fresh.id, due.id)) into chosen
        from unnest(case
            when (select count(*) from procrastinate_jobs
                  where status = 'doing' and worker_id = worker and waits_for_chat(queue_name)
                    and coalesce((args ->> 'scope_id')::bigint >> 40, 0) = turn) >= most_chats
            then array[false] else array[false, true] end) as kind (chats)
        left join lateral (
            select job.id from procrastinate_jobs job
            where job.status = 'todo' and coalesce((job.args ->> 'scope_id')::bigint >> 40, 0) = turn
              and waits_for_chat(job.queue_name) = kind.chats
              and coalesce(job.scheduled_at, '-infinity') = '-infinity' and can_begin(job)
              and (queues is null or job.queue_name = any (queues))
            order by job.id limit 1 for update skip locked
        ) fresh on true
        left join lateral (
            select job.id from procrastinate_jobs job
            where job.status = 'todo' and coalesce((job.args ->> 'scope_id')::bigint >> 40, 0) = turn
              and waits_for_chat(job.queue_name) = kind.chats
              and coalesce(job.scheduled_at, '-infinity') > '-infinity'
              and coalesce(job.scheduled_at, '-infinity') <= moment and can_begin(job)
              and (queues is null or job.queue_name = any (queues))
            order by coalesce(job.scheduled_at, '-infinity'), job.id limit 1 for update skip locked
        ) due on true;
        if chosen is not null then
            return query update procrastinate_jobs set status = 'doing', worker_id = worker where id = chosen returning *;
            return;
        end if;
    end loop;
end $$;
