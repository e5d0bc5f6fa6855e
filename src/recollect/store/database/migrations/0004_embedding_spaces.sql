-- Search by vector: one narrow table per embedding space, made when a model is introduced, dropped when it is retired.

create table embedding_spaces (
    id integer generated always as identity primary key,
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
    space integer;
begin
    for space in select id from embedding_spaces loop
        execute format(
            'delete from %I side using forgotten where side.scope_id = forgotten.scope_id and side.id = forgotten.id',
            'vectors_' || space);
    end loop;
    return null;
end $$;
create trigger erase_vectors after delete on memories
    referencing old table as forgotten
    for each statement execute function erase_vectors();

-- Relevance and importance in one vector, all of the same length: one index serves any weights. The scale is small,
-- so that the directions of meaning stay apart; a cue with two zeros at its end is a search by meaning alone.
create function fold_importance(embedding halfvec, importance real) returns halfvec
    language sql immutable strict parallel safe
    return embedding || array[importance * 0.1::real, sqrt(100 - importance * importance)::real * 0.1::real]::halfvec;
create function fold_importance(embedding vector, importance real) returns vector
    language sql immutable strict parallel safe
    return embedding || array[importance * 0.1::real, sqrt(100 - importance * importance)::real * 0.1::real]::vector;

-- Size decides the storage: an index page holds 2,560 bytes of vector beside the key, a heap page 8,000.
create function create_embedding_space(new_model text, new_dimensions integer, new_precision text) returns integer
    language plpgsql as $$
declare
    bytes integer := new_dimensions * case new_precision when 'half' then 2 else 4 end;
    type text := case new_precision when 'half' then 'halfvec' else 'vector' end;
    new_storage text := case when bytes <= 2560 then 'covering' when bytes <= 8000 then 'plain' else 'external' end;
    space integer;
    vectors text;
begin
    insert into embedding_spaces (model, dimensions, precision, storage)
        values (new_model, new_dimensions, new_precision, new_storage) returning id into space;
    vectors := 'vectors_' || space;
    execute format(
        'create table %I (scope_id bigint not null, id uuid not null, kind text not null, trust smallint not null, '
        'idle boolean not null, importance real not null, embedding %s(%s) not null '
        'check (%s(embedding) between 0.98 and 1.02), primary key (scope_id, id) %s) '
        'with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_insert_threshold = 5000)',
        vectors, type, new_dimensions, case new_precision when 'half' then 'l2_norm' else 'vector_norm' end,
        case when new_storage = 'covering' then 'include (kind, trust, idle, importance, embedding)' else '' end);
    execute format('alter table %I alter embedding set storage %s', vectors,
                   case when new_storage = 'external' then 'external' else 'plain' end);
    perform protect_scoped(vectors::regclass);
    perform equip_space(space);
    return space;
end $$;
revoke execute on function create_embedding_space(text, integer, text) from public;

-- From one model to the next in one transaction; what the new space lacks is filled by the worker.
create function switch_embedding_space(new_space integer) returns void
    language plpgsql as $$
begin
    update embedding_spaces set state = 'retired' where state = 'active';
    update embedding_spaces set state = 'active', filled_scope = 0,
        filled_id = '00000000-0000-0000-0000-000000000000' where id = new_space and state <> 'active';
    if not found then
        raise exception 'There is no embedding space % to switch to.', new_space;
    end if;
end $$;
revoke execute on function switch_embedding_space(integer) from public;

-- Where a scope lies for its readers: its number and size, and the space that recall reads.
create type place as (
    scope_id bigint, memory_count bigint, approximate_space integer,
    space_id integer, model text, dimensions integer, precision text, profile jsonb
);

create function locate(asked_agent text, asked_user text) returns place
    language sql stable as $$
    select scopes.id, scopes.memory_count, scopes.approximate_space, space.id, space.model, space.dimensions,
           space.precision, agents.profile
    from (select current_tenant() as tenant_id) caller
    left join scopes
        on scopes.tenant_id = caller.tenant_id and scopes.agent = asked_agent and scopes."user" = asked_user
    left join agents on agents.tenant_id = caller.tenant_id and agents.agent = asked_agent
    left join embedding_spaces space on space.state = 'active'
$$;

-- From a secret's hash to a caller and a place in one call: the key names the tenant, the tenant opens the scope.
create function admit(shown_hash text, asked_agent text, asked_user text, patience text)
    returns table (tenant_id integer, name text, rights text[], trust smallint, place place)
    language plpgsql as $$
begin
    -- A statement cannot shorten its own time limit, but it can wait less long for locks.
    perform set_config('recollect.key', shown_hash, true), set_config('lock_timeout', patience, true);
    select k.tenant_id, k.name, k.rights, k.trust into tenant_id, name, rights, trust
        from api_keys k where k.secret_hash = decode(shown_hash, 'hex') and k.revoked_at is null;
    if found then
        perform set_config('recollect.tenant', tenant_id::text, true);
        place := locate(asked_agent, asked_user);
        return next;
    end if;
end $$;
