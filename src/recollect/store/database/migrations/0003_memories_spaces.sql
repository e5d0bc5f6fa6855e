-- Search by vector: one narrow table per embedding space, made when a model is introduced, dropped when it is retired.

create table embedding_spaces (
    -- Of model and dimensions, so that it is the same on every server: core/memories/ids.py.
    id integer primary key check (id >= 0),
    model text not null,
    dimensions integer not null check (dimensions between 1 and 4096),
    precision text not null check (precision in ('half', 'single')),
    storage text not null check (storage in ('covering', 'plain', 'external')),
    state text not null default 'filling' check (state in ('filling', 'active', 'retired')),
    filled_scope bigint not null default 0,
    filled_id uuid not null default '00000000-0000-0000-0000-000000000000',
    filled_count bigint not null default 0,
    created_at timestamptz not null default clock_timestamp(),
    unique (model, dimensions)
);
create unique index one_active_space on embedding_spaces (state) where state = 'active';
grant select on embedding_spaces to recollect_service;
grant update (filled_scope, filled_id, filled_count) on embedding_spaces to recollect_service;

-- One trigger for all spaces, present and to come: making or dropping one touches no table that is being served.
create function erase_vectors() returns trigger
    language plpgsql as $$
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
end $$;
create trigger erase_vectors after delete on memories
    referencing old table as forgotten
    for each statement execute function erase_vectors();

-- Similarity and importance in one vector, all of the same length: one index serves any weights. The scale is small,
-- so that the directions of meaning stay apart; a cue with two zeros at its end is a search by meaning alone.
create function fold_importance(embedding halfvec, importance real) returns halfvec
    language sql immutable strict parallel safe
    return embedding || array[importance * 0.1::real, sqrt(100 - importance * importance)::real * 0.1::real]::halfvec;

create function fold_importance(embedding vector, importance real) returns vector
    language sql immutable strict parallel safe
    return embedding || array[importance * 0.1::real, sqrt(100 - importance * importance)::real * 0.1::real]::vector;

-- Importance is that of the memory where an approximate index folds it in, and null elsewhere: it changes after the
-- write, and a vector's row is too large to be written again for it. Others read memory_features.
-- Size decides the storage: an index page holds 2,560 bytes of vector beside the key, a heap page 8,000.
create function create_embedding_space(space integer, new_model text, new_dimensions integer, new_precision text)
    returns void
    language plpgsql as $$
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
revoke execute on function create_embedding_space(integer, text, integer, text) from public;

-- From one model to the next in one transaction, and the view of readers with it; what the new space lacks is filled by
-- the worker.
create function switch_embedding_space(new_space integer) returns void
    language plpgsql as $$
begin
    update embedding_spaces set state = 'retired' where state = 'active';
    update embedding_spaces set state = 'active', filled_scope = 0,
        filled_id = '00000000-0000-0000-0000-000000000000' where id = new_space and state <> 'active';
    if not found then
        raise exception 'There is no embedding space % to switch to.', new_space;
    end if;
    perform follow_active_space();
end $$;
revoke execute on function switch_embedding_space(integer) from public;

-- Give versions the vectors of those whose place they take, in all spaces: they say the same. Return the heirs that
-- lack one in the active space.
create function inherit_vectors(asked_scope bigint, heirs uuid[], elders uuid[]) returns uuid[]
    language plpgsql as $$
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
end $$;

-- Count the rows of memories' vectors in all spaces, withheld ones too.
create function count_vectors(asked_scope bigint, asked_ids uuid[]) returns bigint
    language plpgsql stable as $$
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
end $$;

-- Where a scope lies for its readers: its number and size, and the space that recall reads.
create type place as (
    scope_id bigint, memory_count bigint, approximate_space integer,
    space_id integer, model text, dimensions integer, precision text, profile jsonb,
    has_keywords boolean, has_names boolean, has_topics boolean, has_evidence boolean
);

-- In plpgsql, which keeps its plans.
create function locate(asked_agent text, asked_user text) returns place
    language plpgsql stable as $$
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

-- Note the day on which a key is used, once a day: nobody waits for it, neither another request nor a standby.
create function note_use(tenant integer, used_key uuid, day timestamptz) returns void
    language plpgsql as $$
begin
    if current_setting('transaction_read_only') = 'on' then
        return;
    end if;
    perform set_config('synchronous_commit', 'off', true);
    update api_keys set last_used_at = day where (tenant_id, id) in (
        select tenant_id, id from api_keys where tenant_id = tenant and id = used_key
        and last_used_at is distinct from day for no key update skip locked);
end $$;

-- Limits as one value; null where there are none, which is usual.
create function limits_of(
    requests_per_second double precision, burst integer, bytes_per_minute bigint, largest_body integer,
    change_streams integer) returns float8[]
    language sql immutable parallel safe
    return nullif(
        array[requests_per_second, burst, bytes_per_minute, largest_body, change_streams],
        array[null, null, null, null, null]::float8[]);

-- From a secret's hash to a caller and a place in one call: the key names the tenant, the tenant opens the scope.
-- What the caller leaves out is as the key is bound. Where it names anything else, both names are null, and nothing
-- is looked up: whether there is such a scope makes no difference, not even in time.
create function authorize(shown_hash text, asked_agent text, asked_user text, lock_wait text)
    returns table (
        tenant_id integer, key_id uuid, name text, rights text[], trust smallint,
        bound_agent text, bound_user text, counted_as uuid, key_limits float8[], tenant_limits float8[],
        agent text, "user" text, place place)
    language plpgsql as $$
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

-- How far a memory has come. It has failed when the job that was to give it a vector was given up and none waits, or
-- when no model could make anything of its segment.
create function memory_state(asked_scope bigint, asked_id uuid) returns text
    language plpgsql stable as $$
declare
    space integer := (select id from embedding_spaces where state = 'active');
    embedded boolean := exists (
        select from withheld_vectors where scope_id = asked_scope and id = asked_id and space_id = space);
    lock_of_job text := 'embed:' || asked_scope;
    segment text := segment_state(asked_scope, asked_id);
begin
    if segment in ('enriched', 'failed') then
        return segment;
    end if;
    if space is not null and not embedded then
        execute format('select exists (select from %I where scope_id = $1 and id = $2)', 'vectors_' || space)
            into embedded using asked_scope, asked_id;
    end if;
    if embedded then
        return 'embedded';
    elsif exists (select from pending_embeddings where scope_id = asked_scope and id = asked_id)
        and exists (select from procrastinate_jobs
                    where (args ->> 'scope_id')::bigint >> 40 = asked_scope >> 40 and status = 'failed'
                      and status in ('todo', 'doing', 'failed') and lock = lock_of_job)
        and not exists (select from procrastinate_jobs where lock = lock_of_job and status = 'todo')
        and not exists (select from procrastinate_jobs where lock = lock_of_job and status = 'doing') then
        return 'failed';
    end if;
    return 'stored';
end $$;
