-- The whole schema as all migrations leave it, made by `make schema`; the job engine's objects are left out.
CREATE TYPE public.place AS (
	scope_id bigint,
	memory_count bigint,
	approximate_space integer,
	space_id integer,
	model text,
	dimensions integer
);

CREATE FUNCTION public.admit(shown_hash text, asked_agent text, asked_user text, patience text) RETURNS TABLE(tenant_id integer, name text, rights text[], trust smallint, place public.place)
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.create_embedding_space(new_model text, new_dimensions integer) RETURNS integer
    LANGUAGE plpgsql
    AS $$
declare
    new_storage text := case when new_dimensions <= 1280 then 'covering'
                             when new_dimensions <= 4000 then 'plain' else 'external' end;
    space integer;
    vectors text;
begin
    insert into embedding_spaces (model, dimensions, storage) values (new_model, new_dimensions, new_storage)
        returning id into space;
    vectors := 'vectors_' || space;
    execute format(
        'create table %I (scope_id bigint not null, id uuid not null, kind text not null, trust smallint not null, '
        'importance real not null, embedding halfvec(%s) not null '
        'check (l2_norm(embedding) between 0.98 and 1.02), primary key (scope_id, id) %s) '
        'with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_insert_threshold = 5000)',
        vectors, new_dimensions,
        case when new_storage = 'covering' then 'include (kind, trust, importance, embedding)' else '' end);
    execute format('alter table %I alter embedding set storage %s', vectors,
                   case when new_storage = 'external' then 'external' else 'plain' end);
    perform protect_scoped(vectors::regclass);
    return space;
end $$;

CREATE FUNCTION public.current_tenant() RETURNS bigint
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (NULLIF(current_setting('recollect.tenant'::text, true), ''::text))::bigint;

CREATE FUNCTION public.erase_vectors() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.erase_with_memory() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    execute format(
        'delete from %I side using forgotten where side.scope_id = forgotten.scope_id and side.%I = forgotten.id',
        tg_argv[0], tg_argv[1]);
    return null;
end $$;

CREATE FUNCTION public.first_scope() RETURNS bigint
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (public.current_tenant() << 40);

CREATE FUNCTION public.last_scope() RETURNS bigint
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN ((public.current_tenant() << 40) | '1099511627775'::bigint);

CREATE FUNCTION public.locate(asked_agent text, asked_user text) RETURNS public.place
    LANGUAGE sql STABLE
    AS $$
    select scopes.id, scopes.memory_count, scopes.approximate_space, space.id, space.model, space.dimensions
    from (select current_tenant() as tenant_id) caller
    left join scopes
        on scopes.tenant_id = caller.tenant_id and scopes.agent = asked_agent and scopes."user" = asked_user
    left join embedding_spaces space on space.state = 'active'
$$;

CREATE FUNCTION public.match_terms(asked_scope bigint, asked_terms bigint[], asked_slots integer[], kinds text[], min_trust smallint, before uuid, memory_total bigint, hit_limit integer) RETURNS TABLE(id uuid, score double precision)
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
        select t.id, t.weights
        from memory_terms t
        where t.scope_id = asked_scope and t.terms && asked_terms
          and (kinds is null or t.kind = any (kinds))
          and t.trust >= min_trust
          and (before is null or t.id < before)
    ),
    volume as materialized (
        select count(*) as amount, greatest(1, count(*) * cardinality(asked_slots) / 2000) as stride from candidates
    ),
    sample as materialized (
        select c.weights from candidates c
        where (select stride from volume) = 1 or uuid_hash(c.id) % (select stride from volume) = 0
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
    query as (
        select ('{' || string_agg(slot || ':' ||
            ln(1 + (greatest(memory_total - memories, 0) + 0.5::float8) / (memories + 0.5::float8)), ',' order by slot)
            || '}/1000000000')::sparsevec as weights
        from containing
    )
    select c.id, -(c.weights <#> q.weights) as score
    from candidates c, query q
    order by score desc, c.id desc
    limit hit_limit;
end $$;

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
end $$;

CREATE TABLE public.api_keys (
    tenant_id integer NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    secret_hash bytea NOT NULL,
    name text NOT NULL,
    rights text[] NOT NULL,
    trust smallint NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    revoked_at timestamp with time zone,
    CONSTRAINT api_keys_rights_check CHECK (((rights <@ ARRAY['read'::text, 'write'::text, 'admin'::text]) AND (cardinality(rights) > 0))),
    CONSTRAINT api_keys_secret_hash_check CHECK ((length(secret_hash) = 32)),
    CONSTRAINT api_keys_trust_check CHECK (((trust >= 0) AND (trust <= 100)))
);

ALTER TABLE ONLY public.api_keys FORCE ROW LEVEL SECURITY;

CREATE TABLE public.embedding_spaces (
    id integer NOT NULL,
    model text NOT NULL,
    dimensions integer NOT NULL,
    storage text NOT NULL,
    state text DEFAULT 'filling'::text NOT NULL,
    filled_scope bigint DEFAULT 0 NOT NULL,
    filled_id uuid DEFAULT '00000000-0000-0000-0000-000000000000'::uuid NOT NULL,
    filled_count bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT embedding_spaces_dimensions_check CHECK (((dimensions >= 1) AND (dimensions <= 4096))),
    CONSTRAINT embedding_spaces_state_check CHECK ((state = ANY (ARRAY['filling'::text, 'active'::text, 'retired'::text]))),
    CONSTRAINT embedding_spaces_storage_check CHECK ((storage = ANY (ARRAY['covering'::text, 'plain'::text, 'external'::text])))
);

ALTER TABLE public.embedding_spaces ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.embedding_spaces_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.evidence (
    scope_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    source_id uuid NOT NULL
);

ALTER TABLE ONLY public.evidence FORCE ROW LEVEL SECURITY;

CREATE TABLE public.idempotency_keys (
    scope_id bigint NOT NULL,
    key text NOT NULL,
    fingerprint bytea NOT NULL,
    memory_ids uuid[] DEFAULT '{}'::uuid[] NOT NULL,
    embedded boolean[] DEFAULT '{}'::boolean[] NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    replayed_at timestamp with time zone
);

ALTER TABLE ONLY public.idempotency_keys FORCE ROW LEVEL SECURITY;

CREATE TABLE public.memories (
    scope_id bigint NOT NULL,
    id uuid NOT NULL,
    kind text NOT NULL,
    content text NOT NULL,
    speaker text DEFAULT ''::text NOT NULL,
    importance real NOT NULL,
    keywords text[] DEFAULT '{}'::text[] NOT NULL,
    origin text NOT NULL,
    trust smallint NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT memories_importance_check CHECK (((importance >= (1)::double precision) AND (importance <= (10)::double precision))),
    CONSTRAINT memories_kind_check CHECK ((kind = ANY (ARRAY['message'::text, 'event'::text, 'chat'::text, 'thought'::text, 'fact'::text, 'summary'::text]))),
    CONSTRAINT memories_trust_check CHECK (((trust >= 0) AND (trust <= 100)))
)
WITH (autovacuum_vacuum_insert_scale_factor='0.02', autovacuum_vacuum_insert_threshold='5000');

ALTER TABLE ONLY public.memories FORCE ROW LEVEL SECURITY;

CREATE TABLE public.memory_terms (
    scope_id bigint NOT NULL,
    id uuid NOT NULL,
    kind text NOT NULL,
    trust smallint NOT NULL,
    terms bigint[] NOT NULL,
    weights public.sparsevec(1000000000) NOT NULL
)
WITH (autovacuum_vacuum_insert_scale_factor='0.02', autovacuum_vacuum_insert_threshold='5000');

ALTER TABLE ONLY public.memory_terms FORCE ROW LEVEL SECURITY;

CREATE TABLE public.pending_embeddings (
    scope_id bigint NOT NULL,
    id uuid NOT NULL
);

ALTER TABLE ONLY public.pending_embeddings FORCE ROW LEVEL SECURITY;

CREATE SEQUENCE public.scope_numbers
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    MAXVALUE 1099511627775
    CACHE 1;

CREATE TABLE public.scopes (
    id bigint NOT NULL,
    tenant_id integer NOT NULL,
    agent text NOT NULL,
    "user" text NOT NULL,
    memory_count bigint DEFAULT 0 NOT NULL,
    term_count bigint DEFAULT 0 NOT NULL,
    last_written_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    approximate_space integer,
    CONSTRAINT scopes_check CHECK (((id >> 40) = tenant_id))
)
WITH (fillfactor='70');

ALTER TABLE ONLY public.scopes FORCE ROW LEVEL SECURITY;

CREATE TABLE public.tenants (
    id integer NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT tenants_id_check CHECK (((id >= 1) AND (id <= 8388607)))
);

ALTER TABLE public.tenants ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.tenants_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (tenant_id, id);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_secret_hash_key UNIQUE (secret_hash);

ALTER TABLE ONLY public.embedding_spaces
    ADD CONSTRAINT embedding_spaces_model_dimensions_key UNIQUE (model, dimensions);

ALTER TABLE ONLY public.embedding_spaces
    ADD CONSTRAINT embedding_spaces_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.evidence
    ADD CONSTRAINT evidence_pkey PRIMARY KEY (scope_id, memory_id, source_id);

ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (scope_id, key);

ALTER TABLE ONLY public.memories
    ADD CONSTRAINT memories_pkey PRIMARY KEY (scope_id, id);

ALTER TABLE ONLY public.memory_terms
    ADD CONSTRAINT memory_terms_pkey PRIMARY KEY (scope_id, id);

ALTER TABLE ONLY public.pending_embeddings
    ADD CONSTRAINT pending_embeddings_pkey PRIMARY KEY (scope_id, id);

ALTER TABLE ONLY public.scopes
    ADD CONSTRAINT scopes_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.scopes
    ADD CONSTRAINT scopes_tenant_id_agent_user_key UNIQUE (tenant_id, agent, "user");

ALTER TABLE ONLY public.tenants
    ADD CONSTRAINT tenants_name_key UNIQUE (name);

ALTER TABLE ONLY public.tenants
    ADD CONSTRAINT tenants_pkey PRIMARY KEY (id);

CREATE INDEX evidence_of_source ON public.evidence USING btree (scope_id, source_id, memory_id);

CREATE INDEX memory_terms_by_term ON public.memory_terms USING gin (terms) WITH (gin_pending_list_limit='256');

CREATE UNIQUE INDEX one_active_space ON public.embedding_spaces USING btree (state) WHERE (state = 'active'::text);

CREATE TRIGGER erase_evidence AFTER DELETE ON public.memories REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.erase_with_memory('evidence', 'memory_id');

CREATE TRIGGER erase_memory_terms AFTER DELETE ON public.memories REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.erase_with_memory('memory_terms', 'id');

CREATE TRIGGER erase_pending_embeddings AFTER DELETE ON public.memories REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.erase_with_memory('pending_embeddings', 'id');

CREATE TRIGGER erase_vectors AFTER DELETE ON public.memories REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION public.erase_vectors();

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.scopes
    ADD CONSTRAINT scopes_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);

ALTER TABLE public.api_keys ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.evidence ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.idempotency_keys ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.memories ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.memory_terms ENABLE ROW LEVEL SECURITY;

CREATE POLICY of_matcher ON public.memory_terms FOR SELECT TO recollect_matcher USING (true);

CREATE POLICY of_presenter ON public.api_keys FOR SELECT USING ((secret_hash = ( SELECT public.presented_key() AS presented_key)));

CREATE POLICY of_tenant ON public.api_keys USING ((tenant_id = ( SELECT public.current_tenant() AS current_tenant))) WITH CHECK ((tenant_id = ( SELECT public.current_tenant() AS current_tenant)));

CREATE POLICY of_tenant ON public.evidence TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.idempotency_keys TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.memories TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.memory_terms TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.pending_embeddings TO recollect_service USING (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope)))) WITH CHECK (((scope_id >= ( SELECT public.first_scope() AS first_scope)) AND (scope_id <= ( SELECT public.last_scope() AS last_scope))));

CREATE POLICY of_tenant ON public.scopes USING ((tenant_id = ( SELECT public.current_tenant() AS current_tenant))) WITH CHECK ((tenant_id = ( SELECT public.current_tenant() AS current_tenant)));

ALTER TABLE public.pending_embeddings ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.scopes ENABLE ROW LEVEL SECURITY;

GRANT USAGE ON SCHEMA public TO recollect_service;
GRANT USAGE ON SCHEMA public TO recollect_matcher;

REVOKE ALL ON FUNCTION public.create_embedding_space(new_model text, new_dimensions integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.match_terms(asked_scope bigint, asked_terms bigint[], asked_slots integer[], kinds text[], min_trust smallint, before uuid, memory_total bigint, hit_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.match_terms(asked_scope bigint, asked_terms bigint[], asked_slots integer[], kinds text[], min_trust smallint, before uuid, memory_total bigint, hit_limit integer) TO recollect_service;

REVOKE ALL ON FUNCTION public.protect_scoped(protected regclass) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.switch_embedding_space(new_space integer) FROM PUBLIC;

GRANT SELECT,INSERT ON TABLE public.api_keys TO recollect_service;

GRANT UPDATE(revoked_at) ON TABLE public.api_keys TO recollect_service;

GRANT SELECT ON TABLE public.embedding_spaces TO recollect_service;

GRANT UPDATE(filled_scope) ON TABLE public.embedding_spaces TO recollect_service;

GRANT UPDATE(filled_id) ON TABLE public.embedding_spaces TO recollect_service;

GRANT UPDATE(filled_count) ON TABLE public.embedding_spaces TO recollect_service;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.evidence TO recollect_service;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.idempotency_keys TO recollect_service;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.memories TO recollect_service;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.memory_terms TO recollect_service;
GRANT SELECT ON TABLE public.memory_terms TO recollect_matcher;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.pending_embeddings TO recollect_service;

GRANT USAGE ON SEQUENCE public.scope_numbers TO recollect_service;

GRANT SELECT,INSERT ON TABLE public.scopes TO recollect_service;

GRANT UPDATE(memory_count) ON TABLE public.scopes TO recollect_service;

GRANT UPDATE(term_count) ON TABLE public.scopes TO recollect_service;

GRANT UPDATE(last_written_at) ON TABLE public.scopes TO recollect_service;

GRANT SELECT(id) ON TABLE public.tenants TO recollect_service;
