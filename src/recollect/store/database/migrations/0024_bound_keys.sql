-- Keys that may name one agent only, or one agent and one user: they can be handed to an agent that is not trusted.

-- Null means any. The service may not change them: a key is bound for as long as it lives.
alter table api_keys add agent text, add "user" text, add constraint bound_from_the_agent_on
    check (agent is not null or "user" is null);

-- Whoever asks this way does not heed bounds: the version before, while it still runs. To it such a key is unknown.
create or replace function admit(shown_hash text, asked_agent text, asked_user text, patience text)
    returns table (tenant_id integer, name text, rights text[], trust smallint, place place)
    language plpgsql as $$
begin
    perform set_config('recollect.key', shown_hash, true), set_config('lock_timeout', patience, true);
    select k.tenant_id, k.name, k.rights, k.trust into tenant_id, name, rights, trust
        from api_keys k
        where k.secret_hash = decode(shown_hash, 'hex') and k.revoked_at is null and k.agent is null;
    if found then
        perform set_config('recollect.tenant', tenant_id::text, true);
        place := locate(asked_agent, asked_user);
        return next;
    end if;
end $$;

-- From a secret's hash to a caller and a place in one call: the key names the tenant, the tenant opens the scope.
-- What the caller leaves out is as the key is bound. Where it names anything else, both names are null, and nothing
-- is looked up: whether there is such a scope makes no difference, not even in time.
create function admit_bound(shown_hash text, asked_agent text, asked_user text, patience text)
    returns table (
        tenant_id integer, name text, rights text[], trust smallint,
        bound_agent text, bound_user text, agent text, "user" text, place place)
    language plpgsql as $$
begin
    -- A statement cannot shorten its own time limit, but it can wait less long for locks.
    perform set_config('recollect.key', shown_hash, true), set_config('lock_timeout', patience, true);
    select k.tenant_id, k.name, k.rights, k.trust, k.agent, k."user",
           coalesce(nullif(asked_agent, ''), k.agent, ''), coalesce(nullif(asked_user, ''), k."user", '')
        into tenant_id, name, rights, trust, bound_agent, bound_user, agent, "user"
        from api_keys k where k.secret_hash = decode(shown_hash, 'hex') and k.revoked_at is null;
    if not found then
        return;
    end if;
    perform set_config('recollect.tenant', tenant_id::text, true);
    if agent <> coalesce(bound_agent, agent) or "user" <> coalesce(bound_user, "user") then
        agent := null;
        "user" := null;
    else
        place := locate(agent, "user");
    end if;
    return next;
end $$;
