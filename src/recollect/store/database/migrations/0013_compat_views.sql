-- For SQL that was written against the tables of others: two views in their words, and roles that may read these alone.

-- This role owns the views and reads what they are made of; nobody logs in as it. Readers belong to the second one.
do $$
begin
    if not exists (select from pg_roles where rolname = 'recollect_compat') then
        create role recollect_compat nologin nosuperuser nobypassrls;
    end if;
exception when duplicate_object or unique_violation then null;
end $$;

do $$
begin
    if not exists (select from pg_roles where rolname = 'recollect_readers') then
        create role recollect_readers nologin nosuperuser nobypassrls;
    end if;
exception when duplicate_object or unique_violation then null;
end $$;

-- An owner who is no superuser may hand a view to this role, and replace it later, only as its member.
do $$
begin
    if not pg_has_role(current_user, 'recollect_compat', 'set') then
        execute format('grant recollect_compat to %I', current_user);
    end if;
exception when insufficient_privilege then
    raise exception 'Another owner has made the role recollect_compat on this server: as a superuser, run "grant '
        'recollect_compat to %" and "grant recollect_readers to % with admin option".', current_user, current_user;
end $$;

grant usage on schema public to recollect_compat, recollect_readers;

-- What PostgreSQL lets everybody do, and a reader could harm others by: hold an advisory lock that they wait for, and fill
-- the disk with large objects and messages in the log. Only a superuser can take it from everybody; for an owner who is
-- none, deploy/roles.sql does the same.
do $$
declare
    taken regprocedure;
begin
    if (select rolsuper from pg_roles where rolname = current_user) then
        for taken in
            select oid from pg_proc where pronamespace = 'pg_catalog'::regnamespace
            and proname ~ '^(pg_(try_)?advisory_|pg_logical_emit_message$|lo_(creat|create|from_bytea)$)'
        loop
            execute format('revoke execute on function %s from public', taken);
            -- Who makes backups reads all data, and holds a lock for a moment.
            execute format('grant execute on function %s to recollect_service, pg_read_all_data', taken);
        end loop;
    end if;
end $$;

-- Which tenant a role may read. Roles belong to the whole server, what they may read to one database.
create table readers (
    name text primary key,
    tenant_id integer not null references tenants,
    created_at timestamptz not null default clock_timestamp()
);
grant select on readers to recollect_compat;

-- By who logged in, which no session can change, unlike a setting. Whoever is no reader reads nothing.
create function reading_tenant() returns bigint
    language sql stable security definer
    set search_path = pg_catalog, public, pg_temp
    as $$ select tenant_id from readers where name = session_user $$;

-- Let the views read one more table, rows of the reader's tenant only. As a case, because of a plain range the planner
-- believes that it leaves next to nothing, and would compare every row with every other.
create function open_to_readers(opened regclass) returns void
    language plpgsql as $$
begin
    execute format(
        'create policy of_reader on %s for select to recollect_compat '
        'using (case when scope_id >= (select reading_tenant() << 40) '
        'and scope_id <= (select reading_tenant() << 40 | 1099511627775) then true else false end)', opened);
    execute format('grant select on %s to recollect_compat', opened);
end $$;
revoke execute on function open_to_readers(regclass) from public;
-- The policy of tenants holds for every role and follows a setting: this one bars whatever else that would show a
-- reader. It holds for the owner too, as a member, who is no reader and is barred from nothing.
create policy of_reader on scopes for select to recollect_compat using (tenant_id = (select reading_tenant()));
create policy only_of_reader on scopes as restrictive for select to recollect_compat
    using (coalesce(tenant_id = (select reading_tenant()), true));
grant select on scopes to recollect_compat;
select open_to_readers(opened) from unnest(array[
    'memories', 'evidence', 'beliefs', 'accesses', 'access_log', 'keyword_strengths', 'memory_keywords',
    'conversations', 'messages'
]::regclass[]) as opened;

-- What takes part in recall, as the founding table had it: one scope after the other, each by its own number, so that
-- a reader who names an agent reads that agent's rows and no others. `offset 0` keeps it so, whatever the planner hopes.
-- The vectors are those of the active space; without a length, so that the view can follow to a space of another.
create function follow_active_space() returns void
    language plpgsql as $$
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
end $$;
revoke execute on function follow_active_space() from public;
select follow_active_space();

-- How many events or thoughts of an agent are filed under a keyword, with whomever it met; what has expired and is not
-- taken from the strengths yet does not count.
create view kw_strength with (security_barrier) as
select scopes.agent as persona_name, filed.keyword, filed.kind as memory_type, sum(filed.strength)::integer as strength
from scopes cross join lateral (
    select keyword_strengths.keyword, keyword_strengths.kind, keyword_strengths.strength
    from keyword_strengths where keyword_strengths.scope_id = scopes.id
    union all
    select memory_keywords.keyword, memory_keywords.kind, -1 as strength
    from memories cross join lateral unnest(memories.keywords) as word (keyword)
    join memory_keywords on memory_keywords.scope_id = scopes.id and memory_keywords.keyword = word.keyword
        and memory_keywords.kind = memories.kind and memory_keywords.id = memories.id
    where memories.scope_id = scopes.id and memories.withheld is null and memories.expires_at <= now()
      and memory_keywords.counted
    offset 0
) filed
where scopes.tenant_id = (select reading_tenant())
group by scopes.agent, filed.keyword, filed.kind
having sum(filed.strength) > 0;
grant create on schema public to recollect_compat;
alter view memory_nodes owner to recollect_compat;
alter view kw_strength owner to recollect_compat;
alter function reading_tenant() owner to recollect_compat;
revoke create on schema public from recollect_compat;
grant select on memory_nodes, kw_strength to recollect_readers;
