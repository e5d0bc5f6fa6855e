-- Search by words: hashed terms in one GIN index, BM25 weights in a sparse vector.

-- A term's hash contains its scope, so that one index serves all scopes and every posting list is one scope's.
create table memory_terms (
    scope_id bigint not null,
    id uuid not null,
    kind text not null,
    trust smallint not null,
    terms bigint[] not null,
    weights sparsevec(1000000000) not null,
    -- By which a sample is drawn: of its content alone, so that the same memories rank the same wherever they are stored.
    draw integer not null,
    primary key (scope_id, id)
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_insert_threshold = 5000);
create index memory_terms_by_term on memory_terms using gin (terms) with (gin_pending_list_limit = 256);
select protect_scoped('memory_terms');

create trigger erase_memory_terms after delete on memories
    referencing old table as forgotten
    for each statement execute function erase_with_memory('memory_terms', 'id');

-- Row-level security keeps operators that are not leakproof away from indexes, and && is one. The matcher may
-- read this one table whole; its function takes the tenant from the transaction and never leaves the scope.
create policy of_matcher on memory_terms for select to recollect_matcher using (true);
grant select on memory_terms to recollect_matcher;

-- Rank one scope's memories by BM25. A term's frequency is counted on the candidates themselves: exactly while
-- they are few, on an even sample of them when they are many, so no statistics are kept at write.
create function match_terms(
    asked_scope bigint, asked_terms bigint[], asked_slots integer[],
    kinds text[], min_trust smallint, before uuid, memory_total bigint, hit_limit integer
) returns table (id uuid, score double precision)
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
revoke execute on function match_terms(bigint, bigint[], integer[], text[], smallint, uuid, bigint, integer) from public;
grant execute on function match_terms(bigint, bigint[], integer[], text[], smallint, uuid, bigint, integer)
    to recollect_service;
grant create on schema public to recollect_matcher;
alter function match_terms(bigint, bigint[], integer[], text[], smallint, uuid, bigint, integer)
    owner to recollect_matcher;
revoke create on schema public from recollect_matcher;
