-- The whole schema as all migrations leave it, made by `make schema`; the job engine's objects are left out.
CREATE TYPE public.place AS (
	scope_id bigint,
	memory_count bigint,
	approximate_space integer,
	space_id integer,
	model text,
	dimensions integer,
	"precision" text,
	profile jsonb,
	has_keywords boolean,
	has_names boolean,
	has_topics boolean,
	has_evidence boolean
);

CREATE FUNCTION public.absorb_topic(asked_scope bigint, absorbed uuid, heir uuid) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    insert into topic_links
    select asked_scope, heir, memory_id, activation, diffusion, independence, occurred_at, kind, trust, withheld_for
    from topic_links where scope_id = asked_scope and topic_id = absorbed
    on conflict (scope_id, topic_id, memory_id) do update
    set activation = excluded.activation, diffusion = excluded.diffusion, independence = excluded.independence,
        occurred_at = excluded.occurred_at
    where excluded.occurred_at > topic_links.occurred_at;
    insert into related_topics (scope_id, topic_id, memory_id, related_id, place)
    select asked_scope, heir, memory_id, related_id, last_place(asked_scope, heir, memory_id) + place
    from related_topics where scope_id = asked_scope and topic_id = absorbed
    on conflict do nothing;
    insert into related_topics (scope_id, topic_id, memory_id, related_id, place)
    select asked_scope, topic_id, memory_id, heir, place
    from related_topics where scope_id = asked_scope and related_id = absorbed and topic_id <> absorbed
    on conflict do nothing;
    delete from related_topics
    where scope_id = asked_scope and (related_id = absorbed or (topic_id = heir and related_id = heir));
    delete from topic_links where scope_id = asked_scope and topic_id = absorbed;
    delete from topics where scope_id = asked_scope and id = absorbed;
end $$;

CREATE FUNCTION public.add_version(asked_scope bigint, elder uuid, heir uuid, moment timestamp with time zone, is_contested boolean, is_revision boolean) RETURNS integer
    LANGUAGE sql
    AS $$
    insert into beliefs
        (scope_id, id, lineage, version, subject_id, predicate, object_id, valid_at, invalid_at, created_at,
         superseded_at, contested, revises)
    select asked_scope, heir, before.lineage,
           1 + (select max(version) from beliefs every
                where every.scope_id = asked_scope and every.lineage = before.lineage),
           before.subject_id, before.predicate, before.object_id, before.valid_at, before.invalid_at, moment,
           case when is_contested then moment end, is_contested, is_revision
    from beliefs before where before.scope_id = asked_scope and before.id = elder
    returning version
$$;

CREATE FUNCTION public.alike_terms(asked_scope bigint, asked_terms bigint[], rare_terms bigint[], fewest integer, asked_kind text, min_trust smallint, expected integer, most integer) RETURNS SETOF uuid
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
begin
    if (asked_scope between first_scope() and last_scope()) is not true then
        return;
    end if;
    if fewest = cardinality(asked_terms) then
        return query
        select t.id from memory_terms t
        where t.scope_id = asked_scope and t.terms @> asked_terms and t.kind = asked_kind and t.trust >= min_trust
        order by abs(cardinality(t.terms) - expected), t.id
        limit most;
    else
        return query
        select t.id from memory_terms t
        where t.scope_id = asked_scope and t.terms && rare_terms and t.kind = asked_kind and t.trust >= min_trust
          and (select count(*) from unnest(t.terms) as held (term) where held.term = any (asked_terms)) >= fewest
        order by abs(cardinality(t.terms) - expected), t.id
        limit most;
    end if;
end $$;

CREATE FUNCTION public.authorize(shown_hash text, asked_agent text, asked_user text, lock_wait text) RETURNS TABLE(tenant_id integer, key_id uuid, name text, rights text[], trust smallint, bound_agent text, bound_user text, counted_as uuid, key_limits double precision[], tenant_limits double precision[], agent text, "user" text, place public.place)
    LANGUAGE plpgsql
    AS $$
declare
    today timestamptz := date_trunc('day', statement_timestamp(), 'UTC');
    ancestor uuid;
    used_at timestamptz;
begin
    -- A statement cannot shorten its own time limit, but it can wait less long for locks.
    perform set_config('recollect.key', shown_hash, true), set_config('lock_timeout', lock_wait, true);
    select k.tenant_id, k.id, k.name, k.rights, k.trust, k.agent, k."user",
           coalesce(nullif(asked_agent, ''), k.agent, ''), coalesce(nullif(asked_user, ''), k."user", ''),
           k.parent, k.last_used_at, k.id,
           limits_of(k.requests_per_second, k.burst, k.bytes_per_minute, k.largest_body, k.change_streams),
           limits_of(t.requests_per_second, t.burst, t.bytes_per_minute, t.largest_body, t.change_streams)
        into tenant_id, key_id, name, rights, trust, bound_agent, bound_user, agent, "user", ancestor, used_at,
             counted_as, key_limits, tenant_limits
        from api_keys k join tenants t on t.id = k.tenant_id where k.secret_hash = decode(shown_hash, 'hex') and k.revoked_at is null
        and (k.expires_at is null or k.expires_at > clock_timestamp());
    if not found then
        return;
    end if;
    perform set_config('recollect.tenant', tenant_id::text, true);
    -- A child ends with the key that made it, and counts as that one.
    if ancestor is not null then
        counted_as := root_key(tenant_id, ancestor);
        if counted_as is null then
            return;
        end if;
        key_limits := (
            select limits_of(k.requests_per_second, k.burst, k.bytes_per_minute, k.largest_body, k.change_streams)
            from api_keys k where k.tenant_id = authorize.tenant_id and k.id = counted_as);
    end if;
    if used_at is distinct from today then
        perform note_use(tenant_id, key_id, today);
    end if;
    if agent <> coalesce(bound_agent, agent) or "user" <> coalesce(bound_user, "user") then
        agent := null;
        "user" := null;
    else
        place := locate(agent, "user");
    end if;
    return next;
end $$;

CREATE FUNCTION public.await_entity_vector() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    if not exists (select from embedding_spaces where state = 'active') then
        return null;
    end if;
    insert into pending_embeddings (scope_id, id)
    select distinct scope_id, entity_id from mentioned
    where description <> '' or not exists (
        select from mentions other
        where other.scope_id = mentioned.scope_id and other.normalised = mentioned.normalised
          and other.entity_id = mentioned.entity_id and other.source_id <> mentioned.source_id
    )
    on conflict do nothing;
    return null;
end $$;

CREATE FUNCTION public.await_mirrors(asked_scope bigint, receipt uuid) RETURNS bigint
    LANGUAGE sql
    AS $$
    with awaited as (
        insert into awaited_mirrors (scope_id, receipt_id, mirror, number)
        select distinct asked_scope, receipt, mirrors.name, scopes.change_number
        from mirrors, scopes where scopes.id = asked_scope
        on conflict (scope_id, receipt_id, mirror) do update set number = excluded.number
        returning mirror
    )
    select count(*) from awaited
$$;

CREATE FUNCTION public.belief_of(asked_scope bigint, asked_id uuid) RETURNS timestamp with time zone[]
    LANGUAGE plpgsql STABLE
    AS $$
begin
    return (select array[valid_at, invalid_at, superseded_at, case when contested then created_at end] from beliefs
            where scope_id = asked_scope and id between asked_id and asked_id order by id limit 1);
end $$;

CREATE TABLE public.incarnations (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    begun_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE FUNCTION public.change_channel() RETURNS text
    LANGUAGE sql STABLE
    RETURN (SELECT ('recollect_'::text || replace((incarnations.id)::text, '-'::text, ''::text)) FROM public.incarnations);

CREATE FUNCTION public.check_placement(asked_tenant integer, asked_bucket integer, known_generation integer, writing boolean, restoring boolean) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
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

CREATE FUNCTION public.check_served(asked_tenant integer, asked_bucket integer, writing boolean, restoring boolean) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
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

CREATE FUNCTION public.check_writable(asked_tenant integer, asked_bucket integer, restoring boolean) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    if exists (select from placements where tenant_id = asked_tenant and state = 'fenced'
               and not (restoring and awaited is not null)
               and coalesce(asked_bucket between first_bucket and last_bucket, true)) then
        raise exception 'The writes of the tenant are suspended.' using errcode = 'RC002';
    end if;
end $$;

CREATE FUNCTION public.close_versions(asked_scope bigint, asked_ids uuid[], moment timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    insert into beliefs (scope_id, id, lineage, version, created_at)
    select scope_id, id, id, 1, created_at from memories where scope_id = asked_scope and id = any (asked_ids)
    on conflict (scope_id, id) do nothing;
    update beliefs set superseded_at = moment
    where scope_id = asked_scope and id = any (asked_ids) and superseded_at is null;
    perform withhold_memories(asked_scope, asked_ids, 'past');
end $$;

CREATE FUNCTION public.cold_standing() RETURNS TABLE(cold bigint, leaving bigint, bytes bigint, unneeded bigint)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    select (select count(*) from cold_objects where state = 'held' and is_served(scope_id)),
           (select count(*) from scopes where tier = 'leaving' and is_served(id)),
           (select coalesce(sum(bytes), 0)::bigint from cold_objects where state = 'held' and is_served(scope_id)),
           (select count(*) from cold_objects where state <> 'held' and is_served(scope_id))
$$;

CREATE FUNCTION public.compare_field(field jsonb, operand jsonb) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN ((jsonb_typeof(field) = 'number'::text) AND (jsonb_typeof(operand) = 'number'::text)) THEN (sign(((field)::numeric - (operand)::numeric)))::integer WHEN (((field #>> '{}'::text[]) COLLATE "C") < ((operand #>> '{}'::text[]) COLLATE "C")) THEN '-1'::integer WHEN (((field #>> '{}'::text[]) COLLATE "C") = ((operand #>> '{}'::text[]) COLLATE "C")) THEN 0 WHEN (((field #>> '{}'::text[]) COLLATE "C") > ((operand #>> '{}'::text[]) COLLATE "C")) THEN 1 ELSE NULL::integer END;

CREATE FUNCTION public.count_erasure(asked_scope bigint, gone uuid[], to_rederive uuid[], lost uuid[]) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    AS $$
begin
    return (with touched as materialized (select unnest(gone || to_rederive) as id), unsaid as (
        select coalesce(jsonb_array_length(attachments), 0) as attachments from messages
        where scope_id = asked_scope and id = any (gone)
        union all
        select coalesce(jsonb_array_length(attachments), 0) from past_messages
        where scope_id = asked_scope and id = any (gone)
    ), logged as materialized (
        select distinct access.id from access_log, unnest(access_log.ids) as access (id)
        where access_log.scope_id = asked_scope
    ), accessed as (
        select id from accesses where scope_id = asked_scope and id in (select id from touched)
        union
        select memories.id from logged join touched using (id)
        join memories on memories.scope_id = asked_scope and memories.id = logged.id and memories.withheld is null
    ), kept as (
        select last_accessed_at from withheld_memories where scope_id = asked_scope and id in (select id from touched)
    )
    select jsonb_build_object(
        'to_rederive', (select count(*) from memories where scope_id = asked_scope and id = any (to_rederive)
                    and withheld is distinct from 'to_rederive'),
        'vectors', count_vectors(asked_scope, gone || to_rederive),
        'terms', (select count(*) from memory_terms where scope_id = asked_scope and id in (select id from touched))
            + (select count(*) from kept),
        'keywords', (select coalesce(sum(cardinality(keywords)), 0) from memories
                     where scope_id = asked_scope and id in (select id from touched)),
        'accesses', (select count(*) from accessed)
            + (select count(*) from kept where last_accessed_at is not null),
        'feedback', (select count(*) from feedback
                     where scope_id = asked_scope and memory_id in (select id from touched)),
        'evidence', (select count(*) from evidence where scope_id = asked_scope
            and (memory_id = any (gone) or (memory_id = any (to_rederive) and source_id = any (lost)))),
        'idempotency_keys', (select count(*) from idempotency_keys named where scope_id = asked_scope
            and exists (select from unnest(named.memory_ids) as made (id) join touched using (id))),
        'messages', (select count(*) from unsaid),
        'attachments', (select coalesce(sum(attachments), 0) from unsaid),
        'derived', cardinality(gone) - (select count(*) from unsaid)));
end $$;

CREATE FUNCTION public.count_in(asked_scope bigint, kinds text[], terms bigint) RETURNS void
    LANGUAGE sql
    AS $$
    update scopes
    set memory_count = memory_count + cardinality(kinds),
        event_count = event_count + cardinality(array_positions(kinds, 'event')),
        thought_count = thought_count + cardinality(array_positions(kinds, 'thought')),
        chat_count = chat_count + cardinality(array_positions(kinds, 'chat')),
        term_count = term_count + terms
    where id = asked_scope
$$;

CREATE FUNCTION public.count_out(asked_scope bigint, kinds text[]) RETURNS bigint
    LANGUAGE sql
    AS $$
    update scopes
    set memory_count = scopes.memory_count - cardinality(kinds),
        event_count = event_count - cardinality(array_positions(kinds, 'event')),
        thought_count = thought_count - cardinality(array_positions(kinds, 'thought')),
        chat_count = chat_count - cardinality(array_positions(kinds, 'chat')),
        term_count = scopes.term_count - before.share
    from (
        select least(term_count, term_count * cardinality(kinds) / greatest(memory_count, 1)) as share
        from scopes where id = asked_scope
    ) before
    where id = asked_scope
    returning before.share
$$;

CREATE FUNCTION public.count_vectors(asked_scope bigint, asked_ids uuid[]) RETURNS bigint
    LANGUAGE plpgsql STABLE
    AS $_$
declare
    space integer;
    held bigint;
    total bigint := (select count(*) from withheld_vectors where scope_id = asked_scope and id = any (asked_ids));
begin
    for space in select id from embedding_spaces loop
        execute format('select count(*) from %I where scope_id = $1 and id = any ($2)', 'vectors_' || space)
            into held using asked_scope, asked_ids;
        total := total + held;
    end loop;
    return total;
end $_$;

CREATE FUNCTION public.create_embedding_space(space integer, new_model text, new_dimensions integer, new_precision text) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    bytes integer := new_dimensions * case new_precision when 'half' then 2 else 4 end;
    type text := case new_precision when 'half' then 'halfvec' else 'vector' end;
    new_storage text := case when bytes <= 2560 then 'covering' when bytes <= 8000 then 'plain' else 'external' end;
    vectors text := 'vectors_' || space;
begin
    insert into embedding_spaces (id, model, dimensions, precision, storage)
        values (space, new_model, new_dimensions, new_precision, new_storage);
    execute format(
        'create table %I (scope_id bigint not null, id uuid not null, kind text not null, trust smallint not null, '
        'idle boolean not null, importance real, embedding %s(%s) not null '
        'check (%s(embedding) between 0.98 and 1.02), primary key (scope_id, id) %s) '
        'with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_insert_threshold = 5000)',
        vectors, type, new_dimensions, case new_precision when 'half' then 'l2_norm' else 'vector_norm' end,
        case when new_storage = 'covering' then 'include (kind, trust, idle, embedding)' else '' end);
    execute format('alter table %I alter embedding set storage %s, alter embedding set statistics 0', vectors,
                   case when new_storage = 'external' then 'external' else 'plain' end);
    perform protect_scoped(vectors::regclass);
end $$;

CREATE FUNCTION public.current_key() RETURNS uuid
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (NULLIF(current_setting('recollect.key_id'::text, true), ''::text))::uuid;

CREATE FUNCTION public.current_tenant() RETURNS bigint
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (NULLIF(current_setting('recollect.tenant'::text, true), ''::text))::bigint;

CREATE FUNCTION public.derived_from(asked_scope bigint, asked_ids uuid[]) RETURNS SETOF uuid
    LANGUAGE sql STABLE
    AS $$
    with recursive derived (id) as (
        select memory_id from evidence where scope_id = asked_scope and source_id = any (asked_ids)
        union
        select next.memory_id
        from derived cross join lateral (
            select memory_id from evidence where scope_id = asked_scope and source_id = derived.id offset 0
        ) next
    )
    select id from derived
$$;

CREATE FUNCTION public.derived_from_versions(asked_scope bigint, versions uuid[]) RETURNS TABLE(id uuid, learned boolean)
    LANGUAGE sql STABLE
    AS $$
    select memories.id,
           beliefs.subject_id is not null
               or exists (select from segments where segments.scope_id = asked_scope and segments.id = beliefs.lineage)
    from memories
    left join beliefs on beliefs.scope_id = asked_scope and beliefs.id = memories.id
    where memories.scope_id = asked_scope and memories.id = any (array(select derived_from(asked_scope, versions)))
      and memories.id <> all (versions) and beliefs.superseded_at is null
    order by memories.id
$$;

CREATE FUNCTION public.drop_entity_vectors() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    each record;
begin
    for each in
        select scope_id, array_agg(distinct entity_id) as ids from forgotten
        where description <> '' or not exists (
            select from mentions other
            where other.scope_id = forgotten.scope_id and other.normalised = forgotten.normalised
              and other.entity_id = forgotten.entity_id
        )
        group by scope_id
    loop
        delete from entity_vectors where scope_id = each.scope_id and id = any (each.ids);
        insert into pending_embeddings (scope_id, id)
        select each.scope_id, entities.id from entities
        where entities.scope_id = each.scope_id and entities.id = any (each.ids)
          and exists (select from embedding_spaces where state = 'active')
        on conflict do nothing;
    end loop;
    return null;
end $$;

CREATE FUNCTION public.drop_facts_to_rederive() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    dropped uuid[];
    poorer uuid[];
begin
    if not exists (select from memories where scope_id = new.scope_id and id = new.id and withheld = 'to_rederive') then
        return null;
    end if;
    dropped := array(
        select memories.id from memories
        join beliefs on beliefs.scope_id = new.scope_id and beliefs.id = memories.id
        where memories.scope_id = new.scope_id and withheld = 'to_rederive' and subject_id is not null);
    perform learn_again(new.scope_id, dropped);
    while cardinality(dropped) > 0 loop
        with lost as (
            delete from evidence where scope_id = new.scope_id and source_id = any (dropped) returning memory_id
        )
        select array_agg(distinct memory_id) into poorer from lost;
        delete from memories where scope_id = new.scope_id and id = any (dropped);
        dropped := array(
            select id from memories
            where scope_id = new.scope_id and id = any (poorer) and withheld = 'to_rederive'
              and not exists (select from evidence where evidence.scope_id = new.scope_id and memory_id = memories.id));
    end loop;
    return null;
end $$;

CREATE FUNCTION public.drop_items(asked_scope bigint, paths text[], keys text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    for place in 1 .. cardinality(paths) loop
        delete from items where scope_id = asked_scope and path = paths[place] and key = keys[place];
    end loop;
end $$;

CREATE FUNCTION public.drop_related_topics(asked_scope bigint, topic_ids uuid[], memory_ids uuid[]) RETURNS void
    LANGUAGE sql
    SET enable_nestloop TO 'off'
    AS $$
    delete from related_topics related using unnest(topic_ids, memory_ids) as link (topic_id, memory_id)
    where related.scope_id = asked_scope and related.topic_id = link.topic_id and related.memory_id = link.memory_id
$$;

CREATE FUNCTION public.due_conversations(archive_days double precision, delete_days double precision, purge_days double precision, after_scope bigint, after_id text, most integer) RETURNS TABLE(scope_id bigint, agent text, "user" text, profile jsonb, id text, state text, last_number bigint, idle_since timestamp with time zone, changed_at timestamp with time zone)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
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

CREATE FUNCTION public.due_scopes(wanted text, usual double precision, after bigint, most integer) RETURNS SETOF bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
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

CREATE FUNCTION public.due_to_move(wanted text, seconds double precision, archive_days double precision, delete_days double precision, purge_days double precision, recall_days double precision, after bigint, most integer) RETURNS SETOF bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
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

CREATE FUNCTION public.ended_facts(most integer) RETURNS TABLE(scope_id bigint, id uuid)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    select scope_id, id from beliefs
    where superseded_at is null and invalid_at <= now() and withheld_for is null and is_writable(scope_id)
    order by invalid_at limit most
$$;

CREATE FUNCTION public.erase_extracted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    each record;
begin
    for each in
        select scope_id, array_agg(segment_id) as ids from forgotten
        where applied_at is not null or run_id = '00000000-0000-0000-0000-000000000000' group by scope_id
    loop
        delete from mentions where scope_id = each.scope_id and source_id = any (each.ids);
    end loop;
    return null;
end $$;

CREATE FUNCTION public.erase_follower_vectors() RETURNS trigger
    LANGUAGE plpgsql
    AS $_$
declare
    each record;
    space integer;
    followers uuid[];
    affected uuid[];
    lost uuid[];
begin
    for each in select scope_id, array_agg(id) as ids from forgotten where kind = 'message' group by scope_id loop
        followers := array(
            select follower.id from unnest(each.ids) as gone (id)
            cross join lateral (
                (
                    select messages.id, messages.conversation_id from messages
                    where messages.scope_id = each.scope_id and messages.parent_id between gone.id and gone.id
                    order by messages.parent_id
                )
                union all
                select past.id, past.conversation_id from past_messages past
                where past.scope_id = each.scope_id and past.parent_id = gone.id
            ) follower
            cross join lateral (
                select conversations.state from conversations
                where conversations.scope_id = each.scope_id
                  and conversations.id between follower.conversation_id and follower.conversation_id
                order by conversations.id limit 1
            ) conversation
            where conversation.state <> 'purging');
        continue when cardinality(followers) = 0;
        lost := '{}';
        for space in select id from embedding_spaces loop
            affected := array(select id from context_vectors
                             where scope_id = each.scope_id and id = any (followers) and space_id = space);
            continue when cardinality(affected) = 0;
            lost := lost || affected;
            execute format('delete from %I where scope_id = $1 and id = any ($2)', 'vectors_' || space)
                using each.scope_id, affected;
            delete from withheld_vectors
            where scope_id = each.scope_id and id = any (affected) and space_id = space;
            insert into pending_embeddings (scope_id, id)
            select each.scope_id, memories.id from memories
            where memories.scope_id = each.scope_id and memories.id = any (affected) and memories.withheld is null
              and exists (select from embedding_spaces active where active.id = space and active.state = 'active')
            on conflict do nothing;
        end loop;
        if cardinality(lost) > 0 then
            perform log_change(each.scope_id, 'embedded', array(select distinct unnest(lost)));
        end if;
        delete from context_vectors where scope_id = each.scope_id and id = any (followers);
    end loop;
    return null;
end $_$;

CREATE FUNCTION public.erase_keywords() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform unfile(scope_id, array_agg(filed.keyword), array_agg(kind), array_agg(id))
    from forgotten, unnest(forgotten.keywords) as filed (keyword)
    group by scope_id;
    return null;
end $$;

CREATE FUNCTION public.erase_memories(asked_scope bigint, gone uuid[], to_rederive uuid[], lost uuid[]) RETURNS jsonb
    LANGUAGE plpgsql
    AS $$
declare
    touched uuid[] := gone || to_rederive;
    removed jsonb;
begin
    -- Whoever is giving one of them a vector at this moment is waited for.
    perform from memories where scope_id = asked_scope and id = any (touched) order by id for update;
    perform fold_accesses(asked_scope);
    removed := count_erasure(asked_scope, gone, to_rederive, lost);
    with dropped as (
        delete from evidence where scope_id = asked_scope
          and (memory_id = any (gone) or (memory_id = any (to_rederive) and source_id = any (lost)))
    ), unkeyed as (
        delete from idempotency_keys where scope_id = asked_scope and key in (
            select named.key from idempotency_keys named, unnest(named.memory_ids) as made (id)
            where named.scope_id = asked_scope and made.id in (select unnest(touched)))
    ), unsaid as (
        -- Before their memories, so that nobody looks for heirs of what goes as a whole.
        delete from messages where scope_id = asked_scope and id = any (gone)
    )
    delete from past_messages where scope_id = asked_scope and id = any (gone);
    perform withhold_memories(asked_scope, to_rederive, 'to_rederive');
    -- What lost some of its evidence stays as a blank row; recalls that were kept quote it.
    perform erase_recalls_of(asked_scope, array_agg(id), array_agg(content))
    from memories where scope_id = asked_scope and id = any (to_rederive) and content <> '' having count(*) > 0;
    update memories set content = '', speaker = '', subject = '', predicate = '', object = '', keywords = '{}',
        embedding_text = '', metadata = '{}'
    where scope_id = asked_scope and id = any (to_rederive);
    update memory_features set length = 0, tells = 0, speaker = ''
    where scope_id = asked_scope and id = any (to_rederive);
    delete from withheld_memories where scope_id = asked_scope and id = any (to_rederive);
    delete from withheld_vectors where scope_id = asked_scope and id = any (to_rederive);
    delete from feedback where scope_id = asked_scope and memory_id = any (to_rederive);
    update conversations set summary_id = null where scope_id = asked_scope and summary_id = any (gone);
    perform count_out(asked_scope, array(
        select kind from memories where scope_id = asked_scope and id = any (gone) and withheld is null));
    delete from memories where scope_id = asked_scope and id = any (gone);
    return removed;
end $$;

CREATE FUNCTION public.erase_messages() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    -- An event may stand in the journal, which is kept as a conversation.
    if not exists (select from forgotten where kind in ('message', 'event')) then
        return null;
    end if;
    insert into forgotten_messages (scope_id, conversation_id, external_hash, id)
    select message.scope_id, message.conversation_id, sha256(convert_to(message.external_id, 'UTF8')), message.id
    from forgotten cross join lateral (
        (
            select messages.scope_id, conversation_id, external_id, messages.id from messages
            where messages.scope_id = forgotten.scope_id and messages.id between forgotten.id and forgotten.id
            order by messages.id limit 1
        )
        union all
        select past.scope_id, past.conversation_id, past.external_id, past.id from past_messages past
        where past.scope_id = forgotten.scope_id and past.id = forgotten.id
    ) message
    where message.external_id <> '' and exists (
        select from conversations
        where scope_id = message.scope_id and id = message.conversation_id and state <> 'purging')
    on conflict do nothing;
    -- From the oldest of a forgotten stretch downwards, what followed any of it follows what the oldest followed. Rows
    -- are looked up by their keys, one by one (see conversations.sql), and changed where they were found.
    with recursive gone as materialized (
        select message.place, message.scope_id, message.id, message.parent_id
        from forgotten cross join lateral (
            select messages.ctid as place, messages.scope_id, messages.id, messages.parent_id from messages
            where messages.scope_id = forgotten.scope_id and messages.id between forgotten.id and forgotten.id
            order by messages.id limit 1
            for update
        ) message
    ), heir (scope_id, id, parent_id) as (
        select gone.scope_id, gone.id, gone.parent_id
        from gone left join gone above on above.scope_id = gone.scope_id and above.id = gone.parent_id
        where above.id is null
        union all
        select gone.scope_id, gone.id, heir.parent_id
        from heir join gone on gone.scope_id = heir.scope_id and gone.parent_id = heir.id
    ), orphan as materialized (
        select child.place, heir.parent_id
        from heir cross join lateral (
            select messages.ctid as place, messages.scope_id, messages.id from messages
            where messages.scope_id = heir.scope_id and messages.parent_id between heir.id and heir.id
            order by messages.parent_id
            for update
        ) child
        left join gone on gone.scope_id = child.scope_id and gone.id = child.id
        where gone.id is null
    ), adopted as (
        update messages set parent_id = orphan.parent_id from orphan where messages.ctid = orphan.place
    )
    delete from messages using gone where messages.ctid = gone.place;
    return null;
end $$;

CREATE FUNCTION public.erase_recalls() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    each record;
begin
    for each in select scope_id, array_agg(id) as ids, array_agg(content) as said from forgotten group by scope_id loop
        perform erase_recalls_of(each.scope_id, each.ids, each.said);
    end loop;
    return null;
end $$;

CREATE FUNCTION public.erase_recalls_of(asked_scope bigint, asked_ids uuid[], said text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    perform pg_advisory_xact_lock(hashint8extended(asked_scope, 21));
    delete from recalls where scope_id = asked_scope and id = any (array(
        select kept.id from (select id, listed from recalls where scope_id = asked_scope offset 0) kept
        cross join lateral unnest(kept.listed) as listed (memory_id)
        join unnest(asked_ids) as asked (memory_id) using (memory_id)
        union
        select kept.id from (select id, text from recalls where scope_id = asked_scope offset 0) kept
        join unnest(said) as each (content) on btrim(each.content) = btrim(kept.text)
    ));
end $$;

CREATE FUNCTION public.erase_related_topics() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    each record;
begin
    for each in
        select scope_id, array_agg(topic_id) as topics, array_agg(memory_id) as memories from forgotten group by scope_id
    loop
        perform drop_related_topics(each.scope_id, each.topics, each.memories);
        perform tidy_topics(each.scope_id, array(select distinct unnest(each.topics)));
    end loop;
    return null;
end $$;

CREATE FUNCTION public.erase_segments() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    touched uuid[];
    emptied uuid[];
    asked_scope bigint;
begin
    for asked_scope in select distinct scope_id from gone loop
        touched := array(
            select distinct segment.id from gone cross join lateral (
                select segments.id, segments.last_number from segments
                where segments.scope_id = gone.scope_id and segments.conversation_id = gone.conversation_id
                  and segments.first_number <= gone.number
                order by segments.first_number desc limit 1
            ) segment
            where gone.scope_id = asked_scope and segment.last_number >= gone.number);
        continue when cardinality(touched) = 0;
        emptied := array(
            select id from segments where scope_id = asked_scope and id = any (touched) and not exists (
                select from messages
                where messages.scope_id = asked_scope and messages.conversation_id = segments.conversation_id
                  and messages.number between segments.first_number and segments.last_number
            ));
        delete from extractions where scope_id = asked_scope and segment_id = any (touched);
        delete from segments where scope_id = asked_scope and id = any (emptied);
        update segments set state = 'closed', label = '', reason = '', attempts = 0, enriched_at = null
        where scope_id = asked_scope and id = any (touched);
    end loop;
    return null;
end $$;

CREATE FUNCTION public.erase_side_rows() RETURNS trigger
    LANGUAGE plpgsql
    AS $_$
declare
    each record;
begin
    for each in select scope_id, array_agg(id) as ids from forgotten group by scope_id loop
        for place in 0 .. tg_nargs - 1 by 2 loop
            execute format('delete from %I where scope_id = $1 and %I = any ($2)', tg_argv[place], tg_argv[place + 1])
                using each.scope_id, each.ids;
        end loop;
    end loop;
    return null;
end $_$;

CREATE FUNCTION public.erase_vectors() RETURNS trigger
    LANGUAGE plpgsql
    AS $_$
declare
    each record;
    space integer;
begin
    for each in select scope_id, array_agg(id) as ids from forgotten group by scope_id loop
        for space in select id from embedding_spaces loop
            execute format('delete from %I where scope_id = $1 and id = any ($2)', 'vectors_' || space)
                using each.scope_id, each.ids;
        end loop;
    end loop;
    return null;
end $_$;

CREATE FUNCTION public.fade_memories(asked_scope bigint, asked_ids uuid[], scores double precision[], grounds text[], reasons text[]) RETURNS uuid[]
    LANGUAGE plpgsql
    AS $$
declare
    taken uuid[] := array(select id from memories where scope_id = asked_scope and id = any (asked_ids)
                            and withheld is null order by id for update);
begin
    perform withhold_memories(asked_scope, taken, 'faded');
    update withheld_memories side
    set faded_at = clock_timestamp(), fading_score = given.score, fading_grounds = given.ground,
        fading_reason = given.reason
    from unnest(asked_ids, scores, grounds, reasons) as given (id, score, ground, reason)
    where side.scope_id = asked_scope and side.id = any (taken) and side.id = given.id;
    return taken;
end $$;

CREATE FUNCTION public.field_meets(field jsonb, operator text, operand jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE operator WHEN '$eq'::text THEN (field = operand) WHEN '$ne'::text THEN (field <> operand) WHEN '$gt'::text THEN (public.compare_field(field, operand) > 0) WHEN '$gte'::text THEN (public.compare_field(field, operand) >= 0) WHEN '$lt'::text THEN (public.compare_field(field, operand) < 0) WHEN '$lte'::text THEN (public.compare_field(field, operand) <= 0) WHEN '$in'::text THEN ((jsonb_typeof(field) <> ALL (ARRAY['array'::text, 'object'::text])) AND (operand @> field)) WHEN '$contains'::text THEN CASE jsonb_typeof(field) WHEN 'array'::text THEN (field @> operand) WHEN 'string'::text THEN ((jsonb_typeof(operand) = 'string'::text) AND (strpos((field #>> '{}'::text[]), (operand #>> '{}'::text[])) > 0)) ELSE NULL::boolean END WHEN '$exists'::text THEN ((field IS NOT NULL) = (operand)::boolean) ELSE NULL::boolean END;

CREATE FUNCTION public.find_named(asked_scope bigint, names text[], firsts integer[], lasts integer[], most integer) RETURNS uuid[]
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_sort TO 'off'
    AS $$
declare
    known text[] := array(
        select each.name from (select distinct unnest(names)) as each (name)
        cross join lateral (
            -- Between, here and below: in the order of a range only one index is.
            select from mentions where scope_id = asked_scope and normalised between each.name and each.name
            order by normalised, entity_id limit 1
        ) mentioned);
begin
    return array(
        with recursive called (name, entity_id) as (
            select each.name, first.entity_id from unnest(known) as each (name)
            cross join lateral (
                select mentions.entity_id from mentions
                where mentions.scope_id = asked_scope and mentions.normalised between each.name and each.name
                order by mentions.normalised, mentions.entity_id limit 1
            ) first
            union all
            -- From entity to entity: one that is often spoken of is mentioned by the same name a thousand times.
            select called.name, next.entity_id from called
            cross join lateral (
                select mentions.entity_id from mentions
                where mentions.scope_id = asked_scope and mentions.normalised between called.name and called.name
                  and mentions.entity_id > called.entity_id
                order by mentions.normalised, mentions.entity_id limit 1
            ) next
        ), spotted as materialized (
            select asked.first, asked.last, called.entity_id
            from unnest(names, firsts, lasts) as asked (name, first, last) join called on called.name = asked.name
            where is_mentioned(asked_scope, called.entity_id, called.name)
        )
        select spotted.entity_id from spotted
        where not exists (
            select from spotted longer
            where longer.first <= spotted.first and longer.last >= spotted.last
              and longer.last - longer.first > spotted.last - spotted.first
        )
        group by spotted.entity_id
        order by max(spotted.last - spotted.first) desc, spotted.entity_id
        limit most);
end $$;

CREATE FUNCTION public.find_starts(asked_scope bigint, names text[], firsts integer[], lasts integer[], spelled text[], asked_space integer, meaning public.halfvec, floor real, shares real[], hits uuid[], most integer, as_of timestamp with time zone) RETURNS TABLE(id uuid, weight real)
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_sort TO 'off'
    AS $$
declare
    found uuid[] := find_named(asked_scope, names, firsts, lasts, most);
    weights real[] := array_fill(1::real, array[cardinality(found)]);
    each record;
begin
    if cardinality(found) < most and cardinality(spelled) > 0 then
        for each in
            select near.id, near.alike as weight from spelled_alike(asked_scope, spelled) near
        loop
            if each.id <> all (found) and is_mentioned(asked_scope, each.id, null) then
                found := found || each.id;
                weights := weights || each.weight;
            end if;
        end loop;
    end if;
    if cardinality(found) < most and meaning is not null then
        for each in
            select near.id, near.weight from (
                select held.id, -(held.embedding <#> meaning) as weight from entity_vectors held
                where held.scope_id = asked_scope and held.space_id = asked_space
                order by held.embedding <#> meaning limit 3
            ) near where near.weight >= floor
        loop
            if each.id <> all (found) and is_mentioned(asked_scope, each.id, null) then
                found := found || each.id;
                weights := weights || (shares[1] * each.weight)::real;
            end if;
        end loop;
    end if;
    if cardinality(found) < most and cardinality(hits) > 0 then
        for each in
            select ends.id from (
                select unnest(array[subject_id, object_id]) as id from beliefs
                where beliefs.scope_id = asked_scope and beliefs.id = any (hits) and subject_id is not null
            ) ends group by ends.id
        loop
            if each.id <> all (found) then
                found := found || each.id;
                weights := weights || shares[2];
            end if;
        end loop;
    end if;
    return query
    select led.id, max(led.weight) from (
        -- An absorbed one is a start, too: of what was hidden when it was absorbed, facts are still its own.
        select unnest(array[start.id, leads_to(asked_scope, start.id, as_of)]) as id, start.weight
        from unnest(found, weights) with ordinality as start (id, weight, place)
        where start.place <= most
    ) led group by led.id;
end $$;

CREATE FUNCTION public.first_scope() RETURNS bigint
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (((public.current_tenant() << 12) | COALESCE((NULLIF(current_setting('recollect.first_bucket'::text, true), ''::text))::bigint, (0)::bigint)) << 28);

CREATE FUNCTION public.fold_accesses(folded_scope bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    perform pg_advisory_xact_lock(hashint8extended(folded_scope, 6));
    with taken as (
        delete from access_log where scope_id = folded_scope returning accessed_at, ids
    ), latest as (
        select touched.id, max(accessed_at) as accessed_at, count(*) as times
        from taken, unnest(taken.ids) as touched (id)
        group by touched.id
    )
    insert into accesses (scope_id, id, kind, last_accessed_at, access_count)
    select memories.scope_id, memories.id, memories.kind, latest.accessed_at, latest.times
    from latest join memories on memories.scope_id = folded_scope and memories.id = latest.id
    where memories.withheld is null
    order by memories.id
    on conflict (scope_id, id) do update
    set last_accessed_at = greatest(accesses.last_accessed_at, excluded.last_accessed_at),
        access_count = accesses.access_count + excluded.access_count;
end $$;

CREATE FUNCTION public.fold_importance(embedding public.halfvec, importance real) RETURNS public.halfvec
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (embedding OPERATOR(public.||) (ARRAY[(importance * (0.1)::real), ((sqrt(((100)::double precision - (importance * importance))))::real * (0.1)::real)])::public.halfvec);

CREATE FUNCTION public.fold_importance(embedding public.vector, importance real) RETURNS public.vector
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (embedding OPERATOR(public.||) (ARRAY[(importance * (0.1)::real), ((sqrt(((100)::double precision - (importance * importance))))::real * (0.1)::real)])::public.vector);

CREATE FUNCTION public.follow_active_space() RETURNS void
    LANGUAGE plpgsql
    AS $_$
declare
    vectors text := (select 'vectors_' || id from embedding_spaces where state = 'active');
begin
    if vectors is not null and not exists (
        select from pg_policy where polrelid = vectors::regclass and polname = 'of_reader'
    ) then
        perform open_to_readers(vectors::regclass);
    end if;
    execute format($view$
        create or replace view memory_nodes with (security_barrier) as
        select node.id, scopes.agent as persona_name, node.kind as type, node.occurred_at as created_at,
               node.last_accessed, node.content as description, node.importance as poignancy, node.embedding,
               node.subject, node.predicate, node.object, node.keywords, node.filling,
               node.node_count, node.type_count, node.depth, node.idle as is_idle, scopes."user" as user_name
        from scopes cross join lateral (
            select memories.id, memories.kind, memories.occurred_at, memories.content,
                   memories.importance::double precision as importance,
                   memories.subject, memories.predicate, memories.object, memories.keywords,
                   memories.depth::integer as depth, memories.idle,
                   greatest(memories.occurred_at, accesses.last_accessed_at, logged.accessed_at) as last_accessed,
                   %s as embedding,
                   to_jsonb(array(
                       select evidence.source_id from evidence
                       where evidence.scope_id = scopes.id and evidence.memory_id = memories.id
                       order by evidence.source_id
                   )) as filling,
                   (row_number() over (order by memories.id))::integer as node_count,
                   (row_number() over (partition by memories.kind order by memories.id))::integer as type_count
            from memories
            left join accesses on accesses.scope_id = scopes.id and accesses.id = memories.id
            left join (
                select touched.id, max(access_log.accessed_at) as accessed_at
                from access_log, unnest(access_log.ids) as touched (id)
                where access_log.scope_id = scopes.id
                group by touched.id
            ) logged on logged.id = memories.id
            left join beliefs on beliefs.scope_id = scopes.id and beliefs.id = memories.id
            %s
            where memories.scope_id = scopes.id and memories.withheld is null
              and (memories.expires_at is null or memories.expires_at > now())
              -- Of versions the one that is believed, of facts what is not over; the indexes follow. A case, as above.
              and case when beliefs.superseded_at is null and (beliefs.invalid_at is null or beliefs.invalid_at > now())
                       then true else false end
              -- A deleted conversation, and what was made from it, is out of sight at once.
              and memories.id not in (
                  with recursive gone (id) as (
                      select messages.id from conversations join messages
                          on messages.scope_id = scopes.id and messages.conversation_id = conversations.id
                      where conversations.scope_id = scopes.id and not conversations.synced
                        and conversations.state in ('deleted', 'purging')
                      union
                      select evidence.memory_id from gone join evidence
                          on evidence.scope_id = scopes.id and evidence.source_id = gone.id
                  )
                  select gone.id from gone
              )
            offset 0
        ) node
        where scopes.tenant_id = (select reading_tenant())
        $view$,
        -- Two lengths in one expression are none.
        case when vectors is null then 'null::vector' else 'coalesce(vectors.embedding::vector, null::vector)' end,
        case when vectors is null then ''
             else format('left join %I vectors on vectors.scope_id = scopes.id and vectors.id = memories.id', vectors)
        end);
end $_$;

CREATE FUNCTION public.follow_into_features() RETURNS trigger
    LANGUAGE plpgsql
    AS $_$
declare
    folded integer;
begin
    update memory_features
    set importance = new.importance, occurred_at = new.occurred_at, expires_at = new.expires_at,
        state = case new.withheld
            when 'archived' then 'in_archived' when 'to_rederive' then 'withheld' else coalesce(new.withheld, 'current')
        end
    where scope_id = new.scope_id and id between new.id and new.id;
    if new.importance is distinct from old.importance then
        select folded_space into folded from scopes where id = new.scope_id;
        if folded is not null then
            execute format('update %I set importance = $1 where scope_id = $2 and id = $3', 'vectors_' || folded)
                using new.importance, new.scope_id, new.id;
        end if;
    end if;
    return null;
end $_$;

CREATE FUNCTION public.follow_into_topics() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    if new.withheld = 'to_rederive' then
        delete from topic_links where scope_id = new.scope_id and memory_id between new.id and new.id;
    else
        update topic_links set withheld_for = new.withheld
        where scope_id = new.scope_id and memory_id between new.id and new.id;
    end if;
    return null;
end $$;

CREATE FUNCTION public.follow_memory() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    new.withheld_for := (
        select memories.withheld from memories
        where memories.scope_id = new.scope_id and memories.id between new.id and new.id order by memories.id limit 1
    );
    return new;
end $$;

CREATE FUNCTION public.follow_withholding() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    update beliefs set withheld_for = new.withheld where scope_id = new.scope_id and id between new.id and new.id;
    return null;
end $$;

CREATE FUNCTION public.forget_names() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform tidy_entities(scope_id, array_agg(distinct entity_id)) from forgotten group by scope_id;
    return null;
end $$;

CREATE FUNCTION public.forget_related() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform tidy_topics(scope_id, array_agg(distinct related_id)) from forgotten group by scope_id;
    return null;
end $$;

CREATE FUNCTION public.give_back_message(asked_scope bigint, asked_id uuid) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
declare
    past past_messages%rowtype;
    shown uuid;
begin
    select * into past from past_messages where scope_id = asked_scope and id = asked_id;
    if not found then
        return true;
    end if;
    select id into shown from messages
    where scope_id = asked_scope and conversation_id = past.conversation_id and number = past.number;
    update messages
    set id = past.id, occurred_at = past.occurred_at, tokens = past.tokens, images = past.images, parts = past.parts
    where scope_id = asked_scope and id = shown;
    perform rename_message(asked_scope, past.conversation_id, past.number, shown, past.id);
    delete from past_messages where scope_id = asked_scope and id = asked_id;
    perform read_segment_again(asked_scope, past.conversation_id, past.number);
    return not exists (select from conversations
                       where scope_id = asked_scope and id = past.conversation_id and state = 'archived');
end $$;

CREATE FUNCTION public.hand_to_upkeep(VARIADIC handed regprocedure[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.having_terms(asked_scope bigint, asked_terms bigint[]) RETURNS SETOF uuid
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
begin
    if (asked_scope between first_scope() and last_scope()) is not true then
        return;
    end if;
    return query
    select t.id from memory_terms t where t.scope_id = asked_scope and t.terms @> asked_terms
    union all
    select w.id from withheld_memories w where w.scope_id = asked_scope and w.terms @> asked_terms;
end $$;

CREATE FUNCTION public.heal_lineages() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    each record;
    until timestamptz;
begin
    for each in
        select kept.*, gone.last_end
        from (
            select scope_id, lineage, array_agg(created_at) as starts, max(version) as last_version,
                   (array_agg(superseded_at order by version desc))[1] as last_end
            from forgotten where not contested group by scope_id, lineage
        ) gone
        join beliefs kept on kept.scope_id = gone.scope_id and kept.lineage = gone.lineage
            and kept.superseded_at = any (gone.starts) and kept.version < gone.last_version
    loop
        until := (
            select created_at from beliefs
            where scope_id = each.scope_id and lineage = each.lineage and version > each.version and not contested
            order by version limit 1);
        if until is null then
            until := each.last_end;
            -- What another fact says by now is not said twice.
            continue when until is null and exists (
                select from beliefs other
                where other.scope_id = each.scope_id and other.subject_id = each.subject_id
                  and other.object_id = each.object_id and other.predicate = each.predicate
                  and other.superseded_at is null
                  and tstzrange(other.valid_at, other.invalid_at) && tstzrange(each.valid_at, each.invalid_at));
        end if;
        update beliefs set superseded_at = until where scope_id = each.scope_id and id = each.id;
        if until is null and (each.invalid_at is null or each.invalid_at > clock_timestamp()) then
            -- It was withheld only because another version took its place.
            update memories set withheld = 'archived'
            where scope_id = each.scope_id and id = each.id and withheld = 'past';
            if give_back_message(each.scope_id, each.id) then
                perform restore_memories(each.scope_id, array[each.id]);
            end if;
        end if;
    end loop;
    perform tidy_entities(scope_id, array_agg(ends.id))
    from forgotten, unnest(array[subject_id, object_id]) as ends (id)
    where ends.id is not null group by scope_id;
    return null;
end $$;

CREATE FUNCTION public.inherit_links(asked_scope bigint, elder uuid, heir uuid, with_topics boolean) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    insert into accesses (scope_id, id, kind, last_accessed_at, access_count)
    select asked_scope, heir, memories.kind, side.last_accessed_at, side.access_count
    from withheld_memories side join memories on memories.scope_id = asked_scope and memories.id = heir
    where side.scope_id = asked_scope and side.id = elder and side.last_accessed_at is not null
      and memories.withheld is null
    on conflict do nothing;
    if with_topics then
        insert into topic_links
            (scope_id, topic_id, memory_id, activation, diffusion, independence, occurred_at, kind, trust, withheld_for)
        select asked_scope, topic_id, heir, activation, diffusion, independence, links.occurred_at, links.kind,
               memories.trust, memories.withheld
        from topic_links links join memories on memories.scope_id = asked_scope and memories.id = heir
        where links.scope_id = asked_scope and links.memory_id = elder;
        insert into related_topics (scope_id, topic_id, memory_id, related_id, place)
        select asked_scope, topic_id, heir, related_id, place from related_topics
        where scope_id = asked_scope and memory_id = elder;
    end if;
end $$;

CREATE FUNCTION public.inherit_vectors(asked_scope bigint, heirs uuid[], elders uuid[]) RETURNS uuid[]
    LANGUAGE plpgsql
    AS $_$
declare
    space record;
    waiting uuid[] := '{}';
begin
    for space in select id, state from embedding_spaces loop
        execute format(
            'insert into %1$I (scope_id, id, kind, trust, idle, importance, embedding) '
            'select $1, memories.id, memories.kind, memories.trust, memories.idle, '
            'case when $4 = (select folded_space from scopes where id = $1) then memories.importance end, '
            'coalesce(hot.embedding, side.embedding::%2$s) '
            'from unnest($2, $3) as given (heir, elder) '
            'join (select id, kind, trust, idle, importance from memories '
            'where scope_id = $1 and id = any ($2) offset 0) memories on memories.id = given.heir '
            'left join %1$I hot on hot.scope_id = $1 and hot.id = given.elder '
            'left join withheld_vectors side on side.scope_id = $1 and side.id = given.elder and side.space_id = $4 '
            'where hot.id is not null or side.id is not null '
            'on conflict (scope_id, id) do nothing',
            'vectors_' || space.id,
            (select format_type(atttypid, atttypmod) from pg_attribute
             where attrelid = ('vectors_' || space.id)::regclass and attname = 'embedding'))
            using asked_scope, heirs, elders, space.id;
        if space.state = 'active' then
            execute format(
                'select array(select heir from unnest($2) as given (heir) where not exists ('
                'select from %I vectors where vectors.scope_id = $1 and vectors.id = given.heir))',
                'vectors_' || space.id)
                into waiting using asked_scope, heirs;
        end if;
    end loop;
    -- A vector that knows the words of the message before knows them wherever it is.
    insert into context_vectors (scope_id, id, space_id)
    select asked_scope, given.heir, context.space_id from unnest(heirs, elders) as given (heir, elder)
    join context_vectors context on context.scope_id = asked_scope and context.id = given.elder
    on conflict do nothing;
    return waiting;
end $_$;

CREATE FUNCTION public.is_mentioned(asked_scope bigint, asked_entity uuid, asked_name text) RETURNS boolean
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_sort TO 'off'
    AS $$
declare
    source uuid;
begin
    for source in
        select source_id from mentions
        where scope_id = asked_scope and entity_id = asked_entity and (asked_name is null or normalised = asked_name)
        order by mentioned_at desc
    loop
        if source_in_sight(asked_scope, source) then
            return true;
        end if;
    end loop;
    return false;
end $$;

CREATE TABLE public.placements (
    tenant_id integer NOT NULL,
    first_bucket smallint NOT NULL,
    last_bucket smallint NOT NULL,
    generation integer NOT NULL,
    state text DEFAULT 'open'::text NOT NULL,
    awaited bigint,
    CONSTRAINT placements_check CHECK (((last_bucket >= first_bucket) AND (last_bucket <= 4095))),
    CONSTRAINT placements_first_bucket_check CHECK (((first_bucket >= '-1'::integer) AND (first_bucket <= 4095))),
    CONSTRAINT placements_generation_check CHECK ((generation > 0)),
    CONSTRAINT placements_state_check CHECK ((state = ANY (ARRAY['open'::text, 'fenced'::text, 'closed'::text])))
);

CREATE TABLE public.server_identity (
    single boolean DEFAULT true NOT NULL,
    catalog_id uuid NOT NULL,
    number smallint NOT NULL,
    CONSTRAINT server_identity_number_check CHECK ((number > 0)),
    CONSTRAINT server_identity_single_check CHECK (single)
);

CREATE FUNCTION public.is_served(asked_scope bigint) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN ((NOT (EXISTS (SELECT FROM public.server_identity))) OR (EXISTS (SELECT FROM public.placements WHERE ((placements.tenant_id = (is_served.asked_scope >> 40)) AND ((((is_served.asked_scope >> 28) & (4095)::bigint) >= placements.first_bucket) AND (((is_served.asked_scope >> 28) & (4095)::bigint) <= placements.last_bucket)) AND (placements.state <> 'closed'::text)))));

CREATE TABLE public.scopes (
    id bigint NOT NULL,
    tenant_id integer NOT NULL,
    agent text NOT NULL,
    "user" text NOT NULL,
    memory_count bigint DEFAULT 0 NOT NULL,
    event_count bigint DEFAULT 0 NOT NULL,
    thought_count bigint DEFAULT 0 NOT NULL,
    chat_count bigint DEFAULT 0 NOT NULL,
    term_count bigint DEFAULT 0 NOT NULL,
    unreflected_importance double precision DEFAULT 0 NOT NULL,
    unreflected_memories integer DEFAULT 0 NOT NULL,
    last_written_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    approximate_space integer,
    folded_space integer,
    has_keywords boolean DEFAULT false NOT NULL,
    has_names boolean DEFAULT false NOT NULL,
    has_topics boolean DEFAULT false NOT NULL,
    has_evidence boolean DEFAULT false NOT NULL,
    change_number bigint DEFAULT 0 NOT NULL,
    followed_until timestamp with time zone,
    written_hour timestamp without time zone GENERATED ALWAYS AS (date_trunc('hour'::text, (last_written_at AT TIME ZONE 'UTC'::text))) STORED NOT NULL,
    size_step integer GENERATED ALWAYS AS (
CASE
    WHEN (memory_count < 16) THEN (memory_count)::double precision
    ELSE floor((((8)::double precision * ln((memory_count)::double precision)) / ln((2)::double precision)))
END) STORED NOT NULL,
    tier text DEFAULT 'hot'::text NOT NULL,
    tier_since timestamp with time zone,
    CONSTRAINT scopes_check CHECK (((id >> 40) = tenant_id)),
    CONSTRAINT scopes_tier_check CHECK ((tier = ANY (ARRAY['hot'::text, 'leaving'::text, 'cold'::text])))
)
WITH (fillfactor='70');
ALTER TABLE ONLY public.scopes ALTER COLUMN agent SET STATISTICS 0;
ALTER TABLE ONLY public.scopes ALTER COLUMN "user" SET STATISTICS 0;

ALTER TABLE ONLY public.scopes FORCE ROW LEVEL SECURITY;

CREATE FUNCTION public.is_present(asked_scope bigint) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN (public.is_served(asked_scope) AND (EXISTS (SELECT FROM public.scopes WHERE (scopes.id = is_present.asked_scope))));

CREATE FUNCTION public.is_topic_above(asked_scope bigint, asked_path text) RETURNS boolean
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
begin
    if (asked_scope between first_scope() and last_scope()) is not true then
        return false;
    end if;
    return exists (
        select from topics
        where topics.scope_id = asked_scope and path > asked_path::ltree and path < (asked_path || '-')::ltree
        order by scope_id, path limit 1);
end $$;

CREATE FUNCTION public.is_writable(asked_scope bigint) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN (public.is_served(asked_scope) AND (NOT (EXISTS (SELECT FROM public.placements WHERE ((placements.tenant_id = (is_writable.asked_scope >> 40)) AND (placements.state = 'fenced'::text))))));

CREATE FUNCTION public.keep_contested_message(asked_scope bigint, current uuid, attempt uuid, row_of jsonb) RETURNS void
    LANGUAGE sql
    AS $$
    insert into past_messages
        (scope_id, id, conversation_id, number, parent_id, turn_id, role, status, occurred_at, tokens, images, parts,
         attachments, external_id, stated_parent)
    select scope_id, attempt, conversation_id, number, parent_id, turn_id, role, status,
           (row_of ->> 'occurred_at')::timestamptz, row_of -> 'tokens', (row_of ->> 'images')::smallint,
           nullif(row_of -> 'parts', '[]'), attachments, external_id, stated_parent
    from messages where scope_id = asked_scope and id = current
$$;

CREATE FUNCTION public.last_place(asked_scope bigint, asked_topic uuid, asked_memory uuid) RETURNS integer
    LANGUAGE sql STABLE
    AS $$
    select coalesce(max(place), 0) from (
        select place from related_topics
        where scope_id = asked_scope and topic_id between asked_topic and asked_topic
          and memory_id between asked_memory and asked_memory
        order by topic_id, memory_id, related_id
        limit 1000
    ) led
$$;

CREATE FUNCTION public.last_scope() RETURNS bigint
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN ((((public.current_tenant() << 12) | COALESCE((NULLIF(current_setting('recollect.last_bucket'::text, true), ''::text))::bigint, (4095)::bigint)) << 28) | (268435455)::bigint);

CREATE FUNCTION public.later_versions(asked_scope bigint, asked_id uuid) RETURNS SETOF uuid
    LANGUAGE sql STABLE
    AS $$
    select later.id from beliefs own
    join beliefs later on later.scope_id = asked_scope and later.lineage = own.lineage and later.version > own.version
    where own.scope_id = asked_scope and own.id = asked_id and not own.contested
      and not exists (
          select from beliefs made
          where made.scope_id = asked_scope and made.lineage = own.lineage and not made.revises
            and made.version > own.version and made.version <= later.version)
$$;

CREATE TABLE public.access_log (
    scope_id bigint NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    accessed_at timestamp with time zone NOT NULL,
    ids uuid[] NOT NULL,
    kinds text[] NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='500');

ALTER TABLE ONLY public.access_log FORCE ROW LEVEL SECURITY;

CREATE TABLE public.accesses (
    scope_id bigint NOT NULL,
    id uuid NOT NULL,
    kind text NOT NULL,
    last_accessed_at timestamp with time zone NOT NULL,
    access_count integer NOT NULL
)
WITH (fillfactor='70');

ALTER TABLE ONLY public.accesses FORCE ROW LEVEL SECURITY;

CREATE TABLE public.memories (
    scope_id bigint NOT NULL,
    id uuid NOT NULL,
    kind text NOT NULL,
    content text NOT NULL,
    speaker text DEFAULT ''::text NOT NULL,
    importance real NOT NULL,
    importance_from text DEFAULT 'caller'::text NOT NULL,
    subject text DEFAULT ''::text NOT NULL,
    predicate text DEFAULT ''::text NOT NULL,
    object text DEFAULT ''::text NOT NULL,
    idle boolean DEFAULT false NOT NULL,
    depth smallint DEFAULT 0 NOT NULL,
    keywords text[] DEFAULT '{}'::text[] NOT NULL,
    origin text NOT NULL,
    trust smallint NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    embedding_text text DEFAULT ''::text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    withheld text,
    expires_at timestamp with time zone,
    revived_at timestamp with time zone,
    CONSTRAINT memories_importance_check CHECK (((importance >= (1)::double precision) AND (importance <= (10)::double precision))),
    CONSTRAINT memories_importance_from_check CHECK ((importance_from = ANY (ARRAY['caller'::text, 'model'::text, 'rule'::text]))),
    CONSTRAINT memories_kind_check CHECK ((kind = ANY (ARRAY['message'::text, 'event'::text, 'chat'::text, 'thought'::text, 'fact'::text, 'summary'::text]))),
    CONSTRAINT memories_trust_check CHECK (((trust >= 0) AND (trust <= 100))),
    CONSTRAINT memories_withheld_check CHECK ((withheld = ANY (ARRAY['archived'::text, 'deleted'::text, 'to_rederive'::text, 'past'::text, 'faded'::text])))
)
WITH (autovacuum_vacuum_insert_scale_factor='0.02', autovacuum_vacuum_insert_threshold='5000');
ALTER TABLE ONLY public.memories ALTER COLUMN content SET STATISTICS 0;
ALTER TABLE ONLY public.memories ALTER COLUMN speaker SET STATISTICS 0;
ALTER TABLE ONLY public.memories ALTER COLUMN subject SET STATISTICS 0;
ALTER TABLE ONLY public.memories ALTER COLUMN predicate SET STATISTICS 0;
ALTER TABLE ONLY public.memories ALTER COLUMN object SET STATISTICS 0;
ALTER TABLE ONLY public.memories ALTER COLUMN keywords SET STATISTICS 0;
ALTER TABLE ONLY public.memories ALTER COLUMN embedding_text SET STATISTICS 0;
ALTER TABLE ONLY public.memories ALTER COLUMN metadata SET STATISTICS 0;

ALTER TABLE ONLY public.memories FORCE ROW LEVEL SECURITY;

CREATE FUNCTION public.latest_accesses(asked_scope bigint, asked_kinds text[], before uuid, most integer) RETURNS TABLE(id uuid, accessed_at timestamp with time zone, thought boolean)
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT logged.id,
     log.accessed_at,
     (logged.kind = 'thought'::text)
    FROM public.access_log log,
     LATERAL UNNEST(log.ids, log.kinds) logged(id, kind)
   WHERE ((log.scope_id = latest_accesses.asked_scope) AND (logged.kind = ANY (latest_accesses.asked_kinds)) AND ((latest_accesses.before IS NULL) OR (logged.id < latest_accesses.before)))
 UNION ALL
  SELECT newest.id,
     newest.last_accessed_at,
     (asked.kind = 'thought'::text)
    FROM unnest(latest_accesses.asked_kinds) asked(kind),
     LATERAL ( SELECT accesses.id,
             accesses.last_accessed_at
            FROM public.accesses
           WHERE ((accesses.scope_id = latest_accesses.asked_scope) AND (accesses.kind = asked.kind) AND ((latest_accesses.before IS NULL) OR (accesses.id < latest_accesses.before)))
           ORDER BY accesses.last_accessed_at DESC, accesses.id DESC
          LIMIT latest_accesses.most) newest
 UNION ALL
  SELECT newest.id,
     newest.occurred_at,
     (asked.kind = 'thought'::text)
    FROM unnest(latest_accesses.asked_kinds) asked(kind),
     LATERAL ( SELECT memories.id,
             memories.occurred_at
            FROM public.memories
           WHERE ((memories.scope_id = latest_accesses.asked_scope) AND (memories.kind = asked.kind) AND (NOT memories.idle) AND (memories.withheld IS NULL) AND ((latest_accesses.before IS NULL) OR (memories.id < latest_accesses.before)))
           ORDER BY memories.occurred_at DESC, memories.id DESC
          LIMIT latest_accesses.most) newest;
END;

CREATE FUNCTION public.leads_to(asked_scope bigint, asked_id uuid, as_of timestamp with time zone) RETURNS uuid
    LANGUAGE plpgsql STABLE
    AS $$
declare
    reached uuid := asked_id;
    next uuid;
begin
    loop
        next := (
            select kept_id from entity_merges
            where scope_id = asked_scope and absorbed_id between reached and reached
              and merged_at <= coalesce(as_of, 'infinity') and (split_at is null or split_at > coalesce(as_of, 'infinity'))
            order by absorbed_id, merged_at limit 1);
        exit when next is null;
        reached := next;
    end loop;
    return reached;
end $$;

CREATE FUNCTION public.learn_again(asked_scope bigint, asked_facts uuid[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    reopened uuid[];
begin
    with closed as (
        update segments set state = 'closed', attempts = 0, enriched_at = null
        where scope_id = asked_scope and state = 'enriched'
          and id = any (array(
              select segment.id
              from (select distinct source_id from evidence
                    where scope_id = asked_scope and memory_id = any (asked_facts)) source
              join messages on messages.scope_id = asked_scope and messages.id = source.source_id
              cross join lateral (
                  select id, last_number from segments
                  where segments.scope_id = asked_scope and segments.conversation_id = messages.conversation_id
                    and first_number <= messages.number
                  order by first_number desc limit 1
              ) segment
              where segment.last_number >= messages.number))
          and (
              select content ? 'said' from extractions
              where extractions.scope_id = asked_scope and segment_id = segments.id and applied_at is not null
              order by applied_at desc limit 1
          )
        returning id
    )
    select array_agg(id) into reopened from closed;
    -- Where a run has taken over, what it said is what is said again.
    insert into extractions (scope_id, segment_id, model, prompt_version, content, made_at)
    select distinct on (segment_id) scope_id, segment_id, model, prompt_version, content, made_at from extractions
    where scope_id = asked_scope and segment_id = any (reopened) and applied_at is not null
    order by segment_id, applied_at desc
    on conflict (scope_id, segment_id, run_id) do update
    set model = excluded.model, prompt_version = excluded.prompt_version, content = excluded.content,
        made_at = excluded.made_at;
end $$;

CREATE FUNCTION public.limits_of(requests_per_second double precision, burst integer, bytes_per_minute bigint, largest_body integer, change_streams integer) RETURNS double precision[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN NULLIF(ARRAY[requests_per_second, (burst)::double precision, (bytes_per_minute)::double precision, (largest_body)::double precision, (change_streams)::double precision], ARRAY[NULL::double precision, NULL::double precision, NULL::double precision, NULL::double precision, NULL::double precision]);

CREATE FUNCTION public.list_topics(asked_scope bigint, asked_paths text[], allowed uuid[]) RETURNS TABLE(path text, name text, memories bigint, seen boolean, activation double precision, newest_at timestamp with time zone)
    LANGUAGE sql STABLE
    SET enable_nestloop TO 'off'
    AS $$
    with unsynced as materialized (
        select exists (
            select from conversations
            where scope_id = asked_scope and not synced and state in ('deleted', 'purging')
        ) as any_left
    ), wanted as materialized (
        select case when cardinality(asked_paths) > 0 then
            array(select id from topics_at(asked_scope, asked_paths))
            || array(select topics_below(asked_scope, asked_paths[cardinality(asked_paths)]))
        end as ids
    ), listed as materialized (
        select id, topics.path, topics.name from topics
        where scope_id = asked_scope
          and ((select ids is null from wanted) or id = any (array(select unnest(ids) from wanted)))
    ), linked as materialized (
        select topic_id, memory_id, withheld_for, activation, occurred_at from topic_links
        where scope_id = asked_scope and (withheld_for is null or withheld_for in ('archived', 'faded'))
          and (allowed is null or memory_id in (select unnest(allowed)))
          and (not (select any_left from unsynced) or not rests_on_deleted(scope_id, memory_id))
    ), counted as materialized (
        select topic_id, count(*) filter (where withheld_for is null) as memories,
               avg(linked.activation) filter (where withheld_for is null) as activation,
               max(occurred_at) filter (where withheld_for is null) as newest_at
        from linked group by topic_id
    ), named as materialized (
        select distinct related_id from related_topics join linked using (topic_id, memory_id)
        where related_topics.scope_id = asked_scope
    )
    select listed.path::text, listed.name, coalesce(counted.memories, 0),
           counted.topic_id is not null or named.related_id is not null, counted.activation, counted.newest_at
    from listed
    left join counted on counted.topic_id = listed.id
    left join named on named.related_id = listed.id
    order by listed.path
$$;

CREATE FUNCTION public.locate(asked_agent text, asked_user text) RETURNS public.place
    LANGUAGE plpgsql STABLE
    AS $$
declare
    found place;
begin
    select scopes.id, scopes.memory_count, scopes.approximate_space, space.id, space.model, space.dimensions,
           space.precision, agents.profile, scopes.has_keywords, scopes.has_names, scopes.has_topics,
           scopes.has_evidence
    into found
    from (select current_tenant() as tenant_id) caller
    left join scopes
        on scopes.tenant_id = caller.tenant_id and scopes.agent = asked_agent and scopes."user" = asked_user
    left join agents on agents.tenant_id = caller.tenant_id and agents.agent = asked_agent
    left join embedding_spaces space on space.state = 'active';
    return found;
end $$;

CREATE FUNCTION public.log_change(changed_scope bigint, changed text, changed_ids uuid[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    next_number bigint;
    told_until timestamptz;
begin
    -- A scope that goes to object storage or comes back is the same afterwards.
    if current_setting('recollect.cold', true) = 'moving' then
        return;
    end if;
    update scopes set change_number = change_number + 1 where id = changed_scope
    returning change_number, followed_until into next_number, told_until;
    insert into changes (scope_id, number, key_id, operation, ids)
    values (changed_scope, next_number, current_key(), changed, changed_ids);
    if exists (select from mirrors) then
        perform note_unmirrored(changed_scope, next_number);
    end if;
    if told_until > clock_timestamp() then
        perform pg_notify(change_channel(), changed_scope::text);
    end if;
end $$;

CREATE FUNCTION public.log_conversation() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform log_change(old.scope_id, 'conversation', '{}');
    return null;
end $$;

CREATE FUNCTION public.log_rows() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    columns text := concat_ws(', ', 'scope_id', tg_argv[1] || ' as id', nullif(array_to_string(tg_argv[2:], ', '), ''));
    former text := case when tg_nargs > 2 then ' except all select ' || columns || ' from former' else '' end;
    each record;
begin
    for each in execute format(
        'select scope_id, coalesce(array_agg(distinct id order by id) filter (where id is not null), ''{}'') as ids '
        'from (select %s from latter%s) changed group by scope_id', columns, former)
    loop
        perform log_change(each.scope_id, tg_argv[0], each.ids);
    end loop;
    return null;
end $$;

CREATE FUNCTION public.log_stored() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform log_change(scope_id, 'stored', array_agg(id order by id)) from stored group by scope_id;
    return null;
end $$;

CREATE FUNCTION public.mark_leaving(days double precision, most integer) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
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

CREATE FUNCTION public.match_names(asked_scope bigint, asked_names text[], thresholds real[], most integer) RETURNS TABLE(number integer, id uuid, alike real)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
begin
    -- Without a tenant the comparison is null: only what is true may go on.
    if (asked_scope between first_scope() and last_scope()) is not true then
        return;
    end if;
    return query
    select asked.number::integer, nearest.id, nearest.alike
    from unnest(asked_names, thresholds) with ordinality as asked (name, threshold, number)
    cross join lateral (
        select entities.id, similarity(entities.normalised, asked.name) as alike from entities
        where entities.scope_id = asked_scope
        order by entities.normalised <-> asked.name
        limit most
    ) nearest
    where nearest.alike >= asked.threshold;
end $$;

CREATE FUNCTION public.match_terms(asked_scope bigint, asked_terms bigint[], asked_slots integer[], kinds text[], min_trust smallint, before uuid, allowed uuid[], past_ids uuid[], memory_total bigint, hit_limit integer) RETURNS TABLE(id uuid, score double precision, past boolean, rarities double precision[])
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
begin
    -- Without a tenant the comparison is null: only what is true may go on.
    if (asked_scope between first_scope() and last_scope()) is not true then
        return;
    end if;
    return query
    with candidates as materialized (
        select t.id, t.weights, t.draw, false as past
        from memory_terms t
        where t.scope_id = asked_scope and t.terms && asked_terms
          and (kinds is null or t.kind = any (kinds))
          and t.trust >= min_trust
          and (before is null or t.id < before)
          and (allowed is null or t.id in (select unnest(allowed)))
        union all
        select w.id, w.weights, w.draw, true
        from withheld_memories w
        where w.scope_id = asked_scope and w.id = any (past_ids) and w.terms && asked_terms
    ),
    volume as materialized (
        -- At least 200 memories, however long the cue: fewer say nothing about how rare its terms are.
        select count(*) as amount,
            greatest(1, least(count(*) * cardinality(asked_slots) / 2000, count(*) / 200)) as stride
        from candidates
    ),
    sample as materialized (
        select c.weights from candidates c
        where (select stride from volume) = 1 or c.draw % (select stride from volume) = 0
    ),
    asked as materialized (
        select slot, ('{' || slot || ':1}/1000000000')::sparsevec as one
        from (select distinct unnest(asked_slots) as slot) slots
    ),
    counted as materialized (
        select slot, (select count(*) from sample where sample.weights <#> asked.one < 0) as seen from asked
    ),
    containing as (
        -- Of a sample, half a memory more: a term that it missed is rare, but not unheard of.
        select slot, case when stride = 1 then seen else least(amount, (seen + 0.5::float8) * stride) end as memories
        from counted, volume
    ),
    rated as materialized (
        select slot, ln(1 + (greatest(memory_total - memories, 0) + 0.5::float8) / (memories + 0.5::float8)) as rarity
        from containing
    ),
    query as (
        select ('{' || string_agg(slot || ':' || rarity, ',' order by slot) || '}/1000000000')::sparsevec as weights,
            array(
                select rated.rarity
                from unnest(asked_slots) with ordinality as given (slot, number) join rated using (slot)
                order by given.number
            ) as rarities
        from rated
    )
    select c.id, -(c.weights <#> q.weights) as score, c.past, q.rarities
    from candidates c, query q
    order by score desc, c.id desc
    limit hit_limit;
end $$;

CREATE FUNCTION public.meet_cold(met_tenant integer, met_scope bigint) RETURNS boolean
    LANGUAGE plpgsql STABLE COST 10000
    AS $$
begin
    if met_tenant is distinct from current_tenant() or current_setting('recollect.cold', true) in ('shown', 'moving') then
        return true;
    end if;
    raise exception 'The scope is not hot.' using errcode = 'RC003', detail = met_scope::text;
end $$;

CREATE FUNCTION public.meets(value jsonb, fields text[], operators text[], operands jsonb[]) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
begin
    for place in 1 .. cardinality(fields) loop
        if field_meets(value -> fields[place], operators[place], operands[place]) is not true then
            return false;
        end if;
    end loop;
    return true;
end $$;

CREATE FUNCTION public.members_of(asked_scope bigint, asked_id uuid, as_of timestamp with time zone) RETURNS uuid[]
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
    members uuid[] := array[asked_id];
    more uuid[] := array[asked_id];
begin
    loop
        more := array(
            select absorbed_id from entity_merges
            where scope_id = asked_scope and kept_id = any (more)
              and merged_at <= coalesce(as_of, 'infinity') and (split_at is null or split_at > coalesce(as_of, 'infinity')));
        exit when cardinality(more) = 0;
        members := members || more;
    end loop;
    return members;
end $$;

CREATE FUNCTION public.message_number(asked_scope bigint, asked_id uuid) RETURNS bigint
    LANGUAGE sql STABLE
    AS $$
    select number from messages where scope_id = asked_scope and id = asked_id
    union all
    select number from past_messages where scope_id = asked_scope and id = asked_id
$$;

CREATE TABLE public.messages (
    scope_id bigint NOT NULL,
    id uuid NOT NULL,
    conversation_id text NOT NULL,
    number bigint NOT NULL,
    parent_id uuid,
    turn_id uuid NOT NULL,
    role text NOT NULL,
    status text NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    tokens jsonb NOT NULL,
    images smallint DEFAULT 0 NOT NULL,
    parts jsonb,
    attachments jsonb,
    external_id text DEFAULT ''::text NOT NULL,
    stated_parent uuid,
    CONSTRAINT messages_role_check CHECK ((role = ANY (ARRAY['user'::text, 'assistant'::text, 'system'::text, 'tool'::text]))),
    CONSTRAINT messages_status_check CHECK ((status = ANY (ARRAY['done'::text, 'pending'::text, 'failed'::text])))
)
WITH (autovacuum_vacuum_insert_scale_factor='0.02', autovacuum_vacuum_insert_threshold='5000');
ALTER TABLE ONLY public.messages ALTER COLUMN parts SET STATISTICS 0;
ALTER TABLE ONLY public.messages ALTER COLUMN attachments SET STATISTICS 0;
ALTER TABLE ONLY public.messages ALTER COLUMN external_id SET STATISTICS 0;

ALTER TABLE ONLY public.messages FORCE ROW LEVEL SECURITY;

CREATE FUNCTION public.messages_as_of(asked_scope bigint, asked_conversation text, before uuid, as_of timestamp with time zone) RETURNS SETOF public.messages
    LANGUAGE plpgsql STABLE
    AS $$
begin
    return query
    with shown as (
        select messages.id as id_now, coalesce(past.id, messages.id) as id_then, messages.number
        from messages left join lateral (
            select past_messages.id from past_messages
            join beliefs on beliefs.scope_id = asked_scope and beliefs.id = past_messages.id
            where past_messages.scope_id = asked_scope and past_messages.conversation_id = asked_conversation
              and past_messages.number = messages.number
              and beliefs.created_at <= as_of and beliefs.superseded_at > as_of
        ) past on messages.id >= before
        where messages.scope_id = asked_scope and messages.conversation_id = asked_conversation
          and (messages.id < before or past.id is not null)
    )
    select asked_scope, shown.id_then, asked_conversation, shown.number, coalesce(parent.id_then, said.parent_id),
           coalesce(turn.id_then, said.turn_id), said.role, said.status, said.occurred_at, said.tokens, said.images,
           said.parts, said.attachments, said.external_id, coalesce(stated.id_then, said.stated_parent)
    from shown
    cross join lateral (
        select * from messages where scope_id = asked_scope and id = shown.id_then
        union all
        select * from past_messages where scope_id = asked_scope and id = shown.id_then
    ) said
    join messages latest on latest.scope_id = asked_scope and latest.id = shown.id_now
    left join shown parent on parent.id_now = latest.parent_id
    left join shown turn on turn.id_now = latest.turn_id
    left join shown stated on stated.id_now = latest.stated_parent;
end $$;

CREATE FUNCTION public.mirror_standing(asked_mirror text, asked_generation integer) RETURNS TABLE(scopes bigint, behind bigint, seconds double precision)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
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

CREATE FUNCTION public.names_of(asked_scope bigint, asked_topic uuid) RETURNS text[]
    LANGUAGE plpgsql STABLE
    AS $$
declare
    own ltree := (select path from topics where scope_id = asked_scope and id between asked_topic and asked_topic
                  order by id limit 1);
begin
    return array(
        select topics.name
        from topics_at(asked_scope, array(
            select subpath(own, 0, level)::text from generate_series(1, nlevel(own)) as level)) above
        cross join lateral (
            select topics.name from topics
            where topics.scope_id = asked_scope and topics.id between above.id and above.id order by topics.id limit 1
        ) topics
        order by above.place);
end $$;

CREATE FUNCTION public.newest_changes(followed bigint[]) RETURNS TABLE(scope_id bigint, number bigint)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    select id, change_number from scopes where id = any (followed) and is_served(id)
$$;

CREATE FUNCTION public.next_tenant() RETURNS integer
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.note_filed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.note_use(tenant integer, used_key uuid, day timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    if current_setting('transaction_read_only') = 'on' then
        return;
    end if;
    perform set_config('synchronous_commit', 'off', true);
    update api_keys set last_used_at = day where (tenant_id, id) in (
        select tenant_id, id from api_keys where tenant_id = tenant and id = used_key
        and last_used_at is distinct from day for no key update skip locked);
end $$;

CREATE FUNCTION public.objects_to_remove(seconds double precision, most integer) RETURNS TABLE(scope_id bigint, name text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    update cold_objects set state = 'unneeded'
    where state = 'writing' and since <= now() - seconds * interval '1 second' and is_writable(scope_id);
    select scope_id, name from cold_objects where state = 'unneeded' and is_served(scope_id) order by since limit most
$$;

CREATE FUNCTION public.open_to_readers(opened regclass) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    execute format(
        'create policy of_reader on %s for select to recollect_compat '
        'using (case when scope_id >= (select reading_tenant() << 40) '
        'and scope_id <= (select reading_tenant() << 40 | 1099511627775) then true else false end)', opened);
    execute format('grant select on %s to recollect_compat', opened);
end $$;

CREATE FUNCTION public.page_facts(asked_scope bigint, after uuid, as_of timestamp with time zone, at timestamp with time zone, hidden text[], allowed uuid[], most integer) RETURNS SETOF uuid
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_sort TO 'off'
    AS $$
declare
    unsynced boolean := exists (
        select from conversations
        where scope_id = asked_scope and not synced and state in ('deleted', 'purging'));
begin
    return query
    select fact.id from beliefs fact
    where fact.scope_id = asked_scope and fact.id > after and fact.subject_id is not null
      and fact.created_at <= as_of and (fact.superseded_at is null or fact.superseded_at > as_of)
      and (fact.valid_at is null or fact.valid_at <= at) and (fact.invalid_at is null or fact.invalid_at > at)
      and (fact.withheld_for is null or fact.withheld_for <> all (hidden))
      and (allowed is null or fact.id in (select unnest(allowed)))
      and (not unsynced or not rests_on_deleted(asked_scope, fact.id))
    order by fact.id
    limit most;
end $$;

CREATE FUNCTION public.past_among(asked_scope bigint, asked_ids uuid[]) RETURNS SETOF uuid
    LANGUAGE sql STABLE
    AS $$
    select id from beliefs
    where scope_id = asked_scope and id = any (asked_ids)
      and (superseded_at is not null or invalid_at <= clock_timestamp())
$$;

CREATE FUNCTION public.past_versions(asked_scope bigint, as_of timestamp with time zone, at timestamp with time zone, kinds text[], min_trust smallint, allowed uuid[]) RETURNS SETOF uuid
    LANGUAGE sql STABLE
    AS $$
    select memories.id from memories
    join beliefs on beliefs.scope_id = asked_scope and beliefs.id = memories.id
    where memories.scope_id = asked_scope and memories.withheld in ('past', 'faded')
      and (kinds is null or memories.kind = any (kinds)) and memories.trust >= min_trust
      and (allowed is null or memories.id = any (allowed))
      and (as_of is null or beliefs.created_at <= as_of)
      and (beliefs.superseded_at is null or beliefs.superseded_at > as_of)
      and (beliefs.invalid_at is null or beliefs.invalid_at > coalesce(at, as_of, now()))
      and (at is null or case when memories.kind = 'fact' then coalesce(beliefs.valid_at <= at, true)
                              else memories.occurred_at <= at end)
$$;

CREATE FUNCTION public.placement_lock() RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN 7077;

CREATE FUNCTION public.presented_key() RETURNS bytea
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN decode(NULLIF(current_setting('recollect.key'::text, true), ''::text), 'hex'::text);

CREATE FUNCTION public.protect_scoped(protected regclass) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    execute format('alter table %s enable row level security', protected);
    execute format('alter table %s force row level security', protected);
    execute format(
        'create policy of_tenant on %s to recollect_service '
        'using (scope_id >= (select first_scope()) and scope_id <= (select last_scope())) '
        'with check (scope_id >= (select first_scope()) and scope_id <= (select last_scope()))', protected);
    execute format('grant select, insert, update, delete on %s to recollect_service', protected);
end $$;

CREATE FUNCTION public.prune_kept(kept text, before timestamp with time zone, most integer) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
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

CREATE FUNCTION public.read_relations(asked_scope bigint, asked_ids uuid[]) RETURNS TABLE(place bigint, id uuid, lineage uuid, version integer, subject_id uuid, predicate text, object_id uuid, valid_at timestamp with time zone, invalid_at timestamp with time zone, created_at timestamp with time zone, superseded_at timestamp with time zone, content text, subject_name text, subject_type text, object_name text, object_type text)
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_sort TO 'off'
    AS $$
begin
    return query
    select each.place, fact.id, fact.lineage, fact.version, fact.subject_id, fact.predicate, fact.object_id,
           fact.valid_at, fact.invalid_at, fact.created_at, fact.superseded_at, said.content,
           subject.name, subject.type, object.name, object.type
    from unnest(asked_ids) with ordinality as each (id, place)
    cross join lateral (
        select beliefs.* from beliefs
        where beliefs.scope_id = asked_scope and beliefs.id between each.id and each.id order by beliefs.id limit 1
    ) fact
    cross join lateral (
        select memories.content from memories
        where memories.scope_id = asked_scope and memories.id between each.id and each.id order by memories.id limit 1
    ) said
    cross join lateral (
        select entities.name, entities.type from entities
        where entities.scope_id = asked_scope and entities.id between fact.subject_id and fact.subject_id
        order by entities.id limit 1
    ) subject
    cross join lateral (
        select entities.name, entities.type from entities
        where entities.scope_id = asked_scope and entities.id between fact.object_id and fact.object_id
        order by entities.id limit 1
    ) object;
end $$;

CREATE FUNCTION public.read_segment_again(asked_scope bigint, asked_conversation text, asked_number bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    touched uuid := (
        select id from (
            select id, last_number from segments
            where scope_id = asked_scope and conversation_id = asked_conversation and first_number <= asked_number
            order by first_number desc limit 1
        ) segment
        where last_number >= asked_number);
begin
    delete from extractions where scope_id = asked_scope and segment_id = touched;
    update segments set state = 'closed', label = '', reason = '', attempts = 0, enriched_at = null
    where scope_id = asked_scope and id = touched;
end $$;

CREATE FUNCTION public.reading_tenant() RETURNS bigint
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$ select tenant_id from readers where name = session_user $$;

CREATE TABLE public.purge_receipts (
    scope_id bigint NOT NULL,
    tenant_id bigint GENERATED ALWAYS AS ((scope_id >> 40)) STORED NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    conversation_id text NOT NULL,
    asked_by text NOT NULL,
    removed jsonb DEFAULT '{}'::jsonb NOT NULL,
    begun_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    erased_at timestamp with time zone,
    finished_at timestamp with time zone,
    mirrors jsonb DEFAULT '{}'::jsonb NOT NULL
);

ALTER TABLE ONLY public.purge_receipts FORCE ROW LEVEL SECURITY;

CREATE FUNCTION public.receipts_before(moment timestamp with time zone, before_id uuid, most integer) RETURNS SETOF public.purge_receipts
    LANGUAGE sql STABLE
    SET enable_sort TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
    select * from purge_receipts
    where tenant_id = current_tenant() and (begun_at, id) < (moment, before_id)
    order by begun_at desc, id desc
    limit most
$$;

CREATE FUNCTION public.remirror(moved_scope bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    if exists (select from mirrors) then
        update mirror_positions set position = 0 where scope_id = moved_scope;
        perform note_unmirrored(id, change_number) from scopes where id = moved_scope and change_number > 0;
    end if;
end $$;

CREATE FUNCTION public.rename_message(asked_scope bigint, asked_conversation text, since bigint, former uuid, latter uuid) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    update messages
    set parent_id = case when parent_id = former then latter else parent_id end,
        turn_id = case when turn_id = former then latter else turn_id end,
        stated_parent = case when stated_parent = former then latter else stated_parent end
    where scope_id = asked_scope and conversation_id = asked_conversation and number >= since
      and (parent_id = former or turn_id = former or stated_parent = former);
end $$;

CREATE FUNCTION public.renew_incarnation() RETURNS uuid
    LANGUAGE sql
    AS $$
    delete from former_incarnations;
    delete from incarnations;
    insert into incarnations default values returning id
$$;

CREATE FUNCTION public.replace_message(asked_scope bigint, elder uuid, heir uuid, row_of jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    place record;
begin
    insert into past_messages select * from messages where scope_id = asked_scope and id = elder;
    update messages
    set id = heir, occurred_at = (row_of ->> 'occurred_at')::timestamptz, tokens = row_of -> 'tokens',
        images = (row_of ->> 'images')::smallint, parts = nullif(row_of -> 'parts', '[]')
    where scope_id = asked_scope and id = elder
    returning conversation_id, number into place;
    perform rename_message(asked_scope, place.conversation_id, place.number, elder, heir);
    insert into pending_embeddings (scope_id, id)
    select distinct asked_scope, messages.id from messages
    join context_vectors on context_vectors.scope_id = asked_scope and context_vectors.id = messages.id
    join memories on memories.scope_id = asked_scope and memories.id = messages.id and memories.withheld is null
    where messages.scope_id = asked_scope and messages.parent_id = heir
    on conflict do nothing;
end $$;

CREATE FUNCTION public.replant_topics(asked_scope bigint, old_path text, new_path text) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    moved uuid[] := array(select id from topics_at(asked_scope, array[old_path]))
        || array(select topics_below(asked_scope, old_path));
    paths text[];
    each record;
begin
    paths := array(
        select new_path || substr(topics.path::text, length(old_path) + 1)
        from unnest(moved) with ordinality as mover (id, place)
        join topics on topics.scope_id = asked_scope and topics.id = mover.id
        order by mover.place);
    -- Out of the way first: where a topic goes, another one of these may still stand.
    update topics set path = '-'::ltree || path where scope_id = asked_scope and id = any (moved);
    for each in
        select mover.id, mover.path, met.id as heir
        from unnest(moved, paths) with ordinality as mover (id, path, place)
        left join topics_at(asked_scope, paths) met on met.place = mover.place
        order by mover.place desc
    loop
        if each.heir is null then
            update topics set path = each.path::ltree where scope_id = asked_scope and id = each.id;
        else
            perform absorb_topic(asked_scope, each.id, each.heir);
        end if;
    end loop;
    perform tidy_topics(asked_scope, array(
        select id from topics_at(asked_scope, array[subpath(old_path::ltree, 0, -1)::text])))
    where nlevel(old_path::ltree) > 1;
end $$;

CREATE FUNCTION public.restore_derived(asked_scope bigint, asked_ids uuid[]) RETURNS uuid[]
    LANGUAGE plpgsql
    AS $$
declare
    hidden uuid[] := array(
        select id from memories where scope_id = asked_scope and withheld = 'deleted'
          and id = any (array(select derived_from(asked_scope, asked_ids))));
    ready uuid[];
    waiting uuid[] := '{}';
begin
    loop
        ready := array(
            select each.id from unnest(hidden) as each (id)
            where not exists (
                select from evidence join memories source
                    on source.scope_id = asked_scope and source.id = evidence.source_id
                left join messages on messages.scope_id = asked_scope and messages.id = source.id
                left join conversations
                    on conversations.scope_id = asked_scope and conversations.id = messages.conversation_id
                where evidence.scope_id = asked_scope and evidence.memory_id = each.id
                  and (source.withheld in ('deleted', 'to_rederive') or conversations.state in ('deleted', 'purging'))
            ));
        exit when cardinality(ready) = 0;
        waiting := waiting || restore_memories(asked_scope, ready);
        hidden := array(select unnest(hidden) except select unnest(ready));
    end loop;
    return waiting;
end $$;

CREATE FUNCTION public.restore_memories(asked_scope bigint, asked_ids uuid[]) RETURNS uuid[]
    LANGUAGE plpgsql
    AS $_$
declare
    space integer;
    taken uuid[];
    waiting uuid[];
begin
    update memories set withheld = case when id in (select past_among(asked_scope, asked_ids)) then 'past' else 'faded' end
    where scope_id = asked_scope and withheld in ('archived', 'deleted')
      and id = any (array(
          select past_among(asked_scope, asked_ids)
          union
          select id from withheld_memories
          where scope_id = asked_scope and id = any (asked_ids) and faded_at is not null
      ));
    taken := array(select id from memories where scope_id = asked_scope and id = any (asked_ids)
                   and withheld in ('archived', 'deleted') order by id for update);
    if cardinality(taken) = 0 then
        return '{}';
    end if;
    update memories set withheld = null where scope_id = asked_scope and id = any (taken);
    -- Memories are looked up all at once: one by one the planner would read the scope by time for each of them.
    insert into memory_terms (scope_id, id, kind, trust, terms, weights, draw)
    select asked_scope, memories.id, memories.kind, memories.trust, side.terms, side.weights, side.draw
    from withheld_memories side join (
        select id, kind, trust, keywords from memories where scope_id = asked_scope and id = any (taken) offset 0
    ) memories on memories.id = side.id
    where side.scope_id = asked_scope and side.id = any (taken);
    insert into memory_keywords (scope_id, keyword, kind, id, counted)
    select asked_scope, filed.keyword, memories.kind, memories.id, side.counted
    from withheld_memories side join (
        select id, kind, trust, keywords from memories where scope_id = asked_scope and id = any (taken) offset 0
    ) memories on memories.id = side.id,
         unnest(memories.keywords) as filed (keyword)
    where side.scope_id = asked_scope and side.id = any (taken);
    insert into keyword_strengths (scope_id, kind, keyword, strength)
    select asked_scope, memories.kind, filed.keyword, count(*)
    from withheld_memories side join (
        select id, kind, trust, keywords from memories where scope_id = asked_scope and id = any (taken) offset 0
    ) memories on memories.id = side.id,
         unnest(memories.keywords) as filed (keyword)
    where side.scope_id = asked_scope and side.id = any (taken) and side.counted
    group by memories.kind, filed.keyword
    on conflict (scope_id, kind, keyword) do update set strength = keyword_strengths.strength + excluded.strength;
    insert into accesses (scope_id, id, kind, last_accessed_at, access_count)
    select asked_scope, memories.id, memories.kind, side.last_accessed_at, side.access_count
    from withheld_memories side join (
        select id, kind, trust, keywords from memories where scope_id = asked_scope and id = any (taken) offset 0
    ) memories on memories.id = side.id
    where side.scope_id = asked_scope and side.id = any (taken) and side.last_accessed_at is not null;
    for space in select id from embedding_spaces loop
        execute format(
            'insert into %I (scope_id, id, kind, trust, idle, importance, embedding) '
            'select $1, memories.id, memories.kind, memories.trust, memories.idle, '
            'case when $3 = (select folded_space from scopes where id = $1) then memories.importance end, side.embedding '
            'from withheld_vectors side join ('
            'select id, kind, trust, idle, importance from memories where scope_id = $1 and id = any ($2) offset 0'
            ') memories on memories.id = side.id where side.scope_id = $1 and side.id = any ($2) and side.space_id = $3', 'vectors_' || space)
            using asked_scope, taken, space;
    end loop;
    waiting := array(
        select memories.id from memories join embedding_spaces active on active.state = 'active'
        where scope_id = asked_scope and memories.id = any (taken) and (content <> '' or embedding_text <> '')
          and not exists (
              select from withheld_vectors side
              where side.scope_id = asked_scope and side.id = memories.id and side.space_id = active.id
          ));
    insert into pending_embeddings (scope_id, id) select asked_scope, unnest(waiting);
    perform count_in(
        asked_scope, array(select kind from memories where scope_id = asked_scope and id = any (taken)),
        (select sum(side.term_count)::bigint from withheld_memories side
         where side.scope_id = asked_scope and side.id = any (taken)));
    delete from withheld_memories where scope_id = asked_scope and id = any (taken);
    delete from withheld_vectors where scope_id = asked_scope and id = any (taken);
    return waiting;
end $_$;

CREATE FUNCTION public.rests_on_deleted(asked_scope bigint, asked_id uuid) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
    with recursive source (id) as (
        values (asked_id)
        union
        select next.source_id
        from source cross join lateral (
            select source_id from evidence where scope_id = asked_scope and memory_id = source.id offset 0
        ) next
    )
    select exists (
        select from source
        cross join lateral (
            select conversation_id from messages where messages.scope_id = asked_scope and messages.id = source.id
            union all
            select conversation_id from past_messages past where past.scope_id = asked_scope and past.id = source.id
        ) said
        join conversations on conversations.scope_id = asked_scope and conversations.id = said.conversation_id
        where conversations.state in ('deleted', 'purging')
    )
$$;

CREATE FUNCTION public.resume_writes(asked_tenant integer) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.revive_memories(asked_scope bigint, asked_ids uuid[], OUT revived uuid[], OUT waiting uuid[]) RETURNS record
    LANGUAGE plpgsql
    AS $$
begin
    revived := array(select id from memories where scope_id = asked_scope and id = any (asked_ids)
                       and withheld = 'faded' order by id for update);
    update withheld_memories set faded_at = null where scope_id = asked_scope and id = any (revived);
    update memories
    set withheld = 'archived', revived_at = clock_timestamp(),
        expires_at = case when expires_at > clock_timestamp() then expires_at end
    where scope_id = asked_scope and id = any (revived);
    waiting := restore_memories(asked_scope, revived);
    -- What is past by now is so still.
    revived := array(select id from memories where scope_id = asked_scope and id = any (revived)
                       and withheld is null order by id);
end $$;

CREATE FUNCTION public.root_key(tenant integer, shown uuid) RETURNS uuid
    LANGUAGE plpgsql STABLE
    AS $$
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

CREATE FUNCTION public.said_before(asked_scope bigint, asked_id uuid, most integer) RETURNS TABLE(parent_id uuid, speaker text, content text)
    LANGUAGE sql STABLE
    AS $$
    select parent.id, parent.speaker, right(parent.content, most)
    from (
        select messages.parent_id from messages
        where messages.scope_id = asked_scope and messages.id between asked_id and asked_id
        order by messages.id limit 1
    ) message
    cross join lateral (
        select memories.id, memories.speaker, memories.content from memories
        where memories.scope_id = asked_scope and memories.id between message.parent_id and message.parent_id
        order by memories.id limit 1
    ) parent
$$;

CREATE FUNCTION public.search_stream_index(space integer, asked_scope bigint, cue public.vector, asked_kinds text[], weights double precision[], hit_limit integer) RETURNS TABLE(ids uuid[], nearest double precision, farthest double precision, mildest double precision, gravest double precision)
    LANGUAGE plpgsql STABLE
    AS $_$
declare
    asked embedding_spaces := (select s from embedding_spaces s where s.id = space);
    type text := case asked.precision when 'half' then 'halfvec' else 'vector' end;
    vectors text := 'vectors_' || space;
    among text := format(' from %I where scope_id = %s and kind = any (%L) and not idle ', vectors, asked_scope, asked_kinds);
    search text := among || format('order by (fold_importance(embedding, importance)::%s(%s)) <#> $1::%1$s limit ',
                                   type, asked.dimensions + 2);
    distance text := 'embedding <#> $2::' || type;
    nothing vector := '[0,0]';
    usual text := current_setting('hnsw.ef_search');
    mildest_waiting double precision; gravest_waiting double precision;
    slope double precision; rise double precision; lift double precision;
    more uuid[];
begin
    -- The planner takes the policy's range for a narrow one and would scan the whole scope for cheaper.
    perform set_config('enable_sort', 'off', true), set_config('hnsw.ef_search', '100', true);
    execute 'select ' || distance || search || '1' into farthest using (cue - cue - cue) || nothing, cue;
    execute 'select array_agg(id), min(distance) from (select id, ' || distance || ' as distance' || search || '30) top'
        into ids, nearest using cue || nothing, cue;
    execute format('select min(importance), max(importance) from %I where scope_id = %s and not idle', vectors, asked_scope)
        into mildest, gravest;
    select min(m.importance), max(m.importance) into mildest_waiting, gravest_waiting
    from pending_embeddings p join memories m on m.scope_id = p.scope_id and m.id = p.id
    where p.scope_id = asked_scope and m.kind = any (asked_kinds) and not m.idle;
    slope := coalesce(weights[2] / nullif(farthest - nearest, 0), 0);
    rise := coalesce(weights[3] / nullif(greatest(gravest, gravest_waiting) - least(mildest, mildest_waiting), 0), 0);
    -- The weight of importance relative to meaning, in the unit in which it is folded in; the larger of the two becomes 1.
    lift := case when slope * 1e9 > rise then rise / slope * 10 else 1e9 end;
    perform set_config('hnsw.ef_search', '200', true);
    execute 'select array_agg(id) from (select id' || search || greatest(100, 2 * hit_limit) || ') top' into more
        using cue * array_fill((1 / greatest(lift, 1))::real, array[asked.dimensions])::vector
              || array[least(lift, 1), 0]::real[]::vector;
    perform set_config('enable_sort', 'on', true), set_config('hnsw.ef_search', usual, true);
    ids := ids || more;
    if coalesce(cardinality(more), 0) < hit_limit then
        execute format('select array_agg(id), min(%s), max(%1$s), min(importance), max(importance)', distance) || among
            into ids, nearest, farthest, mildest, gravest using cue, cue;
    end if;
    mildest := least(mildest, mildest_waiting);
    gravest := greatest(gravest, gravest_waiting);
    return next;
end $_$;

CREATE FUNCTION public.segment_state(asked_scope bigint, asked_id uuid) RETURNS text
    LANGUAGE sql STABLE
    AS $$
    select segment.state
    from (
        select conversation_id, number from messages
        where scope_id = asked_scope and id between asked_id and asked_id
        order by id limit 1
    ) said
    cross join lateral (
        select state, last_number from segments
        where scope_id = asked_scope and conversation_id = said.conversation_id and first_number <= said.number
        order by first_number desc limit 1
    ) segment
    where segment.last_number >= said.number
$$;

CREATE FUNCTION public.source_in_sight(asked_scope bigint, asked_source uuid) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
    select exists (
        select from segments
        join conversations on conversations.scope_id = asked_scope and conversations.id = segments.conversation_id
        where segments.scope_id = asked_scope and segments.id = asked_source
          and conversations.state not in ('deleted', 'purging')
    ) or exists (
        select from memories
        where memories.scope_id = asked_scope and memories.id = asked_source
          and (withheld is null or withheld in ('archived', 'past', 'faded'))
          and not rests_on_deleted(asked_scope, asked_source)
    )
$$;

CREATE FUNCTION public.spelled_alike(asked_scope bigint, asked_names text[]) RETURNS TABLE(id uuid, alike real)
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
begin
    return query
    select nearest.id, max(nearest.alike)
    from unnest(asked_names) as asked (name)
    cross join lateral (
        select entities.id, similarity(entities.normalised, asked.name) as alike from entities
        where entities.scope_id = asked_scope and entities.initials = left(asked.name, 2)
        order by alike desc, entities.id limit 1
    ) nearest
    where nearest.alike >= 0.5
    group by nearest.id;
end $$;

CREATE FUNCTION public.standing_keys(tenants integer[], shown uuid[]) RETURNS SETOF uuid
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    select given.key from unnest(tenants, shown) as given (tenant, key) where root_key(given.tenant, given.key) is not null
$$;

CREATE FUNCTION public.stands(asked_scope bigint, asked_id uuid, occurred_at timestamp with time zone, as_of timestamp with time zone, at timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
declare
    version record;
begin
    select valid_at, invalid_at, superseded_at, subject_id is not null or valid_at is not null as bounded into version
    from beliefs where scope_id = asked_scope and id between asked_id and asked_id order by id limit 1;
    return coalesce(version.superseded_at > as_of, version.superseded_at is null)
        and (version.invalid_at is null or version.invalid_at > coalesce(at, as_of, now()))
        and (at is null or case when version.bounded then coalesce(version.valid_at <= at, true)
                                else occurred_at <= at end);
end $$;

CREATE FUNCTION public.suspend_writes(asked_tenant integer) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    perform pg_advisory_xact_lock(placement_lock(), asked_tenant);
    if not exists (select from server_identity) then
        insert into placements (tenant_id, first_bucket, last_bucket, generation) values (asked_tenant, -1, 4095, 1)
        on conflict do nothing;
    end if;
    update placements set state = 'fenced' where tenant_id = asked_tenant and state = 'open';
end $$;

CREATE FUNCTION public.switch_embedding_space(new_space integer) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    update embedding_spaces set state = 'retired' where state = 'active';
    update embedding_spaces set state = 'active', filled_scope = 0,
        filled_id = '00000000-0000-0000-0000-000000000000' where id = new_space and state <> 'active';
    if not found then
        raise exception 'There is no embedding space % to switch to.', new_space;
    end if;
    perform follow_active_space();
end $$;

CREATE FUNCTION public.tenants_to_add_up() RETURNS SETOF bigint
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    select distinct tenant_id from ledger
    where at < date_trunc('day', clock_timestamp(), 'UTC') - interval '48 hours'
      and (at at time zone 'UTC')::time <> '00:00' and is_writable(scope_id)
$$;

CREATE FUNCTION public.tidy_entities(asked_scope bigint, asked_ids uuid[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    each record;
    chosen record;
begin
    delete from entities
    where scope_id = asked_scope and id = any (asked_ids)
      and not exists (select from mentions where mentions.scope_id = asked_scope and entity_id = entities.id)
      and not exists (select from beliefs where beliefs.scope_id = asked_scope and subject_id = entities.id)
      and not exists (select from beliefs where beliefs.scope_id = asked_scope and object_id = entities.id);
    for each in
        select id, normalised, type from entities
        where scope_id = asked_scope and id = any (asked_ids)
          and not exists (
              select from mentions where mentions.scope_id = asked_scope and entity_id = entities.id
                and mentions.normalised = entities.normalised and mentions.name = entities.name
          )
        order by id
    loop
        select called.name, called.normalised,
               exists (
                   select from entities other where other.scope_id = asked_scope and other.id <> each.id
                     and other.normalised = called.normalised and other.type = each.type
               ) as taken
        into chosen
        from (
            select mentions.name, mentions.normalised, mentioned_at from mentions
            where mentions.scope_id = asked_scope and entity_id = each.id
            union all
            -- Of an entity that only facts are left of, what they call it.
            select named.name, left(lower(named.name), 400), 'infinity'
            from beliefs
            join memories on memories.scope_id = asked_scope and memories.id = beliefs.id
            cross join lateral (
                select case when subject_id = each.id then memories.subject else memories.object end as name
            ) named
            where beliefs.scope_id = asked_scope and named.name <> ''
              and beliefs.id in (
                  select id from beliefs where scope_id = asked_scope and subject_id = each.id
                  union all
                  select id from beliefs where scope_id = asked_scope and object_id = each.id
              )
        ) called
        order by called.normalised <> each.normalised, taken, mentioned_at, called.normalised, called.name
        limit 1;
        update entities
        set name = coalesce(chosen.name, '?'),
            normalised = case
                when chosen.name is null then '? (' || each.id || ')'
                when chosen.taken then left(chosen.normalised, 400) || ' (' || each.id || ')'
                else chosen.normalised
            end
        where scope_id = asked_scope and id = each.id;
    end loop;
end $$;

CREATE FUNCTION public.tidy_topics(asked_scope bigint, asked_ids uuid[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    parents text[];
begin
    while cardinality(asked_ids) > 0 loop
        with gone as (
            delete from topics
            where scope_id = asked_scope and id = any (asked_ids)
              -- Between, and in the order of the key: else any index of the scope will do, and all of it may be read.
              and (select topic_id from topic_links
                   where topic_links.scope_id = asked_scope and topic_id between topics.id and topics.id
                   order by topic_id, memory_id limit 1) is null
              and (select related_id from related_topics
                   where related_topics.scope_id = asked_scope and related_id between topics.id and topics.id
                   order by related_id limit 1) is null
              and not is_topic_above(asked_scope, path::text)
            returning path
        )
        select array_agg(distinct subpath(path, 0, -1)::text) filter (where nlevel(path) > 1) into parents from gone;
        asked_ids := array(select id from topics_at(asked_scope, parents));
    end loop;
end $$;

CREATE FUNCTION public.topics_at(asked_scope bigint, asked_paths text[]) RETURNS TABLE(place integer, id uuid)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
begin
    -- Without a tenant the comparison is null: only what is true may go on.
    if (asked_scope between first_scope() and last_scope()) is not true then
        return;
    end if;
    return query
    select asked.place::integer, found.id from unnest(asked_paths) with ordinality as asked (path, place)
    cross join lateral (
        select topics.id from topics where topics.scope_id = asked_scope and topics.path = asked.path::ltree offset 0
    ) found;
end $$;

CREATE FUNCTION public.topics_below(asked_scope bigint, asked_path text) RETURNS SETOF uuid
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
begin
    if (asked_scope between first_scope() and last_scope()) is not true then
        return;
    end if;
    return query
    select topics.id from topics
    where topics.scope_id = asked_scope and path > asked_path::ltree and path < (asked_path || '-')::ltree
    order by path;
end $$;

CREATE FUNCTION public.true_at(asked_scope bigint, moment timestamp with time zone) RETURNS SETOF uuid
    LANGUAGE sql STABLE
    AS $$
    select id from memories
    where scope_id = asked_scope and kind = any ('{message,event,chat,thought,summary}') and occurred_at <= moment
      and withheld is null
    union all
    select memories.id from memories
    left join beliefs on beliefs.scope_id = asked_scope and beliefs.id = memories.id
    where memories.scope_id = asked_scope and memories.kind = 'fact' and memories.withheld is null
      and case when beliefs.id is null then memories.occurred_at <= moment
               else (beliefs.valid_at is null or beliefs.valid_at <= moment)
                   and (beliefs.invalid_at is null or beliefs.invalid_at > moment) end
$$;

CREATE FUNCTION public.unfile(asked_scope bigint, filed_keywords text[], filed_kinds text[], filed_ids uuid[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    with unfiled as (
        delete from memory_keywords side
        using unnest(filed_keywords, filed_kinds, filed_ids) as filed (keyword, kind, id)
        where side.scope_id = asked_scope and side.keyword = filed.keyword
          and side.kind = filed.kind and side.id = filed.id
        returning side.kind, side.keyword, side.counted
    ), gone as (
        select kind, keyword, count(*) as times from unfiled where counted group by 1, 2
    ), weakened as (
        update keyword_strengths side set strength = side.strength - gone.times
        from gone
        where side.scope_id = asked_scope and side.kind = gone.kind and side.keyword = gone.keyword
          and side.strength > gone.times
        returning side.kind, side.keyword
    )
    delete from keyword_strengths side using gone
    where side.scope_id = asked_scope and side.kind = gone.kind and side.keyword = gone.keyword
      and not exists (select from weakened where weakened.kind = side.kind and weakened.keyword = side.keyword);
end $$;

CREATE FUNCTION public.versions_of_run(asked_scope bigint, asked_segments uuid[]) RETURNS TABLE(id uuid, lineage uuid, stands boolean, valid_at timestamp with time zone, invalid_at timestamp with time zone)
    LANGUAGE sql STABLE
    SET enable_nestloop TO 'off'
    AS $$
    with recursive inside as materialized (
        select said.id from unnest(asked_segments) as asked (id)
        cross join lateral (
            select conversation_id, first_number, last_number from segments
            where scope_id = asked_scope and segments.id between asked.id and asked.id order by segments.id limit 1
        ) segment
        cross join lateral (
            select messages.id from messages
            where scope_id = asked_scope and conversation_id = segment.conversation_id
              and number between segment.first_number and segment.last_number
            offset 0
        ) said
    ), resting as materialized (
        select memory_id, source_id from evidence where scope_id = asked_scope
    ), versions as materialized (
        select beliefs.id, beliefs.lineage, version, superseded_at, subject_id, predicate, object_id, beliefs.valid_at,
               beliefs.invalid_at
        from beliefs where scope_id = asked_scope and subject_id is not null
    ), touched (id) as (
        select resting.memory_id from inside join resting on resting.source_id = inside.id
        union
        select resting.memory_id from touched join resting on resting.source_id = touched.id
    ), learned as materialized (
        select versions.* from touched join versions on versions.id = touched.id
        join memories on memories.scope_id = asked_scope and memories.id = touched.id and memories.origin = 'enrich'
    ), causes as materialized (
        -- What a version was made from, beside the version before it.
        select learned.id, resting.source_id from learned
        join resting on resting.memory_id = learned.id
        left join versions own on own.id = resting.source_id
        where own.lineage is distinct from learned.lineage
    ), others (id) as (
        (
            select learned.id from learned where not exists (select from causes where causes.id = learned.id)
            union
            select causes.id from causes
            where not exists (select from inside where inside.id = causes.source_id)
              and not exists (select from learned where learned.id = causes.source_id)
        )
        union
        select causes.id from others join causes on causes.source_id = others.id
    ), of_run as materialized (
        select learned.* from learned where not exists (select from others where others.id = learned.id)
    ), standing as materialized (
        select distinct on (of_run.id) of_run.id as place, earlier.* from of_run
        join versions earlier on earlier.lineage = of_run.lineage and earlier.version < of_run.version
        where not exists (select from of_run own where own.id = earlier.id)
        order by of_run.id, earlier.version desc
    )
    select of_run.id, of_run.lineage, standing.id is not null, standing.valid_at, standing.invalid_at
    from of_run left join standing on standing.place = of_run.id
    where of_run.superseded_at is null
      -- What another fact says by now is not said twice.
      and not exists (
          select from versions other
          where other.subject_id = standing.subject_id and other.object_id = standing.object_id
            and other.predicate = standing.predicate and other.lineage <> standing.lineage
            and other.superseded_at is null and not exists (select from of_run own where own.id = other.id)
            and tstzrange(other.valid_at, other.invalid_at) && tstzrange(standing.valid_at, standing.invalid_at)
      )
$$;

CREATE FUNCTION public.waits_for_chat(queue character varying) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ((queue)::text = ANY ('{enrich,reflect,rederive}'::text[]));

CREATE FUNCTION public.walk_facts(asked_scope bigint, starts uuid[], hops integer, beam integer, as_of timestamp with time zone, at timestamp with time zone, hidden text[], allowed uuid[]) RETURNS TABLE(hop integer, place bigint, id uuid, source uuid, target uuid)
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_sort TO 'off'
    AS $$
declare
    -- A deleted conversation, and what was made from it, is out of sight at once; the rows follow one by one.
    unsynced boolean := exists (
        select from conversations
        where scope_id = asked_scope and not synced and state in ('deleted', 'purging'));
begin
    return query
    with recursive walk (hop, frontier, behind, facts, sources, targets) as (
        select 0, starts, '{}'::uuid[], '{}'::uuid[], '{}'::uuid[], '{}'::uuid[]
        union all
        select walk.hop + 1,
               array(select distinct reached.id from unnest(followed.targets) as reached (id)
                     where reached.id <> all (walk.frontier)),
               walk.behind || walk.frontier, followed.facts, followed.sources, followed.targets
        from walk cross join lateral (
            select array_agg(best.id order by best.id desc) as facts,
                   array_agg(best.source order by best.id desc) as sources,
                   array_agg(best.target order by best.id desc) as targets
            from (
                select distinct on (touching.id) touching.id, each.id as source, touching.target
                from unnest(walk.frontier) as each (id) cross join lateral (
                    (select fact.id, fact.object_id as target from beliefs fact
                     where fact.scope_id = asked_scope and fact.subject_id = each.id
                       and fact.created_at <= as_of and (fact.superseded_at is null or fact.superseded_at > as_of)
                       and (fact.valid_at is null or fact.valid_at <= at)
                       and (fact.invalid_at is null or fact.invalid_at > at)
                       and (fact.withheld_for is null or fact.withheld_for <> all (hidden))
                       and fact.object_id <> all (walk.behind)
                       and (allowed is null or fact.id in (select unnest(allowed)))
                       and (not unsynced or not rests_on_deleted(asked_scope, fact.id))
                     order by fact.id desc
                     limit greatest(10, beam / cardinality(walk.frontier)))
                    union all
                    (select fact.id, fact.subject_id from beliefs fact
                     where fact.scope_id = asked_scope and fact.object_id = each.id
                       and fact.created_at <= as_of and (fact.superseded_at is null or fact.superseded_at > as_of)
                       and (fact.valid_at is null or fact.valid_at <= at)
                       and (fact.invalid_at is null or fact.invalid_at > at)
                       and (fact.withheld_for is null or fact.withheld_for <> all (hidden))
                       and fact.subject_id <> all (walk.behind)
                       and (allowed is null or fact.id in (select unnest(allowed)))
                       and (not unsynced or not rests_on_deleted(asked_scope, fact.id))
                     order by fact.id desc
                     limit greatest(10, beam / cardinality(walk.frontier)))
                ) touching
                order by touching.id desc, each.id
                limit beam
            ) best
        ) followed
        where walk.hop < hops and cardinality(walk.frontier) > 0 and followed.facts is not null
    )
    select walk.hop, step.place, step.id, step.source, step.target
    from walk, unnest(walk.facts, walk.sources, walk.targets) with ordinality as step (id, source, target, place);
end $$;

CREATE FUNCTION public.withhold_memories(asked_scope bigint, asked_ids uuid[], reason text) RETURNS integer
    LANGUAGE plpgsql
    AS $_$
declare
    space integer;
    taken uuid[];
    share bigint;
begin
    if reason = 'past' then
        asked_ids := array(select id from memories where scope_id = asked_scope and id = any (asked_ids)
                             and withheld is distinct from 'deleted');
    end if;
    perform fold_accesses(asked_scope);
    -- Whoever is giving one of them a vector at this moment is waited for.
    taken := array(select id from memories where scope_id = asked_scope and id = any (asked_ids) and withheld is null
                   order by id for update);
    update memories set withheld = reason
    where scope_id = asked_scope and id = any (asked_ids)
      and withheld is distinct from reason and withheld is distinct from 'to_rederive';
    if cardinality(taken) = 0 then
        return 0;
    end if;
    share := count_out(
        asked_scope, array(select kind from memories where scope_id = asked_scope and id = any (taken)));
    insert into withheld_memories
        (scope_id, id, terms, weights, draw, counted, term_count, last_accessed_at, access_count)
    select asked_scope, memory_terms.id, memory_terms.terms, memory_terms.weights, memory_terms.draw,
           exists (
               select from memories join memory_keywords filed
                   on filed.scope_id = asked_scope and filed.keyword = any (memories.keywords)
                  and filed.kind = memories.kind and filed.id = memories.id
               where memories.scope_id = asked_scope and memories.id = memory_terms.id and filed.counted
           ),
           share * each.number / cardinality(taken) - share * (each.number - 1) / cardinality(taken),
           accesses.last_accessed_at, accesses.access_count
    from unnest(taken) with ordinality as each (id, number)
    join memory_terms on memory_terms.scope_id = asked_scope and memory_terms.id = each.id
    left join accesses on accesses.scope_id = asked_scope and accesses.id = each.id;
    for space in select id from embedding_spaces loop
        execute format(
            'with taken as (delete from %I where scope_id = $1 and id = any ($2) returning id, embedding) '
            'insert into withheld_vectors (scope_id, id, space_id, embedding) '
            'select $1, id, $3, embedding::vector from taken', 'vectors_' || space)
            using asked_scope, taken, space;
    end loop;
    perform unfile(asked_scope, array_agg(filed.keyword), array_agg(kind), array_agg(id))
    from memories, unnest(keywords) as filed (keyword)
    where scope_id = asked_scope and id = any (taken)
    having count(*) > 0;
    delete from memory_terms where scope_id = asked_scope and id = any (taken);
    delete from accesses where scope_id = asked_scope and id = any (taken);
    delete from pending_embeddings where scope_id = asked_scope and id = any (taken);
    return cardinality(taken);
end $_$;

CREATE TABLE public.agents (
    tenant_id integer NOT NULL,
    agent text NOT NULL,
    profile jsonb DEFAULT '{}'::jsonb NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL
);

ALTER TABLE ONLY public.agents FORCE ROW LEVEL SECURITY;

CREATE TABLE public.api_keys (
    tenant_id integer NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    secret_hash bytea NOT NULL,
    name text NOT NULL,
    rights text[] NOT NULL,
    trust smallint NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    revoked_at timestamp with time zone,
    agent text,
    "user" text,
    expires_at timestamp with time zone,
    parent uuid,
    last_used_at timestamp with time zone,
    requests_per_second double precision,
    burst integer,
    bytes_per_minute bigint,
    largest_body integer,
    change_streams integer,
    CONSTRAINT api_keys_burst_check CHECK ((burst > 0)),
    CONSTRAINT api_keys_bytes_per_minute_check CHECK ((bytes_per_minute > 0)),
    CONSTRAINT api_keys_change_streams_check CHECK ((change_streams > 0)),
    CONSTRAINT api_keys_largest_body_check CHECK ((largest_body > 0)),
    CONSTRAINT api_keys_requests_per_second_check CHECK ((requests_per_second > (0)::double precision)),
    CONSTRAINT api_keys_rights_check CHECK (((rights <@ ARRAY['read'::text, 'write'::text, 'admin'::text, 'delegate'::text]) AND (cardinality(rights) > 0))),
    CONSTRAINT api_keys_secret_hash_check CHECK ((length(secret_hash) = 32)),
    CONSTRAINT api_keys_trust_check CHECK (((trust >= 0) AND (trust <= 100))),
    CONSTRAINT bound_from_the_agent_on CHECK (((agent IS NOT NULL) OR ("user" IS NULL))),
    CONSTRAINT children_expire CHECK (((parent IS NULL) OR (expires_at IS NOT NULL)))
);

ALTER TABLE ONLY public.api_keys FORCE ROW LEVEL SECURITY;

CREATE TABLE public.awaited_mirrors (
    scope_id bigint NOT NULL,
    receipt_id uuid NOT NULL,
    mirror text NOT NULL,
    number bigint NOT NULL
);

ALTER TABLE ONLY public.awaited_mirrors FORCE ROW LEVEL SECURITY;

CREATE TABLE public.beliefs (
    scope_id bigint NOT NULL,
    id uuid NOT NULL,
    lineage uuid NOT NULL,
    version integer NOT NULL,
    subject_id uuid,
    predicate text DEFAULT ''::text NOT NULL,
    object_id uuid,
    valid_at timestamp with time zone,
    invalid_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    superseded_at timestamp with time zone,
    withheld_for text,
    contested boolean DEFAULT false NOT NULL,
    revises boolean DEFAULT false NOT NULL,
    CONSTRAINT beliefs_check CHECK ((invalid_at > valid_at)),
    CONSTRAINT beliefs_check1 CHECK ((superseded_at >= created_at)),
    CONSTRAINT beliefs_check2 CHECK (((NOT contested) OR (superseded_at = created_at))),
    CONSTRAINT beliefs_check3 CHECK (((subject_id IS NULL) = (object_id IS NULL))),
    CONSTRAINT beliefs_version_check CHECK ((version > 0))
);
ALTER TABLE ONLY public.beliefs ALTER COLUMN predicate SET STATISTICS 0;

ALTER TABLE ONLY public.beliefs FORCE ROW LEVEL SECURITY;

CREATE TABLE public.change_readers (
    scope_id bigint NOT NULL,
    name text NOT NULL,
    "position" bigint DEFAULT 0 NOT NULL,
    read_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE ONLY public.change_readers FORCE ROW LEVEL SECURITY;

CREATE TABLE public.changes (
    scope_id bigint NOT NULL,
    number bigint NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    key_id uuid,
    version smallint DEFAULT 1 NOT NULL,
    operation text NOT NULL,
    ids uuid[] NOT NULL,
    CONSTRAINT changes_operation_check CHECK ((operation = ANY (ARRAY['stored'::text, 'changed'::text, 'revised'::text, 'forgotten'::text, 'state'::text, 'embedded'::text, 'pinned'::text, 'fact'::text, 'entity'::text, 'topic'::text, 'item'::text, 'conversation'::text])))
)
WITH (autovacuum_vacuum_insert_scale_factor='0.02', autovacuum_vacuum_insert_threshold='5000');

ALTER TABLE ONLY public.changes FORCE ROW LEVEL SECURITY;

CREATE TABLE public.cold_objects (
    scope_id bigint NOT NULL,
    name text NOT NULL,
    state text DEFAULT 'writing'::text NOT NULL,
    since timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    bytes bigint,
    sha256 text,
    counts jsonb DEFAULT '{}'::jsonb NOT NULL,
    expires_at timestamp with time zone,
    idle_since timestamp with time zone,
    deleted_at timestamp with time zone,
    recalled_at timestamp with time zone,
    CONSTRAINT cold_objects_state_check CHECK ((state = ANY (ARRAY['writing'::text, 'held'::text, 'unneeded'::text])))
);

ALTER TABLE ONLY public.cold_objects FORCE ROW LEVEL SECURITY;

CREATE TABLE public.context_vectors (
    scope_id bigint NOT NULL,
    id uuid NOT NULL,
    space_id integer NOT NULL
);

ALTER TABLE ONLY public.context_vectors FORCE ROW LEVEL SECURITY;

CREATE TABLE public.conversations (
    scope_id bigint NOT NULL,
    id text NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    state text DEFAULT 'active'::text NOT NULL,
    synced boolean DEFAULT true NOT NULL,
    synced_number bigint DEFAULT 0 NOT NULL,
    last_number bigint DEFAULT 0 NOT NULL,
    summary_id uuid,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    idle_since timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    segmented_number bigint DEFAULT 0 NOT NULL,
    updated_hour timestamp without time zone GENERATED ALWAYS AS (date_trunc('hour'::text, (updated_at AT TIME ZONE 'UTC'::text))) STORED NOT NULL,
    idle_hour timestamp without time zone GENERATED ALWAYS AS (date_trunc('hour'::text, (idle_since AT TIME ZONE 'UTC'::text))) STORED NOT NULL,
    running boolean GENERATED ALWAYS AS ((segmented_number < last_number)) STORED NOT NULL,
    CONSTRAINT conversations_state_check CHECK ((state = ANY (ARRAY['active'::text, 'archived'::text, 'deleted'::text, 'purging'::text])))
)
WITH (fillfactor='70');
ALTER TABLE ONLY public.conversations ALTER COLUMN name SET STATISTICS 0;
ALTER TABLE ONLY public.conversations ALTER COLUMN metadata SET STATISTICS 0;

ALTER TABLE ONLY public.conversations FORCE ROW LEVEL SECURITY;

CREATE TABLE public.embedding_spaces (
    id integer NOT NULL,
    model text NOT NULL,
    dimensions integer NOT NULL,
    "precision" text NOT NULL,
    storage text NOT NULL,
    state text DEFAULT 'filling'::text NOT NULL,
    filled_scope bigint DEFAULT 0 NOT NULL,
    filled_id uuid DEFAULT '00000000-0000-0000-0000-000000000000'::uuid NOT NULL,
    filled_count bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT embedding_spaces_dimensions_check CHECK (((dimensions >= 1) AND (dimensions <= 4096))),
    CONSTRAINT embedding_spaces_id_check CHECK ((id >= 0)),
    CONSTRAINT embedding_spaces_precision_check CHECK (("precision" = ANY (ARRAY['half'::text, 'single'::text]))),
    CONSTRAINT embedding_spaces_state_check CHECK ((state = ANY (ARRAY['filling'::text, 'active'::text, 'retired'::text]))),
    CONSTRAINT embedding_spaces_storage_check CHECK ((storage = ANY (ARRAY['covering'::text, 'plain'::text, 'external'::text])))
);

CREATE TABLE public.entities (
    scope_id bigint NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    normalised text NOT NULL,
    type text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    initials text GENERATED ALWAYS AS ("left"(normalised, 2)) STORED NOT NULL,
    CONSTRAINT entities_normalised_check CHECK (((length(normalised) >= 1) AND (length(normalised) <= 500))),
    CONSTRAINT entities_type_check CHECK ((type = ANY (ARRAY['person'::text, 'place'::text, 'organization'::text, 'product'::text, 'skill'::text, 'activity'::text, 'event'::text, 'emotion'::text, 'thing'::text, 'other'::text])))
);
ALTER TABLE ONLY public.entities ALTER COLUMN name SET STATISTICS 0;
ALTER TABLE ONLY public.entities ALTER COLUMN normalised SET STATISTICS 0;

ALTER TABLE ONLY public.entities FORCE ROW LEVEL SECURITY;

CREATE TABLE public.entity_merges (
    scope_id bigint NOT NULL,
    absorbed_id uuid NOT NULL,
    merged_at timestamp with time zone NOT NULL,
    kept_id uuid NOT NULL,
    split_at timestamp with time zone,
    CONSTRAINT entity_merges_check CHECK ((kept_id <> absorbed_id)),
    CONSTRAINT entity_merges_check1 CHECK ((split_at >= merged_at))
);

ALTER TABLE ONLY public.entity_merges FORCE ROW LEVEL SECURITY;

CREATE TABLE public.entity_vectors (
    scope_id bigint NOT NULL,
    space_id integer NOT NULL,
    id uuid NOT NULL,
    embedding public.halfvec NOT NULL
);
ALTER TABLE ONLY public.entity_vectors ALTER COLUMN embedding SET STATISTICS 0;
ALTER TABLE ONLY public.entity_vectors ALTER COLUMN embedding SET STORAGE MAIN;

ALTER TABLE ONLY public.entity_vectors FORCE ROW LEVEL SECURITY;

CREATE TABLE public.erasure_receipts (
    tenant_id integer NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    agent text DEFAULT ''::text NOT NULL,
    "user" text NOT NULL,
    asked_by text NOT NULL,
    scopes integer DEFAULT 0 NOT NULL,
    removed jsonb DEFAULT '{}'::jsonb NOT NULL,
    begun_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    erased_at timestamp with time zone,
    finished_at timestamp with time zone,
    unreported integer DEFAULT 0 NOT NULL,
    mirrors jsonb DEFAULT '{}'::jsonb NOT NULL
);

ALTER TABLE ONLY public.erasure_receipts FORCE ROW LEVEL SECURITY;

CREATE TABLE public.evidence (
    scope_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    source_id uuid NOT NULL
);

ALTER TABLE ONLY public.evidence FORCE ROW LEVEL SECURITY;

CREATE TABLE public.extractions (
    scope_id bigint NOT NULL,
    segment_id uuid NOT NULL,
    run_id uuid DEFAULT '00000000-0000-0000-0000-000000000000'::uuid NOT NULL,
    model text NOT NULL,
    prompt_version text NOT NULL,
    content jsonb NOT NULL,
    made_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    applied_at timestamp with time zone,
    summary_id uuid
);
ALTER TABLE ONLY public.extractions ALTER COLUMN content SET STATISTICS 0;

ALTER TABLE ONLY public.extractions FORCE ROW LEVEL SECURITY;

CREATE TABLE public.feedback (
    scope_id bigint NOT NULL,
    recall_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    useful boolean NOT NULL,
    rank integer,
    similarity real,
    importance real,
    candidates integer,
    unweighed jsonb DEFAULT '{}'::jsonb NOT NULL,
    script text DEFAULT 'words'::text NOT NULL,
    marked_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT feedback_candidates_check CHECK ((candidates > 0)),
    CONSTRAINT feedback_check CHECK (((rank IS NOT NULL) OR (unweighed <> '{}'::jsonb))),
    CONSTRAINT feedback_check1 CHECK (((num_nulls(rank, similarity, importance) = ANY (ARRAY[0, 3])) AND ((rank IS NULL) OR (candidates IS NOT NULL)))),
    CONSTRAINT feedback_importance_check CHECK (((importance >= (0)::double precision) AND (importance <= (1)::double precision))),
    CONSTRAINT feedback_rank_check CHECK ((rank >= 0)),
    CONSTRAINT feedback_script_check CHECK ((script = ANY (ARRAY['words'::text, 'cjk'::text]))),
    CONSTRAINT feedback_similarity_check CHECK (((similarity >= (0)::double precision) AND (similarity <= (1)::double precision)))
);

ALTER TABLE ONLY public.feedback FORCE ROW LEVEL SECURITY;

CREATE TABLE public.forgotten_messages (
    scope_id bigint NOT NULL,
    conversation_id text NOT NULL,
    external_hash bytea NOT NULL,
    id uuid NOT NULL
);

ALTER TABLE ONLY public.forgotten_messages FORCE ROW LEVEL SECURITY;

CREATE TABLE public.former_incarnations (
    tenant_id integer NOT NULL,
    first_bucket smallint NOT NULL,
    last_bucket smallint NOT NULL,
    id uuid NOT NULL
);

CREATE TABLE public.idempotency_keys (
    scope_id bigint NOT NULL,
    key text NOT NULL,
    fingerprint bytea NOT NULL,
    memory_ids uuid[] DEFAULT '{}'::uuid[] NOT NULL,
    embedded boolean[] DEFAULT '{}'::boolean[] NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    replayed_at timestamp with time zone,
    outcome jsonb
);
ALTER TABLE ONLY public.idempotency_keys ALTER COLUMN key SET STATISTICS 0;
ALTER TABLE ONLY public.idempotency_keys ALTER COLUMN fingerprint SET STATISTICS 0;
ALTER TABLE ONLY public.idempotency_keys ALTER COLUMN outcome SET STATISTICS 0;

ALTER TABLE ONLY public.idempotency_keys FORCE ROW LEVEL SECURITY;

CREATE TABLE public.items (
    scope_id bigint NOT NULL,
    path text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    value jsonb NOT NULL,
    text text NOT NULL,
    embedding public.vector,
    memory_id uuid,
    revision bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT items_revision_check CHECK ((revision > 0))
);
ALTER TABLE ONLY public.items ALTER COLUMN path SET STATISTICS 0;
ALTER TABLE ONLY public.items ALTER COLUMN key SET STATISTICS 0;
ALTER TABLE ONLY public.items ALTER COLUMN value SET STATISTICS 0;
ALTER TABLE ONLY public.items ALTER COLUMN text SET STATISTICS 0;
ALTER TABLE ONLY public.items ALTER COLUMN embedding SET STATISTICS 0;

ALTER TABLE ONLY public.items FORCE ROW LEVEL SECURITY;

CREATE TABLE public.job_effects (
    scope_id bigint NOT NULL,
    key text NOT NULL,
    job_id bigint NOT NULL,
    done_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT job_effects_key_check CHECK (((length(key) >= 1) AND (length(key) <= 255)))
);

ALTER TABLE ONLY public.job_effects FORCE ROW LEVEL SECURITY;

CREATE TABLE public.job_failures (
    job_id bigint NOT NULL,
    reason text NOT NULL,
    failed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.job_progress (
    job_id bigint NOT NULL,
    done bigint NOT NULL,
    total bigint,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.keyword_strengths (
    scope_id bigint NOT NULL,
    kind text NOT NULL,
    keyword text NOT NULL,
    strength integer NOT NULL
);

ALTER TABLE ONLY public.keyword_strengths FORCE ROW LEVEL SECURITY;

CREATE TABLE public.known_shards (
    number smallint NOT NULL,
    name text NOT NULL,
    service_address text NOT NULL,
    owner_address text NOT NULL,
    direct_address text DEFAULT ''::text NOT NULL,
    CONSTRAINT known_shards_number_check CHECK ((number > 0))
);

CREATE TABLE public.memory_keywords (
    scope_id bigint NOT NULL,
    keyword text NOT NULL,
    kind text NOT NULL,
    id uuid NOT NULL,
    counted boolean NOT NULL
);

ALTER TABLE ONLY public.memory_keywords FORCE ROW LEVEL SECURITY;

CREATE VIEW public.kw_strength WITH (security_barrier='true') AS
 SELECT scopes.agent AS persona_name,
    filed.keyword,
    filed.kind AS memory_type,
    (sum(filed.strength))::integer AS strength
   FROM (public.scopes
     CROSS JOIN LATERAL ( SELECT keyword_strengths.keyword,
            keyword_strengths.kind,
            keyword_strengths.strength
           FROM public.keyword_strengths
          WHERE (keyword_strengths.scope_id = scopes.id)
        UNION ALL
         SELECT memory_keywords.keyword,
            memory_keywords.kind,
            '-1'::integer AS strength
           FROM ((public.memories
             CROSS JOIN LATERAL unnest(memories.keywords) word(keyword))
             JOIN public.memory_keywords ON (((memory_keywords.scope_id = scopes.id) AND (memory_keywords.keyword = word.keyword) AND (memory_keywords.kind = memories.kind) AND (memory_keywords.id = memories.id))))
          WHERE ((memories.scope_id = scopes.id) AND (memories.withheld IS NULL) AND (memories.expires_at <= now()) AND memory_keywords.counted)
 OFFSET 0) filed)
  WHERE (scopes.tenant_id = ( SELECT public.reading_tenant() AS reading_tenant))
  GROUP BY scopes.agent, filed.keyword, filed.kind
 HAVING (sum(filed.strength) > 0);

CREATE TABLE public.ledger (
    scope_id bigint NOT NULL,
    tenant_id bigint GENERATED ALWAYS AS ((scope_id >> 40)) STORED NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    step text NOT NULL,
    model text DEFAULT ''::text NOT NULL,
    prompt_version text DEFAULT ''::text NOT NULL,
    prompt_tokens bigint DEFAULT 0 NOT NULL,
    completion_tokens bigint DEFAULT 0 NOT NULL,
    price double precision,
    milliseconds double precision NOT NULL,
    outcome text NOT NULL,
    calls bigint DEFAULT 1 NOT NULL,
    source_id uuid
);

ALTER TABLE ONLY public.ledger FORCE ROW LEVEL SECURITY;

CREATE TABLE public.memory_features (
    id uuid NOT NULL,
    scope_id bigint NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    number bigint,
    importance real NOT NULL,
    length integer NOT NULL,
    tells smallint NOT NULL,
    pinned boolean NOT NULL,
    kind text NOT NULL,
    state text DEFAULT 'current'::text NOT NULL,
    speaker text NOT NULL,
    origin text NOT NULL,
    conversation_id text,
    role text,
    CONSTRAINT memory_features_state_check CHECK ((state = ANY (ARRAY['current'::text, 'in_archived'::text, 'faded'::text, 'past'::text, 'withheld'::text, 'deleted'::text])))
)
WITH (autovacuum_vacuum_insert_scale_factor='0.02', autovacuum_vacuum_insert_threshold='5000');
ALTER TABLE ONLY public.memory_features ALTER COLUMN speaker SET STATISTICS 0;

ALTER TABLE ONLY public.memory_features FORCE ROW LEVEL SECURITY;

CREATE VIEW public.memory_nodes WITH (security_barrier='true') AS
 SELECT node.id,
    scopes.agent AS persona_name,
    node.kind AS type,
    node.occurred_at AS created_at,
    node.last_accessed,
    node.content AS description,
    node.importance AS poignancy,
    node.embedding,
    node.subject,
    node.predicate,
    node.object,
    node.keywords,
    node.filling,
    node.node_count,
    node.type_count,
    node.depth,
    node.idle AS is_idle,
    scopes."user" AS user_name
   FROM (public.scopes
     CROSS JOIN LATERAL ( SELECT memories.id,
            memories.kind,
            memories.occurred_at,
            memories.content,
            (memories.importance)::double precision AS importance,
            memories.subject,
            memories.predicate,
            memories.object,
            memories.keywords,
            (memories.depth)::integer AS depth,
            memories.idle,
            GREATEST(memories.occurred_at, accesses.last_accessed_at, logged.accessed_at) AS last_accessed,
            NULL::public.vector AS embedding,
            to_jsonb(ARRAY( SELECT evidence.source_id
                   FROM public.evidence
                  WHERE ((evidence.scope_id = scopes.id) AND (evidence.memory_id = memories.id))
                  ORDER BY evidence.source_id)) AS filling,
            (row_number() OVER (ORDER BY memories.id))::integer AS node_count,
            (row_number() OVER (PARTITION BY memories.kind ORDER BY memories.id))::integer AS type_count
           FROM (((public.memories
             LEFT JOIN public.accesses ON (((accesses.scope_id = scopes.id) AND (accesses.id = memories.id))))
             LEFT JOIN ( SELECT touched.id,
                    max(access_log.accessed_at) AS accessed_at
                   FROM public.access_log,
                    LATERAL unnest(access_log.ids) touched(id)
                  WHERE (access_log.scope_id = scopes.id)
                  GROUP BY touched.id) logged ON ((logged.id = memories.id)))
             LEFT JOIN public.beliefs ON (((beliefs.scope_id = scopes.id) AND (beliefs.id = memories.id))))
          WHERE ((memories.scope_id = scopes.id) AND (memories.withheld IS NULL) AND ((memories.expires_at IS NULL) OR (memories.expires_at > now())) AND
                CASE
                    WHEN ((beliefs.superseded_at IS NULL) AND ((beliefs.invalid_at IS NULL) OR (beliefs.invalid_at > now()))) THEN true
                    ELSE false
                END AND (NOT (memories.id IN ( WITH RECURSIVE gone(id) AS (
                         SELECT messages.id
                           FROM (public.conversations
                             JOIN public.messages ON (((messages.scope_id = scopes.id) AND (messages.conversation_id = conversations.id))))
                          WHERE ((conversations.scope_id = scopes.id) AND (NOT conversations.synced) AND (conversations.state = ANY (ARRAY['deleted'::text, 'purging'::text])))
                        UNION
                         SELECT evidence.memory_id
                           FROM (gone gone_1
                             JOIN public.evidence ON (((evidence.scope_id = scopes.id) AND (evidence.source_id = gone_1.id))))
                        )
                 SELECT gone.id
                   FROM gone))))
         OFFSET 0) node)
  WHERE (scopes.tenant_id = ( SELECT public.reading_tenant() AS reading_tenant));

CREATE TABLE public.memory_terms (
    scope_id bigint NOT NULL,
    id uuid NOT NULL,
    kind text NOT NULL,
    trust smallint NOT NULL,
    terms bigint[] NOT NULL,
    weights public.sparsevec(1000000000) NOT NULL,
    draw integer NOT NULL
)
WITH (autovacuum_vacuum_insert_scale_factor='0.02', autovacuum_vacuum_insert_threshold='5000');
ALTER TABLE ONLY public.memory_terms ALTER COLUMN weights SET STATISTICS 0;

ALTER TABLE ONLY public.memory_terms FORCE ROW LEVEL SECURITY;

CREATE TABLE public.mentions (
    scope_id bigint NOT NULL,
    source_id uuid NOT NULL,
    entity_id uuid NOT NULL,
    normalised text NOT NULL,
    name text NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    mentioned_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT mentions_normalised_check CHECK (((length(normalised) >= 1) AND (length(normalised) <= 500)))
);
ALTER TABLE ONLY public.mentions ALTER COLUMN normalised SET STATISTICS 0;
ALTER TABLE ONLY public.mentions ALTER COLUMN name SET STATISTICS 0;
ALTER TABLE ONLY public.mentions ALTER COLUMN description SET STATISTICS 0;

ALTER TABLE ONLY public.mentions FORCE ROW LEVEL SECURITY;

CREATE TABLE public.mirror_positions (
    scope_id bigint NOT NULL,
    mirror text NOT NULL,
    generation integer NOT NULL,
    "position" bigint NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
)
WITH (fillfactor='70');

ALTER TABLE ONLY public.mirror_positions FORCE ROW LEVEL SECURITY;

CREATE TABLE public.mirrors (
    name text NOT NULL,
    generation integer NOT NULL,
    state text DEFAULT 'building'::text NOT NULL,
    incarnation uuid NOT NULL,
    space_id integer,
    beats bigint DEFAULT 0 NOT NULL,
    shard smallint DEFAULT 0 NOT NULL,
    made_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT mirrors_generation_check CHECK ((generation > 0)),
    CONSTRAINT mirrors_name_check CHECK ((name ~ '^[a-z0-9_]{1,40}$'::text)),
    CONSTRAINT mirrors_state_check CHECK ((state = ANY (ARRAY['building'::text, 'ready'::text])))
);

CREATE TABLE public.past_messages (
    scope_id bigint CONSTRAINT messages_scope_id_not_null NOT NULL,
    id uuid CONSTRAINT messages_id_not_null NOT NULL,
    conversation_id text CONSTRAINT messages_conversation_id_not_null NOT NULL,
    number bigint CONSTRAINT messages_number_not_null NOT NULL,
    parent_id uuid,
    turn_id uuid CONSTRAINT messages_turn_id_not_null NOT NULL,
    role text CONSTRAINT messages_role_not_null NOT NULL,
    status text CONSTRAINT messages_status_not_null NOT NULL,
    occurred_at timestamp with time zone CONSTRAINT messages_occurred_at_not_null NOT NULL,
    tokens jsonb CONSTRAINT messages_tokens_not_null NOT NULL,
    images smallint DEFAULT 0 CONSTRAINT messages_images_not_null NOT NULL,
    parts jsonb,
    attachments jsonb,
    external_id text DEFAULT ''::text CONSTRAINT messages_external_id_not_null NOT NULL,
    stated_parent uuid,
    CONSTRAINT messages_role_check CHECK ((role = ANY (ARRAY['user'::text, 'assistant'::text, 'system'::text, 'tool'::text]))),
    CONSTRAINT messages_status_check CHECK ((status = ANY (ARRAY['done'::text, 'pending'::text, 'failed'::text])))
);
ALTER TABLE ONLY public.past_messages ALTER COLUMN parts SET STATISTICS 0;
ALTER TABLE ONLY public.past_messages ALTER COLUMN attachments SET STATISTICS 0;
ALTER TABLE ONLY public.past_messages ALTER COLUMN external_id SET STATISTICS 0;

ALTER TABLE ONLY public.past_messages FORCE ROW LEVEL SECURITY;

CREATE TABLE public.pending_embeddings (
    scope_id bigint NOT NULL,
    id uuid NOT NULL
);

ALTER TABLE ONLY public.pending_embeddings FORCE ROW LEVEL SECURITY;

CREATE TABLE public.readers (
    name text NOT NULL,
    tenant_id integer NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.recalls (
    scope_id bigint NOT NULL,
    id uuid NOT NULL,
    asked_at timestamp with time zone NOT NULL,
    text text NOT NULL,
    cue jsonb NOT NULL,
    vector bytea,
    space_id integer,
    inputs bytea NOT NULL,
    listed uuid[] NOT NULL,
    hits jsonb NOT NULL,
    "limit" integer NOT NULL,
    status text NOT NULL,
    message text NOT NULL,
    methods jsonb NOT NULL,
    tallies jsonb NOT NULL,
    milliseconds double precision NOT NULL
);
ALTER TABLE ONLY public.recalls ALTER COLUMN text SET STATISTICS 0;
ALTER TABLE ONLY public.recalls ALTER COLUMN cue SET STATISTICS 0;
ALTER TABLE ONLY public.recalls ALTER COLUMN vector SET STATISTICS 0;
ALTER TABLE ONLY public.recalls ALTER COLUMN inputs SET STATISTICS 0;
ALTER TABLE ONLY public.recalls ALTER COLUMN inputs SET STORAGE EXTERNAL;
ALTER TABLE ONLY public.recalls ALTER COLUMN listed SET STATISTICS 0;
ALTER TABLE ONLY public.recalls ALTER COLUMN hits SET STATISTICS 0;
ALTER TABLE ONLY public.recalls ALTER COLUMN message SET STATISTICS 0;
ALTER TABLE ONLY public.recalls ALTER COLUMN methods SET STATISTICS 0;
ALTER TABLE ONLY public.recalls ALTER COLUMN tallies SET STATISTICS 0;

ALTER TABLE ONLY public.recalls FORCE ROW LEVEL SECURITY;

CREATE TABLE public.related_topics (
    scope_id bigint NOT NULL,
    topic_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    related_id uuid NOT NULL,
    place integer NOT NULL
);

ALTER TABLE ONLY public.related_topics FORCE ROW LEVEL SECURITY;

CREATE TABLE public.runs (
    scope_id bigint NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    model text NOT NULL,
    since timestamp with time zone,
    state text DEFAULT 'building'::text NOT NULL,
    begun_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    switched_at timestamp with time zone,
    prompt_version text DEFAULT ''::text NOT NULL,
    CONSTRAINT runs_state_check CHECK ((state = ANY (ARRAY['building'::text, 'switched'::text, 'abandoned'::text])))
);

ALTER TABLE ONLY public.runs FORCE ROW LEVEL SECURITY;

CREATE TABLE public.scope_counters (
    tenant_id integer NOT NULL,
    bucket smallint NOT NULL,
    last_number integer NOT NULL,
    CONSTRAINT scope_counters_bucket_check CHECK (((bucket >= 0) AND (bucket <= 4095))),
    CONSTRAINT scope_counters_last_number_check CHECK (((last_number >= 1) AND (last_number <= 268435455)))
)
WITH (fillfactor='70');

ALTER TABLE ONLY public.scope_counters FORCE ROW LEVEL SECURITY;

CREATE TABLE public.segments (
    scope_id bigint NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    conversation_id text NOT NULL,
    first_number bigint NOT NULL,
    last_number bigint NOT NULL,
    ending text NOT NULL,
    similarity real,
    label text DEFAULT ''::text NOT NULL,
    state text DEFAULT 'closed'::text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    closed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    enriched_at timestamp with time zone,
    attempts smallint DEFAULT 0 NOT NULL,
    CONSTRAINT segments_check CHECK ((last_number >= first_number)),
    CONSTRAINT segments_ending_check CHECK ((ending = ANY (ARRAY['topic'::text, 'idle'::text, 'length'::text, 'asked'::text]))),
    CONSTRAINT segments_state_check CHECK ((state = ANY (ARRAY['closed'::text, 'enriched'::text, 'failed'::text])))
);
ALTER TABLE ONLY public.segments ALTER COLUMN label SET STATISTICS 0;

ALTER TABLE ONLY public.segments FORCE ROW LEVEL SECURITY;

CREATE TABLE public.shown_memories (
    scope_id bigint NOT NULL,
    conversation_id text NOT NULL,
    memory_id uuid NOT NULL,
    short_id text NOT NULL,
    score double precision NOT NULL,
    computed_at timestamp with time zone NOT NULL
);

ALTER TABLE ONLY public.shown_memories FORCE ROW LEVEL SECURITY;

CREATE TABLE public.tenant_blocks (
    block integer NOT NULL,
    used integer DEFAULT 0 NOT NULL,
    CONSTRAINT tenant_blocks_block_check CHECK (((block >= 0) AND (block <= 8191))),
    CONSTRAINT tenant_blocks_used_check CHECK (((used >= 0) AND (used <= 1024)))
);

CREATE TABLE public.tenant_keys (
    tenant_id integer NOT NULL,
    version integer NOT NULL,
    wrapped bytea NOT NULL,
    wrapped_by text NOT NULL,
    made_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT tenant_keys_version_check CHECK ((version > 0))
);

ALTER TABLE ONLY public.tenant_keys FORCE ROW LEVEL SECURITY;

CREATE TABLE public.tenants (
    id integer DEFAULT public.next_tenant() NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    tokens_per_day bigint,
    requests_per_second double precision,
    burst integer,
    bytes_per_minute bigint,
    largest_body integer,
    change_streams integer,
    CONSTRAINT tenants_burst_check CHECK ((burst > 0)),
    CONSTRAINT tenants_bytes_per_minute_check CHECK ((bytes_per_minute > 0)),
    CONSTRAINT tenants_change_streams_check CHECK ((change_streams > 0)),
    CONSTRAINT tenants_id_check CHECK (((id >= 1) AND (id <= 8388607))),
    CONSTRAINT tenants_largest_body_check CHECK ((largest_body > 0)),
    CONSTRAINT tenants_requests_per_second_check CHECK ((requests_per_second > (0)::double precision)),
    CONSTRAINT tenants_tokens_per_day_check CHECK ((tokens_per_day >= 0))
);

CREATE TABLE public.topic_links (
    scope_id bigint NOT NULL,
    topic_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    activation double precision NOT NULL,
    diffusion double precision NOT NULL,
    independence double precision NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    kind text NOT NULL,
    trust smallint NOT NULL,
    withheld_for text,
    CONSTRAINT topic_links_activation_check CHECK (((activation >= (0)::double precision) AND (activation <= (1)::double precision))),
    CONSTRAINT topic_links_diffusion_check CHECK (((diffusion >= (0)::double precision) AND (diffusion <= (1)::double precision))),
    CONSTRAINT topic_links_independence_check CHECK (((independence >= (0)::double precision) AND (independence <= (1)::double precision)))
);

ALTER TABLE ONLY public.topic_links FORCE ROW LEVEL SECURITY;

CREATE TABLE public.topics (
    scope_id bigint NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    path public.ltree NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
ALTER TABLE ONLY public.topics ALTER COLUMN path SET STATISTICS 0;
ALTER TABLE ONLY public.topics ALTER COLUMN name SET STATISTICS 0;

ALTER TABLE ONLY public.topics FORCE ROW LEVEL SECURITY;

CREATE TABLE public.unmirrored (
    scope_id bigint NOT NULL,
    number bigint NOT NULL,
    since timestamp with time zone DEFAULT clock_timestamp() NOT NULL
)
WITH (fillfactor='70');

ALTER TABLE ONLY public.unmirrored FORCE ROW LEVEL SECURITY;

CREATE TABLE public.withheld_memories (
    scope_id bigint NOT NULL,
    id uuid NOT NULL,
    terms bigint[] NOT NULL,
    weights public.sparsevec(1000000000) NOT NULL,
    draw integer NOT NULL,
    counted boolean NOT NULL,
    term_count bigint NOT NULL,
    last_accessed_at timestamp with time zone,
    access_count integer,
    faded_at timestamp with time zone,
    fading_score double precision,
    fading_grounds text,
    fading_reason text
);
ALTER TABLE ONLY public.withheld_memories ALTER COLUMN terms SET STATISTICS 0;
ALTER TABLE ONLY public.withheld_memories ALTER COLUMN weights SET STATISTICS 0;

ALTER TABLE ONLY public.withheld_memories FORCE ROW LEVEL SECURITY;

CREATE TABLE public.withheld_vectors (
    scope_id bigint NOT NULL,
    id uuid NOT NULL,
    space_id integer NOT NULL,
    embedding public.vector NOT NULL
);
ALTER TABLE ONLY public.withheld_vectors ALTER COLUMN embedding SET STATISTICS 0;

ALTER TABLE ONLY public.withheld_vectors FORCE ROW LEVEL SECURITY;

ALTER TABLE ONLY public.access_log
    ADD CONSTRAINT access_log_pkey PRIMARY KEY (scope_id, id);

ALTER TABLE ONLY public.accesses
    ADD CONSTRAINT accesses_pkey PRIMARY KEY (scope_id, id);

ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_pkey PRIMARY KEY (tenant_id, agent);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (tenant_id, id);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_secret_hash_key UNIQUE (secret_hash);

ALTER TABLE ONLY public.awaited_mirrors
    ADD CONSTRAINT awaited_mirrors_pkey PRIMARY KEY (scope_id, receipt_id, mirror);

ALTER TABLE ONLY public.beliefs
    ADD CONSTRAINT beliefs_one_at_a_time EXCLUDE USING gist (scope_id WITH =, lineage WITH =, tstzrange(created_at, superseded_at) WITH &&);

ALTER TABLE ONLY public.beliefs
    ADD CONSTRAINT beliefs_pkey PRIMARY KEY (scope_id, id);

ALTER TABLE ONLY public.beliefs
    ADD CONSTRAINT beliefs_said_once EXCLUDE USING gist (scope_id WITH =, subject_id WITH =, predicate WITH =, object_id WITH =, tstzrange(valid_at, invalid_at) WITH &&) WHERE (((superseded_at IS NULL) AND (subject_id IS NOT NULL)));

ALTER TABLE ONLY public.beliefs
    ADD CONSTRAINT beliefs_scope_id_lineage_version_key UNIQUE (scope_id, lineage, version);

ALTER TABLE ONLY public.change_readers
    ADD CONSTRAINT change_readers_pkey PRIMARY KEY (scope_id, name);

ALTER TABLE ONLY public.changes
    ADD CONSTRAINT changes_pkey PRIMARY KEY (scope_id, number);

ALTER TABLE ONLY public.cold_objects
    ADD CONSTRAINT cold_objects_pkey PRIMARY KEY (scope_id, name);

ALTER TABLE ONLY public.context_vectors
    ADD CONSTRAINT context_vectors_pkey PRIMARY KEY (scope_id, id, space_id);

ALTER TABLE ONLY public.conversations
    ADD CONSTRAINT conversations_pkey PRIMARY KEY (scope_id, id);

ALTER TABLE ONLY public.embedding_spaces
    ADD CONSTRAINT embedding_spaces_model_dimensions_key UNIQUE (model, dimensions);

ALTER TABLE ONLY public.embedding_spaces
    ADD CONSTRAINT embedding_spaces_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.entities
    ADD CONSTRAINT entities_pkey PRIMARY KEY (scope_id, id);

ALTER TABLE ONLY public.entities
    ADD CONSTRAINT entities_scope_id_normalised_type_key UNIQUE (scope_id, normalised, type);

ALTER TABLE ONLY public.entity_merges
    ADD CONSTRAINT entity_merges_pkey PRIMARY KEY (scope_id, absorbed_id, merged_at);

ALTER TABLE ONLY public.entity_vectors
    ADD CONSTRAINT entity_vectors_pkey PRIMARY KEY (scope_id, space_id, id);

ALTER TABLE ONLY public.erasure_receipts
    ADD CONSTRAINT erasure_receipts_pkey PRIMARY KEY (tenant_id, id);

ALTER TABLE ONLY public.evidence
    ADD CONSTRAINT evidence_pkey PRIMARY KEY (scope_id, memory_id, source_id);

ALTER TABLE ONLY public.extractions
    ADD CONSTRAINT extractions_pkey PRIMARY KEY (scope_id, segment_id, run_id);

ALTER TABLE ONLY public.feedback
    ADD CONSTRAINT feedback_pkey PRIMARY KEY (scope_id, recall_id, memory_id);

ALTER TABLE ONLY public.forgotten_messages
    ADD CONSTRAINT forgotten_messages_pkey PRIMARY KEY (scope_id, conversation_id, external_hash);

ALTER TABLE ONLY public.former_incarnations
    ADD CONSTRAINT former_incarnations_pkey PRIMARY KEY (tenant_id, first_bucket, last_bucket, id);

ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (scope_id, key);

ALTER TABLE ONLY public.incarnations
    ADD CONSTRAINT incarnations_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.items
    ADD CONSTRAINT items_pkey PRIMARY KEY (scope_id, path, key);

ALTER TABLE ONLY public.job_effects
    ADD CONSTRAINT job_effects_pkey PRIMARY KEY (scope_id, key);

ALTER TABLE ONLY public.job_failures
    ADD CONSTRAINT job_failures_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY public.job_progress
    ADD CONSTRAINT job_progress_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY public.keyword_strengths
    ADD CONSTRAINT keyword_strengths_pkey PRIMARY KEY (scope_id, kind, keyword);

ALTER TABLE ONLY public.known_shards
    ADD CONSTRAINT known_shards_pkey PRIMARY KEY (number);

ALTER TABLE ONLY public.ledger
    ADD CONSTRAINT ledger_pkey PRIMARY KEY (scope_id, at, id);

ALTER TABLE ONLY public.memories
    ADD CONSTRAINT memories_pkey PRIMARY KEY (scope_id, id);

ALTER TABLE ONLY public.memory_features
    ADD CONSTRAINT memory_features_pkey PRIMARY KEY (scope_id, id) INCLUDE (importance);

ALTER TABLE ONLY public.memory_keywords
    ADD CONSTRAINT memory_keywords_pkey PRIMARY KEY (scope_id, keyword, kind, id);

ALTER TABLE ONLY public.memory_terms
    ADD CONSTRAINT memory_terms_pkey PRIMARY KEY (scope_id, id);

ALTER TABLE ONLY public.mentions
    ADD CONSTRAINT mentions_pkey PRIMARY KEY (scope_id, source_id, entity_id, normalised);

ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_pkey PRIMARY KEY (scope_id, id);

ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_scope_id_conversation_id_number_key UNIQUE (scope_id, conversation_id, number);

ALTER TABLE ONLY public.mirror_positions
    ADD CONSTRAINT mirror_positions_pkey PRIMARY KEY (scope_id, mirror, generation);

ALTER TABLE ONLY public.mirrors
    ADD CONSTRAINT mirrors_pkey PRIMARY KEY (name, generation);

ALTER TABLE ONLY public.past_messages
    ADD CONSTRAINT past_messages_pkey PRIMARY KEY (scope_id, id);

ALTER TABLE ONLY public.pending_embeddings
    ADD CONSTRAINT pending_embeddings_pkey PRIMARY KEY (scope_id, id);

ALTER TABLE ONLY public.placements
    ADD CONSTRAINT placements_pkey PRIMARY KEY (tenant_id, first_bucket);

ALTER TABLE ONLY public.placements
    ADD CONSTRAINT placements_tenant_id_int4range_excl EXCLUDE USING gist (tenant_id WITH =, int4range((first_bucket)::integer, (last_bucket)::integer, '[]'::text) WITH &&);

ALTER TABLE ONLY public.purge_receipts
    ADD CONSTRAINT purge_receipts_pkey PRIMARY KEY (scope_id, id);

ALTER TABLE ONLY public.readers
    ADD CONSTRAINT readers_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.recalls
    ADD CONSTRAINT recalls_pkey PRIMARY KEY (scope_id, id);

ALTER TABLE ONLY public.related_topics
    ADD CONSTRAINT related_topics_pkey PRIMARY KEY (scope_id, topic_id, memory_id, related_id);

ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (scope_id, id);

ALTER TABLE ONLY public.scope_counters
    ADD CONSTRAINT scope_counters_pkey PRIMARY KEY (tenant_id, bucket);

ALTER TABLE ONLY public.scopes
    ADD CONSTRAINT scopes_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.scopes
    ADD CONSTRAINT scopes_tenant_id_agent_user_key UNIQUE (tenant_id, agent, "user");

ALTER TABLE ONLY public.segments
    ADD CONSTRAINT segments_pkey PRIMARY KEY (scope_id, id);

ALTER TABLE ONLY public.segments
    ADD CONSTRAINT segments_scope_id_conversation_id_first_number_key UNIQUE (scope_id, conversation_id, first_number);

ALTER TABLE ONLY public.server_identity
    ADD CONSTRAINT server_identity_pkey PRIMARY KEY (single);

ALTER TABLE ONLY public.shown_memories
    ADD CONSTRAINT shown_memories_pkey PRIMARY KEY (scope_id, conversation_id, memory_id);

ALTER TABLE ONLY public.tenant_blocks
    ADD CONSTRAINT tenant_blocks_pkey PRIMARY KEY (block);

ALTER TABLE ONLY public.tenant_keys
    ADD CONSTRAINT tenant_keys_pkey PRIMARY KEY (tenant_id, version);

ALTER TABLE ONLY public.tenants
    ADD CONSTRAINT tenants_name_key UNIQUE (name);

ALTER TABLE ONLY public.tenants
    ADD CONSTRAINT tenants_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.topic_links
    ADD CONSTRAINT topic_links_pkey PRIMARY KEY (scope_id, topic_id, memory_id);

ALTER TABLE ONLY public.topics
    ADD CONSTRAINT topics_pkey PRIMARY KEY (scope_id, id);

ALTER TABLE ONLY public.topics
    ADD CONSTRAINT topics_scope_id_path_key UNIQUE (scope_id, path);

ALTER TABLE ONLY public.unmirrored
    ADD CONSTRAINT unmirrored_pkey PRIMARY KEY (scope_id);

ALTER TABLE ONLY public.withheld_memories
    ADD CONSTRAINT withheld_memories_pkey PRIMARY KEY (scope_id, id);

ALTER TABLE ONLY public.withheld_vectors
    ADD CONSTRAINT withheld_vectors_pkey PRIMARY KEY (scope_id, id, space_id);

CREATE INDEX accesses_by_time ON public.accesses USING btree (scope_id, kind, last_accessed_at DESC, id DESC);

CREATE INDEX agents_closing ON public.agents USING btree (tenant_id, agent) WHERE (profile ? 'idle_minutes'::text);

CREATE INDEX agents_fading ON public.agents USING btree (tenant_id, agent) WHERE (profile ? 'fading_days'::text);

CREATE INDEX agents_retaining ON public.agents USING btree (tenant_id, agent) WHERE (profile ?| ARRAY['archive_after_days'::text, 'delete_after_days'::text, 'purge_after_days'::text]);

CREATE INDEX beliefs_believed ON public.beliefs USING btree (scope_id, subject_id, object_id) WHERE ((superseded_at IS NULL) AND (subject_id IS NOT NULL));

CREATE INDEX beliefs_by_object ON public.beliefs USING btree (scope_id, object_id, id DESC) INCLUDE (subject_id, valid_at, invalid_at, created_at, superseded_at, withheld_for) WHERE (object_id IS NOT NULL);

CREATE INDEX beliefs_by_subject ON public.beliefs USING btree (scope_id, subject_id, id DESC) INCLUDE (object_id, valid_at, invalid_at, created_at, superseded_at, withheld_for) WHERE (subject_id IS NOT NULL);

CREATE INDEX beliefs_ending ON public.beliefs USING btree (invalid_at) WHERE ((superseded_at IS NULL) AND (invalid_at IS NOT NULL) AND (withheld_for IS NULL));

CREATE INDEX changes_by_time ON public.changes USING brin (at) WITH (autosummarize='on');

CREATE UNIQUE INDEX cold_objects_held ON public.cold_objects USING btree (scope_id) WHERE (state = 'held'::text);

CREATE INDEX cold_objects_left ON public.cold_objects USING btree (since) WHERE (state <> 'held'::text);

CREATE INDEX conversations_becoming_silent ON public.conversations USING btree (idle_hour) WHERE running;

CREATE INDEX conversations_by_idleness ON public.conversations USING btree (state, idle_hour);

CREATE INDEX conversations_by_summary ON public.conversations USING btree (scope_id, summary_id) WHERE (summary_id IS NOT NULL);

CREATE INDEX conversations_by_time ON public.conversations USING btree (scope_id, updated_hour DESC, id);

CREATE INDEX conversations_deleted ON public.conversations USING btree (changed_at) WHERE (state = 'deleted'::text);

CREATE INDEX conversations_running ON public.conversations USING btree (scope_id) WHERE running;

CREATE INDEX conversations_unsynced ON public.conversations USING btree (scope_id) WHERE (NOT synced);

CREATE INDEX entities_by_initials ON public.entities USING btree (scope_id, initials) INCLUDE (id, normalised);

CREATE INDEX entities_by_trigram ON public.entities USING gist (scope_id, normalised public.gist_trgm_ops);

CREATE INDEX entity_merges_of_kept ON public.entity_merges USING btree (scope_id, kept_id);

CREATE UNIQUE INDEX entity_merges_one_at_a_time ON public.entity_merges USING btree (scope_id, absorbed_id) WHERE (split_at IS NULL);

CREATE INDEX erasure_receipts_by_time ON public.erasure_receipts USING btree (tenant_id, begun_at DESC);

CREATE INDEX evidence_of_source ON public.evidence USING btree (scope_id, source_id, memory_id);

CREATE INDEX expiring_keys ON public.api_keys USING btree (expires_at) WHERE (expires_at IS NOT NULL);

CREATE INDEX feedback_of_memory ON public.feedback USING btree (scope_id, memory_id);

CREATE INDEX idempotency_keys_by_time ON public.idempotency_keys USING btree (created_at);

CREATE UNIQUE INDEX items_by_memory ON public.items USING btree (scope_id, memory_id) WHERE (memory_id IS NOT NULL);

CREATE INDEX job_effects_of_job ON public.job_effects USING btree (job_id);

CREATE INDEX ledger_by_time ON public.ledger USING btree (tenant_id, at) INCLUDE (prompt_tokens, completion_tokens);

CREATE INDEX ledger_lines ON public.ledger USING btree (at) WHERE (((at AT TIME ZONE 'UTC'::text))::time without time zone <> '00:00:00'::time without time zone);

CREATE INDEX ledger_sums ON public.ledger USING btree (at) WHERE (((at AT TIME ZONE 'UTC'::text))::time without time zone = '00:00:00'::time without time zone);

CREATE INDEX memories_by_time ON public.memories USING btree (scope_id, kind, occurred_at DESC, id DESC) INCLUDE (idle) WHERE (withheld IS NULL);

CREATE INDEX memories_expired ON public.memories USING btree (expires_at) WHERE ((expires_at IS NOT NULL) AND (withheld IS NULL));

CREATE INDEX memories_expiring ON public.memories USING btree (scope_id, expires_at) WHERE ((expires_at IS NOT NULL) AND (withheld IS NULL));

CREATE INDEX memories_to_rederive ON public.memories USING btree (scope_id, id) WHERE (withheld = 'to_rederive'::text);

CREATE INDEX memories_withheld_in_time ON public.memories USING btree (scope_id, withheld, id) WHERE (withheld = ANY (ARRAY['past'::text, 'faded'::text]));

CREATE INDEX memory_features_by_conversation ON public.memory_features USING btree (scope_id, conversation_id, id) WHERE (conversation_id IS NOT NULL);

CREATE INDEX memory_features_by_time ON public.memory_features USING btree (scope_id, occurred_at DESC, id DESC);

CREATE INDEX memory_features_pinned ON public.memory_features USING btree (scope_id, id) WHERE pinned;

CREATE INDEX memory_terms_by_term ON public.memory_terms USING gin (terms) WITH (fastupdate=off);

CREATE INDEX mentions_by_name ON public.mentions USING btree (scope_id, normalised, entity_id) INCLUDE (source_id);

CREATE INDEX mentions_of_entity ON public.mentions USING btree (scope_id, entity_id, mentioned_at DESC);

CREATE UNIQUE INDEX messages_by_external_id ON public.messages USING btree (scope_id, conversation_id, external_id) WHERE (external_id <> ''::text);

CREATE INDEX messages_by_parent ON public.messages USING btree (scope_id, parent_id) WHERE (parent_id IS NOT NULL);

CREATE INDEX messages_without_branches ON public.messages USING btree (scope_id, conversation_id, number) WHERE (stated_parent = '00000000-0000-0000-0000-000000000000'::uuid);

CREATE UNIQUE INDEX mirrors_one_each ON public.mirrors USING btree (name, state);

CREATE UNIQUE INDEX one_active_space ON public.embedding_spaces USING btree (state) WHERE (state = 'active'::text);

CREATE UNIQUE INDEX one_incarnation ON public.incarnations USING btree ((true));

CREATE INDEX past_messages_by_number ON public.past_messages USING btree (scope_id, conversation_id, number);

CREATE INDEX past_messages_by_parent ON public.past_messages USING btree (scope_id, parent_id) WHERE (parent_id IS NOT NULL);

CREATE INDEX purge_receipts_by_time ON public.purge_receipts USING btree (scope_id, begun_at DESC, id DESC);

CREATE INDEX purge_receipts_of_conversation ON public.purge_receipts USING btree (scope_id, conversation_id, begun_at DESC);

CREATE INDEX purge_receipts_of_tenant ON public.purge_receipts USING btree (tenant_id, begun_at DESC, id DESC);

CREATE INDEX recalls_by_time ON public.recalls USING btree (id);

CREATE INDEX related_topics_by_related ON public.related_topics USING btree (scope_id, related_id);

CREATE INDEX scopes_by_size ON public.scopes USING btree (tenant_id, size_step DESC, id DESC);

CREATE INDEX scopes_by_time ON public.scopes USING btree (tenant_id, written_hour DESC);

CREATE INDEX scopes_hot_by_time ON public.scopes USING btree (written_hour) WHERE (tier = 'hot'::text);

CREATE INDEX scopes_leaving ON public.scopes USING btree (tier_since) WHERE (tier = 'leaving'::text);

CREATE INDEX segments_to_enrich ON public.segments USING btree (scope_id, closed_at, id) WHERE (state = 'closed'::text);

CREATE INDEX shown_memories_by_memory ON public.shown_memories USING btree (scope_id, memory_id);

CREATE INDEX shown_memories_by_time ON public.shown_memories USING btree (computed_at);

CREATE INDEX topic_links_by_time ON public.topic_links USING btree (scope_id, topic_id, occurred_at DESC, memory_id) INCLUDE (kind, trust, activation, diffusion, independence) WHERE (withheld_for IS NULL);

CREATE INDEX topic_links_of_memory ON public.topic_links USING btree (scope_id, memory_id);

CREATE TRIGGER await_entity_vector AFTER INSERT ON public.mentions REFERENCING NEW TABLE AS mentioned FOR EACH STATEMENT EXECUTE FUNCTION public.await_entity_vector();

CREATE CONSTRAINT TRIGGER drop_facts_to_rederive AFTER UPDATE OF withheld ON public.memories DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((new.withheld = 'to_rederive'::text) AND (old.withheld IS DISTINCT FROM 'to_rederive'::text) AND (new.kind = 'fact'::text))) EXECUTE FUNCTION public.drop_facts_to_rederive();

CREATE TRIGGER erase_entity AFTER DELETE ON public.entities REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.erase_side_rows('entity_vectors', 'id', 'pending_embeddings', 'id', 'entity_merges', 'absorbed_id', 'entity_merges', 'kept_id');

CREATE TRIGGER erase_extracted AFTER DELETE ON public.extractions REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.erase_extracted();

CREATE TRIGGER erase_feedback AFTER DELETE ON public.memories REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.erase_side_rows('feedback', 'memory_id');

CREATE TRIGGER erase_follower_vectors AFTER DELETE ON public.memories REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.erase_follower_vectors();

CREATE TRIGGER erase_items AFTER DELETE ON public.memories REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.erase_side_rows('items', 'memory_id');

CREATE TRIGGER erase_keywords AFTER DELETE ON public.memories REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.erase_keywords();

CREATE TRIGGER erase_knowledge AFTER DELETE ON public.memories REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.erase_side_rows('beliefs', 'id', 'mentions', 'source_id');

CREATE TRIGGER erase_mentions AFTER DELETE ON public.segments REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.erase_side_rows('mentions', 'source_id');

CREATE TRIGGER erase_messages AFTER DELETE ON public.memories REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.erase_messages();

CREATE TRIGGER erase_past_messages AFTER DELETE ON public.memories REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.erase_side_rows('past_messages', 'id');

CREATE TRIGGER erase_recalls AFTER DELETE ON public.memories REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.erase_recalls();

CREATE TRIGGER erase_related_topics AFTER DELETE ON public.topic_links REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.erase_related_topics();

CREATE TRIGGER erase_segments AFTER DELETE ON public.conversations REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.erase_side_rows('segments', 'conversation_id');

CREATE TRIGGER erase_segments AFTER DELETE ON public.messages REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION public.erase_segments();

CREATE TRIGGER erase_shown_memories AFTER DELETE ON public.conversations REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.erase_side_rows('shown_memories', 'conversation_id');

CREATE TRIGGER erase_shown_memories AFTER DELETE ON public.memories REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.erase_side_rows('shown_memories', 'memory_id');

CREATE TRIGGER erase_side_rows_of_memories AFTER DELETE ON public.memories REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.erase_side_rows('memory_features', 'id', 'evidence', 'memory_id', 'pending_embeddings', 'id', 'memory_terms', 'id', 'accesses', 'id', 'withheld_memories', 'id', 'withheld_vectors', 'id', 'context_vectors', 'id');

CREATE TRIGGER erase_topic_links AFTER DELETE ON public.memories REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.erase_side_rows('topic_links', 'memory_id');

CREATE TRIGGER erase_vectors AFTER DELETE ON public.memories REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.erase_vectors();

CREATE TRIGGER follow_into_features AFTER UPDATE OF withheld, importance, occurred_at, expires_at ON public.memories FOR EACH ROW WHEN (((new.withheld IS DISTINCT FROM old.withheld) OR (new.importance IS DISTINCT FROM old.importance) OR (new.occurred_at IS DISTINCT FROM old.occurred_at) OR (new.expires_at IS DISTINCT FROM old.expires_at))) EXECUTE FUNCTION public.follow_into_features();

CREATE TRIGGER follow_into_topics AFTER UPDATE OF withheld ON public.memories FOR EACH ROW WHEN ((new.withheld IS DISTINCT FROM old.withheld)) EXECUTE FUNCTION public.follow_into_topics();

CREATE TRIGGER follow_memory BEFORE INSERT ON public.beliefs FOR EACH ROW EXECUTE FUNCTION public.follow_memory();

CREATE TRIGGER follow_withholding AFTER UPDATE OF withheld ON public.memories FOR EACH ROW WHEN (((new.kind = 'fact'::text) AND (new.withheld IS DISTINCT FROM old.withheld))) EXECUTE FUNCTION public.follow_withholding();

CREATE TRIGGER forget_names AFTER DELETE ON public.mentions REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.forget_names();

CREATE TRIGGER forget_related AFTER DELETE ON public.related_topics REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.forget_related();

CREATE TRIGGER forget_vectors AFTER DELETE ON public.mentions REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.drop_entity_vectors();

CREATE TRIGGER heal_lineages AFTER DELETE ON public.beliefs REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.heal_lineages();

CREATE TRIGGER log_changed AFTER UPDATE OF state, name, metadata ON public.conversations FOR EACH ROW WHEN (((new.state <> old.state) OR (new.name <> old.name) OR (new.metadata <> old.metadata))) EXECUTE FUNCTION public.log_conversation();

CREATE TRIGGER log_changed AFTER UPDATE ON public.memories REFERENCING OLD TABLE AS former NEW TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('changed', 'id', 'content', 'speaker', 'importance', 'importance_from', 'subject', 'predicate', 'object', 'idle', 'depth', 'keywords', 'trust', 'occurred_at', 'embedding_text', 'metadata', 'expires_at');

CREATE TRIGGER log_deleted AFTER DELETE ON public.conversations FOR EACH ROW EXECUTE FUNCTION public.log_conversation();

CREATE TRIGGER log_deleted AFTER DELETE ON public.entities REFERENCING OLD TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('entity', 'id');

CREATE TRIGGER log_deleted AFTER DELETE ON public.entity_merges REFERENCING OLD TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('entity', 'absorbed_id');

CREATE TRIGGER log_deleted AFTER DELETE ON public.items REFERENCING OLD TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('item', 'memory_id');

CREATE TRIGGER log_deleted AFTER DELETE ON public.mentions REFERENCING OLD TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('entity', 'entity_id');

CREATE TRIGGER log_deleted AFTER DELETE ON public.related_topics REFERENCING OLD TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('topic', 'topic_id');

CREATE TRIGGER log_deleted AFTER DELETE ON public.topic_links REFERENCING OLD TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('topic', 'topic_id');

CREATE TRIGGER log_deleted AFTER DELETE ON public.topics REFERENCING OLD TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('topic', 'id');

CREATE TRIGGER log_forgotten AFTER DELETE ON public.memories REFERENCING OLD TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('forgotten', 'id');

CREATE TRIGGER log_inserted AFTER INSERT ON public.beliefs REFERENCING NEW TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('fact', 'id');

CREATE TRIGGER log_inserted AFTER INSERT ON public.entities REFERENCING NEW TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('entity', 'id');

CREATE TRIGGER log_inserted AFTER INSERT ON public.entity_merges REFERENCING NEW TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('entity', 'absorbed_id');

CREATE TRIGGER log_inserted AFTER INSERT ON public.items REFERENCING NEW TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('item', 'memory_id');

CREATE TRIGGER log_inserted AFTER INSERT ON public.mentions REFERENCING NEW TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('entity', 'entity_id');

CREATE TRIGGER log_inserted AFTER INSERT ON public.related_topics REFERENCING NEW TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('topic', 'topic_id');

CREATE TRIGGER log_inserted AFTER INSERT ON public.topic_links REFERENCING NEW TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('topic', 'topic_id');

CREATE TRIGGER log_inserted AFTER INSERT ON public.topics REFERENCING NEW TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('topic', 'id');

CREATE TRIGGER log_state AFTER UPDATE ON public.memories REFERENCING OLD TABLE AS former NEW TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('state', 'id', 'withheld');

CREATE TRIGGER log_stored AFTER INSERT ON public.memories REFERENCING NEW TABLE AS stored FOR EACH STATEMENT EXECUTE FUNCTION public.log_stored();

CREATE TRIGGER log_updated AFTER UPDATE ON public.beliefs REFERENCING OLD TABLE AS former NEW TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('fact', 'id', 'valid_at', 'invalid_at', 'superseded_at', 'subject_id', 'object_id');

CREATE TRIGGER log_updated AFTER UPDATE ON public.entities REFERENCING NEW TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('entity', 'id');

CREATE TRIGGER log_updated AFTER UPDATE ON public.entity_merges REFERENCING NEW TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('entity', 'absorbed_id');

CREATE TRIGGER log_updated AFTER UPDATE ON public.items REFERENCING NEW TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('item', 'memory_id');

CREATE TRIGGER log_updated AFTER UPDATE ON public.mentions REFERENCING NEW TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('entity', 'entity_id');

CREATE TRIGGER log_updated AFTER UPDATE ON public.messages REFERENCING NEW TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('changed', 'id');

CREATE TRIGGER log_updated AFTER UPDATE ON public.topic_links REFERENCING OLD TABLE AS former NEW TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('topic', 'topic_id', 'memory_id', 'activation', 'diffusion', 'independence', 'occurred_at');

CREATE TRIGGER log_updated AFTER UPDATE ON public.topics REFERENCING OLD TABLE AS former NEW TABLE AS latter FOR EACH STATEMENT EXECUTE FUNCTION public.log_rows('topic', 'id', 'path', 'name');

CREATE TRIGGER note_filed AFTER INSERT ON public.evidence REFERENCING NEW TABLE AS filed FOR EACH STATEMENT EXECUTE FUNCTION public.note_filed();

CREATE TRIGGER note_filed AFTER INSERT ON public.memory_keywords REFERENCING NEW TABLE AS filed FOR EACH STATEMENT EXECUTE FUNCTION public.note_filed();

CREATE TRIGGER note_filed AFTER INSERT ON public.mentions REFERENCING NEW TABLE AS filed FOR EACH STATEMENT EXECUTE FUNCTION public.note_filed();

CREATE TRIGGER note_filed AFTER INSERT ON public.topics REFERENCING NEW TABLE AS filed FOR EACH STATEMENT EXECUTE FUNCTION public.note_filed();

CREATE TRIGGER renew_entity_vector AFTER UPDATE ON public.mentions REFERENCING NEW TABLE AS mentioned FOR EACH STATEMENT EXECUTE FUNCTION public.await_entity_vector();

ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.beliefs
    ADD CONSTRAINT beliefs_scope_id_object_id_fkey FOREIGN KEY (scope_id, object_id) REFERENCES public.entities(scope_id, id);

ALTER TABLE ONLY public.beliefs
    ADD CONSTRAINT beliefs_scope_id_subject_id_fkey FOREIGN KEY (scope_id, subject_id) REFERENCES public.entities(scope_id, id);

ALTER TABLE ONLY public.entity_vectors
    ADD CONSTRAINT entity_vectors_space_id_fkey FOREIGN KEY (space_id) REFERENCES public.embedding_spaces(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.erasure_receipts
    ADD CONSTRAINT erasure_receipts_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.extractions
    ADD CONSTRAINT extractions_scope_id_segment_id_fkey FOREIGN KEY (scope_id, segment_id) REFERENCES public.segments(scope_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.former_incarnations
    ADD CONSTRAINT former_incarnations_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.mentions
    ADD CONSTRAINT mentions_scope_id_entity_id_fkey FOREIGN KEY (scope_id, entity_id) REFERENCES public.entities(scope_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.placements
    ADD CONSTRAINT placements_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.readers
    ADD CONSTRAINT readers_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.related_topics
    ADD CONSTRAINT related_topics_scope_id_related_id_fkey FOREIGN KEY (scope_id, related_id) REFERENCES public.topics(scope_id, id);

ALTER TABLE ONLY public.scope_counters
    ADD CONSTRAINT scope_counters_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.scopes
    ADD CONSTRAINT scopes_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.tenant_keys
    ADD CONSTRAINT tenant_keys_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.topic_links
    ADD CONSTRAINT topic_links_scope_id_topic_id_fkey FOREIGN KEY (scope_id, topic_id) REFERENCES public.topics(scope_id, id);

ALTER TABLE public.access_log ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.accesses ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.agents ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.api_keys ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.awaited_mirrors ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.beliefs ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.change_readers ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.changes ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.cold_objects ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.context_vectors ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.conversations ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.entities ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.entity_merges ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.entity_vectors ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.erasure_receipts ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.evidence ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.extractions ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.feedback ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.forgotten_messages ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.former_incarnations ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.idempotency_keys ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.items ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.job_effects ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.keyword_strengths ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.ledger ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.memories ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.memory_features ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.memory_keywords ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.memory_terms ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.mentions ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.messages ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.mirror_positions ENABLE ROW LEVEL SECURITY;

CREATE POLICY of_matcher ON public.entities FOR SELECT TO recollect_matcher USING (true);

CREATE POLICY of_matcher ON public.memory_terms FOR SELECT TO recollect_matcher USING (true);

CREATE POLICY of_matcher ON public.topics FOR SELECT TO recollect_matcher USING (true);

CREATE POLICY of_matcher ON public.withheld_memories FOR SELECT TO recollect_matcher USING (true);

CREATE POLICY of_presenter ON public.api_keys FOR SELECT USING ((secret_hash = ( SELECT public.presented_key() AS presented_key)));

CREATE POLICY of_reader ON public.access_log FOR SELECT TO recollect_compat USING (
CASE
    WHEN ((scope_id >= ( SELECT (public.reading_tenant() << 40))) AND (scope_id <= ( SELECT ((public.reading_tenant() << 40) | '1099511627775'::bigint)))) THEN true
    ELSE false
END);

CREATE POLICY of_reader ON public.accesses FOR SELECT TO recollect_compat USING (
CASE
    WHEN ((scope_id >= ( SELECT (public.reading_tenant() << 40))) AND (scope_id <= ( SELECT ((public.reading_tenant() << 40) | '1099511627775'::bigint)))) THEN true
    ELSE false
END);

CREATE POLICY of_reader ON public.beliefs FOR SELECT TO recollect_compat USING (
CASE
    WHEN ((scope_id >= ( SELECT (public.reading_tenant() << 40))) AND (scope_id <= ( SELECT ((public.reading_tenant() << 40) | '1099511627775'::bigint)))) THEN true
    ELSE false
END);

CREATE POLICY of_reader ON public.conversations FOR SELECT TO recollect_compat USING (
CASE
    WHEN ((scope_id >= ( SELECT (public.reading_tenant() << 40))) AND (scope_id <= ( SELECT ((public.reading_tenant() << 40) | '1099511627775'::bigint)))) THEN true
    ELSE false
END);

CREATE POLICY of_reader ON public.evidence FOR SELECT TO recollect_compat USING (
CASE
    WHEN ((scope_id >= ( SELECT (public.reading_tenant() << 40))) AND (scope_id <= ( SELECT ((public.reading_tenant() << 40) | '1099511627775'::bigint)))) THEN true
    ELSE false
END);

CREATE POLICY of_reader ON public.keyword_strengths FOR SELECT TO recollect_compat USING (
CASE
    WHEN ((scope_id >= ( SELECT (public.reading_tenant() << 40))) AND (scope_id <= ( SELECT ((public.reading_tenant() << 40) | '1099511627775'::bigint)))) THEN true
    ELSE false
END);

CREATE POLICY of_reader ON public.memories FOR SELECT TO recollect_compat USING (
CASE
    WHEN ((scope_id >= ( SELECT (public.reading_tenant() << 40))) AND (scope_id <= ( SELECT ((public.reading_tenant() << 40) | '1099511627775'::bigint)))) THEN true
    ELSE false
END);

CREATE POLICY of_reader ON public.memory_keywords FOR SELECT TO recollect_compat USING (
CASE
    WHEN ((scope_id >= ( SELECT (public.reading_tenant() << 40))) AND (scope_id <= ( SELECT ((public.reading_tenant() << 40) | '1099511627775'::bigint)))) THEN true
    ELSE false
END);

CREATE POLICY of_reader ON public.messages FOR SELECT TO recollect_compat USING (
CASE
    WHEN ((scope_id >= ( SELECT (public.reading_tenant() << 40))) AND (scope_id <= ( SELECT ((public.reading_tenant() << 40) | '1099511627775'::bigint)))) THEN true
    ELSE false
END);

CREATE POLICY of_reader ON public.scopes FOR SELECT TO recollect_compat USING ((tenant_id = ( SELECT public.reading_tenant() AS reading_tenant)));

CREATE POLICY of_tenant ON public.access_log TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.accesses TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.agents USING ((tenant_id = ( SELECT public.current_tenant() AS current_tenant))) WITH CHECK ((tenant_id = ( SELECT public.current_tenant() AS current_tenant)));

CREATE POLICY of_tenant ON public.api_keys USING ((tenant_id = ( SELECT public.current_tenant() AS current_tenant))) WITH CHECK ((tenant_id = ( SELECT public.current_tenant() AS current_tenant)));

CREATE POLICY of_tenant ON public.awaited_mirrors TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.beliefs TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.change_readers TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.changes TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.cold_objects TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.context_vectors TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.conversations TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.entities TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.entity_merges TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.entity_vectors TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.erasure_receipts USING ((tenant_id = ( SELECT public.current_tenant() AS current_tenant))) WITH CHECK ((tenant_id = ( SELECT public.current_tenant() AS current_tenant)));

CREATE POLICY of_tenant ON public.evidence TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.extractions TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.feedback TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.forgotten_messages TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.former_incarnations USING ((tenant_id = ( SELECT public.current_tenant() AS current_tenant))) WITH CHECK ((tenant_id = ( SELECT public.current_tenant() AS current_tenant)));

CREATE POLICY of_tenant ON public.idempotency_keys TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.items TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.job_effects TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.keyword_strengths TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.ledger TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.memories TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.memory_features TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.memory_keywords TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.memory_terms TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.mentions TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.messages TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.mirror_positions TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.past_messages TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.pending_embeddings TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.placements USING ((tenant_id = ( SELECT public.current_tenant() AS current_tenant))) WITH CHECK ((tenant_id = ( SELECT public.current_tenant() AS current_tenant)));

CREATE POLICY of_tenant ON public.purge_receipts TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.recalls TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.related_topics TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.runs TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.scope_counters USING ((tenant_id = ( SELECT public.current_tenant() AS current_tenant))) WITH CHECK ((tenant_id = ( SELECT public.current_tenant() AS current_tenant)));

CREATE POLICY of_tenant ON public.scopes USING (((tenant_id = ( SELECT public.current_tenant() AS current_tenant)) AND (((id >= ( SELECT public.first_scope() AS first_scope)) AND (id <= ( SELECT public.last_scope() AS last_scope))) IS TRUE) AND ((tier = 'hot'::text) OR public.meet_cold(tenant_id, id)))) WITH CHECK ((tenant_id = ( SELECT public.current_tenant() AS current_tenant)));

CREATE POLICY of_tenant ON public.segments TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.shown_memories TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.tenant_keys USING ((tenant_id = ( SELECT public.current_tenant() AS current_tenant))) WITH CHECK ((tenant_id = ( SELECT public.current_tenant() AS current_tenant)));

CREATE POLICY of_tenant ON public.topic_links TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.topics TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.unmirrored TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.withheld_memories TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.withheld_vectors TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_upkeep ON public.access_log TO recollect_upkeep USING (true);

CREATE POLICY of_upkeep ON public.accesses TO recollect_upkeep USING (true);

CREATE POLICY of_upkeep ON public.agents TO recollect_upkeep USING (true);

CREATE POLICY of_upkeep ON public.api_keys TO recollect_upkeep USING (true);

CREATE POLICY of_upkeep ON public.awaited_mirrors TO recollect_upkeep USING (true);

CREATE POLICY of_upkeep ON public.beliefs TO recollect_upkeep USING (true);

CREATE POLICY of_upkeep ON public.change_readers TO recollect_upkeep USING (true);

CREATE POLICY of_upkeep ON public.changes TO recollect_upkeep USING (true);

CREATE POLICY of_upkeep ON public.cold_objects TO recollect_upkeep USING (true);

CREATE POLICY of_upkeep ON public.conversations TO recollect_upkeep USING (true);

CREATE POLICY of_upkeep ON public.idempotency_keys TO recollect_upkeep USING (true);

CREATE POLICY of_upkeep ON public.ledger TO recollect_upkeep USING (true);

CREATE POLICY of_upkeep ON public.memories TO recollect_upkeep USING (true);

CREATE POLICY of_upkeep ON public.mirror_positions TO recollect_upkeep USING (true);

CREATE POLICY of_upkeep ON public.pending_embeddings TO recollect_upkeep USING (true);

CREATE POLICY of_upkeep ON public.placements TO recollect_upkeep USING (true);

CREATE POLICY of_upkeep ON public.recalls TO recollect_upkeep USING (true);

CREATE POLICY of_upkeep ON public.scopes TO recollect_upkeep USING (true);

CREATE POLICY of_upkeep ON public.segments TO recollect_upkeep USING (true);

CREATE POLICY of_upkeep ON public.shown_memories TO recollect_upkeep USING (true);

CREATE POLICY of_upkeep ON public.unmirrored TO recollect_upkeep USING (true);

CREATE POLICY only_of_reader ON public.scopes AS RESTRICTIVE FOR SELECT TO recollect_compat USING (COALESCE((tenant_id = ( SELECT public.reading_tenant() AS reading_tenant)), true));

ALTER TABLE public.past_messages ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.pending_embeddings ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.placements ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.purge_receipts ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.recalls ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.related_topics ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.runs ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.scope_counters ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.scopes ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.segments ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.shown_memories ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.tenant_keys ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.topic_links ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.topics ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.unmirrored ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.withheld_memories ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.withheld_vectors ENABLE ROW LEVEL SECURITY;

GRANT USAGE ON SCHEMA public TO recollect_service;
GRANT USAGE ON SCHEMA public TO recollect_matcher;
GRANT USAGE ON SCHEMA public TO recollect_compat;
GRANT USAGE ON SCHEMA public TO recollect_readers;
GRANT USAGE ON SCHEMA public TO recollect_upkeep;

REVOKE ALL ON FUNCTION pg_catalog.lo_creat(integer) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.lo_creat(integer) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.lo_creat(integer) TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.lo_create(oid) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.lo_create(oid) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.lo_create(oid) TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.lo_from_bytea(oid, bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.lo_from_bytea(oid, bytea) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.lo_from_bytea(oid, bytea) TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.pg_advisory_lock(bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_lock(bigint) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_lock(bigint) TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.pg_advisory_lock(integer, integer) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_lock(integer, integer) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_lock(integer, integer) TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.pg_advisory_lock_shared(bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_lock_shared(bigint) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_lock_shared(bigint) TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.pg_advisory_lock_shared(integer, integer) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_lock_shared(integer, integer) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_lock_shared(integer, integer) TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.pg_advisory_unlock(bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_unlock(bigint) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_unlock(bigint) TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.pg_advisory_unlock(integer, integer) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_unlock(integer, integer) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_unlock(integer, integer) TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.pg_advisory_unlock_all() FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_unlock_all() TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_unlock_all() TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.pg_advisory_unlock_shared(bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_unlock_shared(bigint) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_unlock_shared(bigint) TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.pg_advisory_unlock_shared(integer, integer) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_unlock_shared(integer, integer) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_unlock_shared(integer, integer) TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.pg_advisory_xact_lock(bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_xact_lock(bigint) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_xact_lock(bigint) TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.pg_advisory_xact_lock(integer, integer) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_xact_lock(integer, integer) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_xact_lock(integer, integer) TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.pg_advisory_xact_lock_shared(bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_xact_lock_shared(bigint) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_xact_lock_shared(bigint) TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.pg_advisory_xact_lock_shared(integer, integer) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_xact_lock_shared(integer, integer) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.pg_advisory_xact_lock_shared(integer, integer) TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.pg_logical_emit_message(transactional boolean, prefix text, message bytea, flush boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.pg_logical_emit_message(transactional boolean, prefix text, message bytea, flush boolean) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.pg_logical_emit_message(transactional boolean, prefix text, message bytea, flush boolean) TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.pg_logical_emit_message(transactional boolean, prefix text, message text, flush boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.pg_logical_emit_message(transactional boolean, prefix text, message text, flush boolean) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.pg_logical_emit_message(transactional boolean, prefix text, message text, flush boolean) TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.pg_try_advisory_lock(bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.pg_try_advisory_lock(bigint) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.pg_try_advisory_lock(bigint) TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.pg_try_advisory_lock(integer, integer) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.pg_try_advisory_lock(integer, integer) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.pg_try_advisory_lock(integer, integer) TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.pg_try_advisory_lock_shared(bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.pg_try_advisory_lock_shared(bigint) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.pg_try_advisory_lock_shared(bigint) TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.pg_try_advisory_lock_shared(integer, integer) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.pg_try_advisory_lock_shared(integer, integer) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.pg_try_advisory_lock_shared(integer, integer) TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.pg_try_advisory_xact_lock(bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.pg_try_advisory_xact_lock(bigint) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.pg_try_advisory_xact_lock(bigint) TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.pg_try_advisory_xact_lock(integer, integer) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.pg_try_advisory_xact_lock(integer, integer) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.pg_try_advisory_xact_lock(integer, integer) TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.pg_try_advisory_xact_lock_shared(bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.pg_try_advisory_xact_lock_shared(bigint) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.pg_try_advisory_xact_lock_shared(bigint) TO pg_read_all_data;

REVOKE ALL ON FUNCTION pg_catalog.pg_try_advisory_xact_lock_shared(integer, integer) FROM PUBLIC;
GRANT ALL ON FUNCTION pg_catalog.pg_try_advisory_xact_lock_shared(integer, integer) TO recollect_service;
GRANT ALL ON FUNCTION pg_catalog.pg_try_advisory_xact_lock_shared(integer, integer) TO pg_read_all_data;

REVOKE ALL ON FUNCTION public.alike_terms(asked_scope bigint, asked_terms bigint[], rare_terms bigint[], fewest integer, asked_kind text, min_trust smallint, expected integer, most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.alike_terms(asked_scope bigint, asked_terms bigint[], rare_terms bigint[], fewest integer, asked_kind text, min_trust smallint, expected integer, most integer) TO recollect_service;

GRANT SELECT ON TABLE public.incarnations TO recollect_service;

REVOKE ALL ON FUNCTION public.check_placement(asked_tenant integer, asked_bucket integer, known_generation integer, writing boolean, restoring boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION public.check_placement(asked_tenant integer, asked_bucket integer, known_generation integer, writing boolean, restoring boolean) TO recollect_service;

REVOKE ALL ON FUNCTION public.check_served(asked_tenant integer, asked_bucket integer, writing boolean, restoring boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION public.check_served(asked_tenant integer, asked_bucket integer, writing boolean, restoring boolean) TO recollect_service;

REVOKE ALL ON FUNCTION public.check_writable(asked_tenant integer, asked_bucket integer, restoring boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION public.check_writable(asked_tenant integer, asked_bucket integer, restoring boolean) TO recollect_service;

REVOKE ALL ON FUNCTION public.cold_standing() FROM PUBLIC;
GRANT ALL ON FUNCTION public.cold_standing() TO recollect_service;

REVOKE ALL ON FUNCTION public.create_embedding_space(space integer, new_model text, new_dimensions integer, new_precision text) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.due_conversations(archive_days double precision, delete_days double precision, purge_days double precision, after_scope bigint, after_id text, most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.due_conversations(archive_days double precision, delete_days double precision, purge_days double precision, after_scope bigint, after_id text, most integer) TO recollect_service;

REVOKE ALL ON FUNCTION public.due_scopes(wanted text, usual double precision, after bigint, most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.due_scopes(wanted text, usual double precision, after bigint, most integer) TO recollect_service;

REVOKE ALL ON FUNCTION public.due_to_move(wanted text, seconds double precision, archive_days double precision, delete_days double precision, purge_days double precision, recall_days double precision, after bigint, most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.due_to_move(wanted text, seconds double precision, archive_days double precision, delete_days double precision, purge_days double precision, recall_days double precision, after bigint, most integer) TO recollect_service;

REVOKE ALL ON FUNCTION public.ended_facts(most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.ended_facts(most integer) TO recollect_service;

REVOKE ALL ON FUNCTION public.follow_active_space() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.hand_to_upkeep(VARIADIC handed regprocedure[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.having_terms(asked_scope bigint, asked_terms bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION public.having_terms(asked_scope bigint, asked_terms bigint[]) TO recollect_service;

GRANT SELECT ON TABLE public.placements TO recollect_service;
GRANT SELECT ON TABLE public.placements TO recollect_upkeep;

GRANT SELECT ON TABLE public.server_identity TO recollect_service;
GRANT SELECT ON TABLE public.server_identity TO recollect_upkeep;

GRANT SELECT,INSERT ON TABLE public.scopes TO recollect_service;
GRANT SELECT ON TABLE public.scopes TO recollect_compat;

GRANT SELECT(id) ON TABLE public.scopes TO recollect_upkeep;

GRANT SELECT(tenant_id) ON TABLE public.scopes TO recollect_upkeep;

GRANT SELECT(agent) ON TABLE public.scopes TO recollect_upkeep;

GRANT UPDATE("user") ON TABLE public.scopes TO recollect_service;
GRANT SELECT("user") ON TABLE public.scopes TO recollect_upkeep;

GRANT UPDATE(memory_count) ON TABLE public.scopes TO recollect_service;
GRANT SELECT(memory_count) ON TABLE public.scopes TO recollect_upkeep;

GRANT UPDATE(event_count) ON TABLE public.scopes TO recollect_service;

GRANT UPDATE(thought_count) ON TABLE public.scopes TO recollect_service;

GRANT UPDATE(chat_count) ON TABLE public.scopes TO recollect_service;

GRANT UPDATE(term_count) ON TABLE public.scopes TO recollect_service;

GRANT UPDATE(unreflected_importance) ON TABLE public.scopes TO recollect_service;

GRANT UPDATE(unreflected_memories) ON TABLE public.scopes TO recollect_service;

GRANT UPDATE(last_written_at) ON TABLE public.scopes TO recollect_service;
GRANT SELECT(last_written_at) ON TABLE public.scopes TO recollect_upkeep;

GRANT UPDATE(has_keywords) ON TABLE public.scopes TO recollect_service;

GRANT UPDATE(has_names) ON TABLE public.scopes TO recollect_service;

GRANT UPDATE(has_topics) ON TABLE public.scopes TO recollect_service;

GRANT UPDATE(has_evidence) ON TABLE public.scopes TO recollect_service;

GRANT UPDATE(change_number) ON TABLE public.scopes TO recollect_service;
GRANT SELECT(change_number) ON TABLE public.scopes TO recollect_upkeep;

GRANT UPDATE(followed_until) ON TABLE public.scopes TO recollect_service;
GRANT SELECT(followed_until) ON TABLE public.scopes TO recollect_upkeep;

GRANT SELECT(written_hour) ON TABLE public.scopes TO recollect_upkeep;

GRANT UPDATE(tier) ON TABLE public.scopes TO recollect_service;
GRANT SELECT(tier),UPDATE(tier) ON TABLE public.scopes TO recollect_upkeep;

GRANT UPDATE(tier_since) ON TABLE public.scopes TO recollect_service;
GRANT SELECT(tier_since),UPDATE(tier_since) ON TABLE public.scopes TO recollect_upkeep;

REVOKE ALL ON FUNCTION public.is_topic_above(asked_scope bigint, asked_path text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.is_topic_above(asked_scope bigint, asked_path text) TO recollect_service;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.access_log TO recollect_service;
GRANT SELECT ON TABLE public.access_log TO recollect_compat;

GRANT SELECT(scope_id) ON TABLE public.access_log TO recollect_upkeep;

GRANT SELECT(accessed_at) ON TABLE public.access_log TO recollect_upkeep;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.accesses TO recollect_service;
GRANT SELECT ON TABLE public.accesses TO recollect_compat;

GRANT SELECT(scope_id) ON TABLE public.accesses TO recollect_upkeep;

GRANT SELECT(last_accessed_at) ON TABLE public.accesses TO recollect_upkeep;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.memories TO recollect_service;
GRANT SELECT ON TABLE public.memories TO recollect_compat;

GRANT SELECT(scope_id) ON TABLE public.memories TO recollect_upkeep;

GRANT SELECT(withheld) ON TABLE public.memories TO recollect_upkeep;

GRANT SELECT(expires_at) ON TABLE public.memories TO recollect_upkeep;

REVOKE ALL ON FUNCTION public.mark_leaving(days double precision, most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.mark_leaving(days double precision, most integer) TO recollect_service;

REVOKE ALL ON FUNCTION public.match_names(asked_scope bigint, asked_names text[], thresholds real[], most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.match_names(asked_scope bigint, asked_names text[], thresholds real[], most integer) TO recollect_service;

REVOKE ALL ON FUNCTION public.match_terms(asked_scope bigint, asked_terms bigint[], asked_slots integer[], kinds text[], min_trust smallint, before uuid, allowed uuid[], past_ids uuid[], memory_total bigint, hit_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.match_terms(asked_scope bigint, asked_terms bigint[], asked_slots integer[], kinds text[], min_trust smallint, before uuid, allowed uuid[], past_ids uuid[], memory_total bigint, hit_limit integer) TO recollect_service;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.messages TO recollect_service;
GRANT SELECT ON TABLE public.messages TO recollect_compat;

REVOKE ALL ON FUNCTION public.mirror_standing(asked_mirror text, asked_generation integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.mirror_standing(asked_mirror text, asked_generation integer) TO recollect_service;

REVOKE ALL ON FUNCTION public.newest_changes(followed bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION public.newest_changes(followed bigint[]) TO recollect_service;

REVOKE ALL ON FUNCTION public.next_tenant() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.objects_to_remove(seconds double precision, most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.objects_to_remove(seconds double precision, most integer) TO recollect_service;

REVOKE ALL ON FUNCTION public.open_to_readers(opened regclass) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.protect_scoped(protected regclass) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.prune_kept(kept text, before timestamp with time zone, most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.prune_kept(kept text, before timestamp with time zone, most integer) TO recollect_service;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.purge_receipts TO recollect_service;

REVOKE ALL ON FUNCTION public.renew_incarnation() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.resume_writes(asked_tenant integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.standing_keys(tenants integer[], shown uuid[]) FROM PUBLIC;
GRANT ALL ON FUNCTION public.standing_keys(tenants integer[], shown uuid[]) TO recollect_service;

REVOKE ALL ON FUNCTION public.suspend_writes(asked_tenant integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.switch_embedding_space(new_space integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.tenants_to_add_up() FROM PUBLIC;
GRANT ALL ON FUNCTION public.tenants_to_add_up() TO recollect_service;

REVOKE ALL ON FUNCTION public.topics_at(asked_scope bigint, asked_paths text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION public.topics_at(asked_scope bigint, asked_paths text[]) TO recollect_service;

REVOKE ALL ON FUNCTION public.topics_below(asked_scope bigint, asked_path text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.topics_below(asked_scope bigint, asked_path text) TO recollect_service;

GRANT SELECT,INSERT,UPDATE ON TABLE public.agents TO recollect_service;
GRANT SELECT ON TABLE public.agents TO recollect_upkeep;

GRANT SELECT,INSERT ON TABLE public.api_keys TO recollect_service;
GRANT DELETE ON TABLE public.api_keys TO recollect_upkeep;

GRANT SELECT(tenant_id) ON TABLE public.api_keys TO recollect_upkeep;

GRANT SELECT(id) ON TABLE public.api_keys TO recollect_upkeep;

GRANT UPDATE(revoked_at) ON TABLE public.api_keys TO recollect_service;
GRANT SELECT(revoked_at) ON TABLE public.api_keys TO recollect_upkeep;

GRANT SELECT(expires_at) ON TABLE public.api_keys TO recollect_upkeep;

GRANT SELECT(parent) ON TABLE public.api_keys TO recollect_upkeep;

GRANT UPDATE(last_used_at) ON TABLE public.api_keys TO recollect_service;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.awaited_mirrors TO recollect_service;

GRANT SELECT(scope_id) ON TABLE public.awaited_mirrors TO recollect_upkeep;

GRANT SELECT(mirror) ON TABLE public.awaited_mirrors TO recollect_upkeep;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.beliefs TO recollect_service;
GRANT SELECT ON TABLE public.beliefs TO recollect_compat;

GRANT SELECT(scope_id) ON TABLE public.beliefs TO recollect_upkeep;

GRANT SELECT(id) ON TABLE public.beliefs TO recollect_upkeep;

GRANT SELECT(invalid_at) ON TABLE public.beliefs TO recollect_upkeep;

GRANT SELECT(superseded_at) ON TABLE public.beliefs TO recollect_upkeep;

GRANT SELECT(withheld_for) ON TABLE public.beliefs TO recollect_upkeep;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.change_readers TO recollect_service;

GRANT SELECT(scope_id) ON TABLE public.change_readers TO recollect_upkeep;

GRANT SELECT("position") ON TABLE public.change_readers TO recollect_upkeep;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.changes TO recollect_service;
GRANT DELETE ON TABLE public.changes TO recollect_upkeep;

GRANT SELECT(scope_id) ON TABLE public.changes TO recollect_upkeep;

GRANT SELECT(number) ON TABLE public.changes TO recollect_upkeep;

GRANT SELECT(at) ON TABLE public.changes TO recollect_upkeep;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.cold_objects TO recollect_service;

GRANT SELECT(scope_id) ON TABLE public.cold_objects TO recollect_upkeep;

GRANT SELECT(name) ON TABLE public.cold_objects TO recollect_upkeep;

GRANT SELECT(state),UPDATE(state) ON TABLE public.cold_objects TO recollect_upkeep;

GRANT SELECT(since),UPDATE(since) ON TABLE public.cold_objects TO recollect_upkeep;

GRANT SELECT(bytes) ON TABLE public.cold_objects TO recollect_upkeep;

GRANT SELECT(expires_at) ON TABLE public.cold_objects TO recollect_upkeep;

GRANT SELECT(idle_since) ON TABLE public.cold_objects TO recollect_upkeep;

GRANT SELECT(deleted_at) ON TABLE public.cold_objects TO recollect_upkeep;

GRANT SELECT(recalled_at) ON TABLE public.cold_objects TO recollect_upkeep;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.context_vectors TO recollect_service;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.conversations TO recollect_service;
GRANT SELECT ON TABLE public.conversations TO recollect_compat;

GRANT SELECT(scope_id) ON TABLE public.conversations TO recollect_upkeep;

GRANT SELECT(id) ON TABLE public.conversations TO recollect_upkeep;

GRANT SELECT(state) ON TABLE public.conversations TO recollect_upkeep;

GRANT SELECT(synced) ON TABLE public.conversations TO recollect_upkeep;

GRANT SELECT(last_number) ON TABLE public.conversations TO recollect_upkeep;

GRANT SELECT(changed_at) ON TABLE public.conversations TO recollect_upkeep;

GRANT SELECT(idle_since) ON TABLE public.conversations TO recollect_upkeep;

GRANT SELECT(idle_hour) ON TABLE public.conversations TO recollect_upkeep;

GRANT SELECT(running) ON TABLE public.conversations TO recollect_upkeep;

GRANT SELECT ON TABLE public.embedding_spaces TO recollect_service;

GRANT UPDATE(filled_scope) ON TABLE public.embedding_spaces TO recollect_service;

GRANT UPDATE(filled_id) ON TABLE public.embedding_spaces TO recollect_service;

GRANT UPDATE(filled_count) ON TABLE public.embedding_spaces TO recollect_service;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.entities TO recollect_service;
GRANT SELECT ON TABLE public.entities TO recollect_matcher;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.entity_merges TO recollect_service;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.entity_vectors TO recollect_service;

GRANT SELECT,INSERT ON TABLE public.erasure_receipts TO recollect_service;

GRANT UPDATE(scopes) ON TABLE public.erasure_receipts TO recollect_service;

GRANT UPDATE(removed) ON TABLE public.erasure_receipts TO recollect_service;

GRANT UPDATE(erased_at) ON TABLE public.erasure_receipts TO recollect_service;

GRANT UPDATE(finished_at) ON TABLE public.erasure_receipts TO recollect_service;

GRANT UPDATE(unreported) ON TABLE public.erasure_receipts TO recollect_service;

GRANT UPDATE(mirrors) ON TABLE public.erasure_receipts TO recollect_service;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.evidence TO recollect_service;
GRANT SELECT ON TABLE public.evidence TO recollect_compat;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.extractions TO recollect_service;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.feedback TO recollect_service;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.forgotten_messages TO recollect_service;

GRANT SELECT ON TABLE public.former_incarnations TO recollect_service;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.idempotency_keys TO recollect_service;
GRANT DELETE ON TABLE public.idempotency_keys TO recollect_upkeep;

GRANT SELECT(scope_id) ON TABLE public.idempotency_keys TO recollect_upkeep;

GRANT SELECT(key) ON TABLE public.idempotency_keys TO recollect_upkeep;

GRANT SELECT(created_at) ON TABLE public.idempotency_keys TO recollect_upkeep;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.items TO recollect_service;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.job_effects TO recollect_service;

GRANT SELECT,INSERT,UPDATE ON TABLE public.job_failures TO recollect_service;
GRANT SELECT ON TABLE public.job_failures TO recollect_upkeep;

GRANT SELECT,INSERT,UPDATE ON TABLE public.job_progress TO recollect_service;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.keyword_strengths TO recollect_service;
GRANT SELECT ON TABLE public.keyword_strengths TO recollect_compat;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.memory_keywords TO recollect_service;
GRANT SELECT ON TABLE public.memory_keywords TO recollect_compat;

GRANT SELECT ON TABLE public.kw_strength TO recollect_readers;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.ledger TO recollect_service;
GRANT DELETE ON TABLE public.ledger TO recollect_upkeep;

GRANT SELECT(scope_id) ON TABLE public.ledger TO recollect_upkeep;

GRANT SELECT(tenant_id) ON TABLE public.ledger TO recollect_upkeep;

GRANT SELECT(id) ON TABLE public.ledger TO recollect_upkeep;

GRANT SELECT(at) ON TABLE public.ledger TO recollect_upkeep;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.memory_features TO recollect_service;

GRANT SELECT ON TABLE public.memory_nodes TO recollect_readers;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.memory_terms TO recollect_service;
GRANT SELECT ON TABLE public.memory_terms TO recollect_matcher;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.mentions TO recollect_service;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.mirror_positions TO recollect_service;

GRANT SELECT(scope_id) ON TABLE public.mirror_positions TO recollect_upkeep;

GRANT SELECT(mirror) ON TABLE public.mirror_positions TO recollect_upkeep;

GRANT SELECT(generation) ON TABLE public.mirror_positions TO recollect_upkeep;

GRANT SELECT("position") ON TABLE public.mirror_positions TO recollect_upkeep;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.mirrors TO recollect_service;
GRANT SELECT ON TABLE public.mirrors TO recollect_upkeep;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.past_messages TO recollect_service;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.pending_embeddings TO recollect_service;

GRANT SELECT(scope_id) ON TABLE public.pending_embeddings TO recollect_upkeep;

GRANT SELECT ON TABLE public.readers TO recollect_compat;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.recalls TO recollect_service;
GRANT DELETE ON TABLE public.recalls TO recollect_upkeep;

GRANT SELECT(scope_id) ON TABLE public.recalls TO recollect_upkeep;

GRANT SELECT(id) ON TABLE public.recalls TO recollect_upkeep;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.related_topics TO recollect_service;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.runs TO recollect_service;

GRANT SELECT,INSERT ON TABLE public.scope_counters TO recollect_service;

GRANT UPDATE(last_number) ON TABLE public.scope_counters TO recollect_service;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.segments TO recollect_service;

GRANT SELECT(scope_id) ON TABLE public.segments TO recollect_upkeep;

GRANT SELECT(conversation_id) ON TABLE public.segments TO recollect_upkeep;

GRANT SELECT(state) ON TABLE public.segments TO recollect_upkeep;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.shown_memories TO recollect_service;
GRANT DELETE ON TABLE public.shown_memories TO recollect_upkeep;

GRANT SELECT(scope_id) ON TABLE public.shown_memories TO recollect_upkeep;

GRANT SELECT(conversation_id) ON TABLE public.shown_memories TO recollect_upkeep;

GRANT SELECT(memory_id) ON TABLE public.shown_memories TO recollect_upkeep;

GRANT SELECT(computed_at) ON TABLE public.shown_memories TO recollect_upkeep;

GRANT SELECT,INSERT ON TABLE public.tenant_keys TO recollect_service;

GRANT UPDATE(wrapped) ON TABLE public.tenant_keys TO recollect_service;

GRANT UPDATE(wrapped_by) ON TABLE public.tenant_keys TO recollect_service;

GRANT SELECT(id) ON TABLE public.tenants TO recollect_service;

GRANT SELECT(tokens_per_day) ON TABLE public.tenants TO recollect_service;

GRANT SELECT(requests_per_second) ON TABLE public.tenants TO recollect_service;

GRANT SELECT(burst) ON TABLE public.tenants TO recollect_service;

GRANT SELECT(bytes_per_minute) ON TABLE public.tenants TO recollect_service;

GRANT SELECT(largest_body) ON TABLE public.tenants TO recollect_service;

GRANT SELECT(change_streams) ON TABLE public.tenants TO recollect_service;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.topic_links TO recollect_service;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.topics TO recollect_service;
GRANT SELECT ON TABLE public.topics TO recollect_matcher;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.unmirrored TO recollect_service;
GRANT SELECT ON TABLE public.unmirrored TO recollect_upkeep;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.withheld_memories TO recollect_service;
GRANT SELECT ON TABLE public.withheld_memories TO recollect_matcher;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.withheld_vectors TO recollect_service;
