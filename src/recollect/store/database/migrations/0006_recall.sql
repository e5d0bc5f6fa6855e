-- Ranking by words, and recalls that are kept for a time, each with all that its ranking was made from, to be explained
-- and replayed.

-- Rank one scope's memories by BM25. A term's frequency is counted on the candidates themselves: exactly while
-- they are few, on an even sample of them when they are many, so no statistics are kept at write. Past versions stand
-- among what the index holds, so that a term is as frequent as it was. Which versions they are is the caller's to say,
-- who sees only what is its own. `allowed` names the only ones to rank; all if null.
create function match_terms(
    asked_scope bigint, asked_terms bigint[], asked_slots integer[],
    kinds text[], min_trust smallint, before uuid, allowed uuid[], past_ids uuid[], memory_total bigint,
    hit_limit integer
) returns table (id uuid, score double precision, past boolean, rarities double precision[])
    language plpgsql stable security definer
    set search_path = pg_catalog, public, pg_temp
    set plan_cache_mode = force_custom_plan
as $$
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
revoke execute on function match_terms(bigint, bigint[], integer[], text[], smallint, uuid, uuid[], uuid[], bigint, integer)
    from public;
grant execute on function match_terms(bigint, bigint[], integer[], text[], smallint, uuid, uuid[], uuid[], bigint, integer)
    to recollect_service;
grant create on schema public to recollect_matcher;
alter function match_terms(bigint, bigint[], integer[], text[], smallint, uuid, uuid[], uuid[], bigint, integer)
    owner to recollect_matcher;
revoke create on schema public from recollect_matcher;

-- What has all of these terms, in recall or withheld from it. See `match_terms` for why the matcher looks.
create function having_terms(asked_scope bigint, asked_terms bigint[]) returns setof uuid
    language plpgsql stable security definer
    set search_path = pg_catalog, public, pg_temp
    set plan_cache_mode = force_custom_plan
as $$
begin
    if (asked_scope between first_scope() and last_scope()) is not true then
        return;
    end if;
    return query
    select t.id from memory_terms t where t.scope_id = asked_scope and t.terms @> asked_terms
    union all
    select w.id from withheld_memories w where w.scope_id = asked_scope and w.terms @> asked_terms;
end $$;
revoke execute on function having_terms(bigint, bigint[]) from public;
grant execute on function having_terms(bigint, bigint[]) to recollect_service;
grant create on schema public to recollect_matcher;
alter function having_terms(bigint, bigint[]) owner to recollect_matcher;
revoke create on schema public from recollect_matcher;

create table recalls (
    scope_id bigint not null,
    id uuid not null,
    asked_at timestamptz not null,
    text text not null,
    cue jsonb not null,
    vector bytea,
    space_id integer,
    inputs bytea not null,
    listed uuid[] not null,
    hits jsonb not null,
    "limit" integer not null,
    status text not null,
    message text not null,
    methods jsonb not null,
    tallies jsonb not null,
    milliseconds double precision not null,
    primary key (scope_id, id)
);
-- The inputs come compressed. What a cue says is nothing for the planner's samples.
alter table recalls
    alter inputs set storage external,
    alter text set statistics 0, alter cue set statistics 0, alter vector set statistics 0,
    alter inputs set statistics 0, alter listed set statistics 0, alter hits set statistics 0,
    alter methods set statistics 0, alter tallies set statistics 0, alter message set statistics 0;
select protect_scoped('recalls');
-- Ids begin with the time: the oldest of all tenants come first.
create index recalls_by_time on recalls (id);

-- Erase the kept recalls that list one of these memories, or whose cue says just what one of them said. Whoever keeps a
-- recall holds this lock with others of the scope, whoever erases recalls holds it alone: so none is kept that lists what
-- is being forgotten at this moment.
create function erase_recalls_of(asked_scope bigint, asked_ids uuid[], said text[]) returns void
    language plpgsql as $$
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

create function erase_recalls() returns trigger
    language plpgsql as $$
declare
    each record;
begin
    for each in select scope_id, array_agg(id) as ids, array_agg(content) as said from forgotten group by scope_id loop
        perform erase_recalls_of(each.scope_id, each.ids, each.said);
    end loop;
    return null;
end $$;
create trigger erase_recalls after delete on memories
    referencing old table as forgotten for each statement execute function erase_recalls();
