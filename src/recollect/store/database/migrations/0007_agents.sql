-- The memory stream of an agent: what callers said of hits, and ranking by recency, similarity and importance, inside the
-- database: no embedding leaves it. channels/stream.sql ranks.

-- What callers said of hits, with what they were ranked by, from which an agent's weights can be learned: the factors of
-- the stream, or what each channel and preference would add at a weight of 1, or both.
create table feedback (
    scope_id bigint not null,
    recall_id uuid not null,
    memory_id uuid not null,
    useful boolean not null,
    rank integer check (rank >= 0),
    similarity real check (similarity between 0 and 1),
    importance real check (importance between 0 and 1),
    candidates integer check (candidates > 0),
    unweighed jsonb not null default '{}',
    script text not null default 'words' check (script in ('words', 'cjk')),
    marked_at timestamptz not null default clock_timestamp(),
    primary key (scope_id, recall_id, memory_id),
    check (rank is not null or unweighed <> '{}'),
    check (num_nulls(rank, similarity, importance) in (0, 3) and (rank is null or candidates is not null))
);
select protect_scoped('feedback');
create index feedback_of_memory on feedback (scope_id, memory_id);
create trigger erase_feedback after delete on memories
    referencing old table as forgotten for each statement execute function erase_side_rows('feedback', 'memory_id');

-- What a memory's recency is measured by: when it happened, was last accessed, or is on the log as accessed. Recency is a
-- matter among those that take part.
create function latest_accesses(asked_scope bigint, asked_kinds text[], before uuid, most integer)
    returns table (id uuid, accessed_at timestamptz, thought boolean)
    language sql stable
    begin atomic
    select logged.id, log.accessed_at, logged.kind = 'thought'
    from access_log log, unnest(log.ids, log.kinds) as logged (id, kind)
    where log.scope_id = asked_scope and logged.kind = any (asked_kinds) and (before is null or logged.id < before)
    union all
    select newest.id, newest.last_accessed_at, asked.kind = 'thought'
    from unnest(asked_kinds) as asked (kind), lateral (
        select accesses.id, accesses.last_accessed_at from accesses
        where accesses.scope_id = asked_scope and accesses.kind = asked.kind and (before is null or accesses.id < before)
        order by accesses.last_accessed_at desc, accesses.id desc
        limit most
    ) newest
    union all
    select newest.id, newest.occurred_at, asked.kind = 'thought'
    from unnest(asked_kinds) as asked (kind), lateral (
        select memories.id, memories.occurred_at from memories
        where memories.scope_id = asked_scope and memories.kind = asked.kind and not memories.idle
          and memories.withheld is null and (before is null or memories.id < before)
        order by memories.occurred_at desc, memories.id desc
        limit most
    ) newest;
    end;

-- Search the index of a large scope for memories that may be among the hits: those that mean most, and those that mean and
-- matter most together; with the range of each factor over the scope. If the index finds too few, as for kinds that few
-- memories have, return all of them with their own ranges.
create function search_stream_index(
    space integer, asked_scope bigint, cue vector, asked_kinds text[], weights double precision[], hit_limit integer
) returns table (
    ids uuid[], nearest double precision, farthest double precision, mildest double precision, gravest double precision
)
    language plpgsql stable as $$
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
end $$;
