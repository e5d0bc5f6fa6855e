-- Ranking looks at every term of a cue by itself: what finds memories by words tells how telling each of them is.

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
