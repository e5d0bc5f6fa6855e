-- The memory stream of an agent: what callers said of hits, and ranking by recency, similarity and importance, inside the
-- database: no embedding leaves it. core/agents/scoring.py is the twin of the ranking functions.

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

create type ranked_memory as (
    id uuid, score double precision,
    recency double precision, similarity double precision, importance double precision, rank integer,
    candidates bigint, lowest double precision
);

-- Make the ranking functions of one space, its own because a plan can only be kept for a table that is known by name;
-- whoever ranks calls them as itself, so that its policies hold.
create function equip_space(space integer) returns void
    language plpgsql as $equip$
declare
    vectors text := 'vectors_' || space;
    type text := (select case precision when 'half' then 'halfvec' else 'vector' end
                  from embedding_spaces where id = space);
    width integer := (select dimensions + 2 from embedding_spaces where id = space);
begin
    -- Newest first, and exact: recency is looked up only for those whom it could lift among the hits, or out of last
    -- place; beyond the horizon it adds less than a millionth. As below, it joins by hashing or merging.
    execute format($create$
create function %1$I(
    asked_scope bigint, cue %2$s, asked_kinds text[], before uuid,
    weights double precision[], decay double precision, horizon integer, hit_limit integer
) returns setof ranked_memory
    language plpgsql stable set plan_cache_mode = force_generic_plan set enable_nestloop = off set work_mem = '32MB'
    set jit = off as $$
begin
    return query
    with embedded as materialized (
        select v.id, v.embedding <#> cue as distance
        from %3$I v
        where v.scope_id = asked_scope and v.kind = any (asked_kinds) and not v.idle
          and (before is null or v.id < before)
    ), candidate as materialized (
        select e.id, f.importance::double precision as importance, e.distance
        from embedded e join memory_features f on f.scope_id = asked_scope and f.id = e.id
        union all
        select m.id, m.importance, null
        from pending_embeddings p
        -- One by one: few wait, and to join them all the planner would read the whole scope.
        cross join lateral (
            select memories.id, memories.kind, memories.idle, memories.importance from memories
            where memories.scope_id = p.scope_id and memories.id between p.id and p.id order by memories.id limit 1
        ) m
        where p.scope_id = asked_scope and m.kind = any (asked_kinds) and not m.idle
          and (before is null or m.id < before)
          and not exists (select from embedded e where e.id = p.id)
    ), bound as materialized (
        select total, nearest, farthest, least, greatest,
               coalesce(weights[2] / nullif(farthest - nearest, 0), 0) as slope,
               coalesce(weights[3] / nullif(greatest - least, 0), 0) as rise,
               exp(greatest(ln(decay) * (total - 1), -700)) as last
        from (
            select count(*) as total, min(c.distance) as nearest, max(c.distance) as farthest,
                   min(c.importance) as least, max(c.importance) as greatest
            from candidate c
        ) counted
    ), edge as materialized (
        select min(top.timeless) as timeless from (
            select (coalesce(b.farthest - c.distance, 0)) * b.slope + (c.importance - b.least) * b.rise as timeless
            from candidate c cross join bound b order by 1 desc limit hit_limit
        ) top
    ), foot as materialized (
        select min((coalesce(b.farthest - c.distance, 0)) * b.slope + (c.importance - b.least) * b.rise) as timeless
        from candidate c cross join bound b
    ), shortlist as materialized (
        select listed.id, listed.distance, listed.importance
        from (
            select c.id, c.distance, c.importance,
                   (coalesce(b.farthest - c.distance, 0)) * b.slope + (c.importance - b.least) * b.rise as timeless
            from candidate c cross join bound b
        ) listed cross join edge cross join foot
        where listed.timeless >= edge.timeless - weights[1] or listed.timeless <= foot.timeless + weights[1]
    ), place as materialized (
        select a.id, row_number() over (order by max(a.accessed_at) desc, bool_or(a.thought), a.id desc) as rank
        from latest_accesses(asked_scope, asked_kinds, before, horizon) a group by a.id
    ), factor as (
        select s.id, p.rank, b.total,
               case when b.last = 1 then 0.5
                    when p.rank is null then 0
                    -- What is no candidate holds its rank all the same, so there can be more ranks than candidates.
                    else greatest(0, (exp(greatest(ln(decay) * (p.rank - 1), -700)) - b.last) / (1 - b.last)) end
                    as recency,
               case when b.farthest > b.nearest
                    then coalesce((b.farthest - s.distance) / (b.farthest - b.nearest), 0) else 0.5 end as similarity,
               coalesce((s.importance - b.least) / nullif(b.greatest - b.least, 0), 0.5) as importance
        from shortlist s cross join bound b left join place p on p.id = s.id and p.rank <= horizon
    ), scored as (
        select f.*, weights[1] * f.recency + weights[2] * f.similarity + weights[3] * f.importance as score
        from factor f
    )
    select s.id, s.score, s.recency, s.similarity, s.importance, coalesce(s.rank, 0)::integer, s.total,
           min(s.score) over ()
    from scored s
    order by s.score desc, s.rank, s.id desc
    limit hit_limit;
end $$
$create$, 'rank_newest_' || space, type, vectors);

    -- Every way, and exact: each candidate's last access is looked up. The planner takes the scope for one
    -- memory, and would go through all accesses for each: so it joins by hashing or merging.
    execute format($create$
create function %1$I(
    asked_scope bigint, cue %2$s, asked_kinds text[], min_trust smallint, before uuid, allowed uuid[],
    weights double precision[], decay double precision, mode text, hit_limit integer
) returns setof ranked_memory
    language plpgsql stable set plan_cache_mode = force_generic_plan set enable_nestloop = off set work_mem = '32MB'
    set jit = off as $$
begin
    return query
    with logged as materialized (
        select u.id, max(log.accessed_at) as accessed_at
        from access_log log, unnest(log.ids) as u (id) where log.scope_id = asked_scope group by u.id
    ), candidate as materialized (
        select m.id, m.kind = 'thought' as thought, m.importance::double precision as importance,
               v.embedding <#> cue as distance,
               greatest(m.occurred_at, a.last_accessed_at, l.accessed_at) as accessed_at
        from memories m
        left join %3$I v on v.scope_id = asked_scope and v.id = m.id
        left join pending_embeddings p on p.scope_id = asked_scope and p.id = m.id
        left join accesses a on a.scope_id = asked_scope and a.id = m.id
        left join logged l on l.id = m.id
        where m.scope_id = asked_scope and m.kind = any (asked_kinds) and not m.idle and m.trust >= min_trust
          and (before is null or m.id < before) and (allowed is null or m.id in (select unnest(allowed)))
          and (v.id is not null or p.id is not null)
    ), placed as (
        select c.*, max(c.accessed_at) over () as latest,
               row_number() over (
                   order by case when mode = 'original' then c.accessed_at end,
                            case when mode <> 'original' then c.accessed_at end desc, c.thought, c.id desc
               ) as rank
        from candidate c
    ), faded as materialized (
        select p.*,
               exp(greatest(ln(decay) * case when mode = 'paper' then extract(epoch from p.latest - p.accessed_at) / 3600
                                             else p.rank - 1 end, -700)) as freshness
        from placed p
    ), bound as materialized (
        select count(*) as total, min(f.distance) as nearest, max(f.distance) as farthest,
               min(f.importance) as least, max(f.importance) as greatest,
               min(f.freshness) as stalest, max(f.freshness) as freshest
        from faded f
    ), factor as (
        select f.id, f.rank, b.total,
               coalesce((f.freshness - b.stalest) / nullif(b.freshest - b.stalest, 0), 0.5) as recency,
               case when b.farthest > b.nearest
                    then coalesce((b.farthest - f.distance) / (b.farthest - b.nearest), 0) else 0.5 end as similarity,
               coalesce((f.importance - b.least) / nullif(b.greatest - b.least, 0), 0.5) as importance
        from faded f cross join bound b
    ), scored as (
        select f.*, weights[1] * f.recency + weights[2] * f.similarity + weights[3] * f.importance as score
        from factor f
    )
    select s.id, s.score, s.recency, s.similarity, s.importance, s.rank::integer, s.total, min(s.score) over ()
    from scored s
    order by s.score desc, s.rank
    limit hit_limit;
end $$
$create$, 'rank_whole_' || space, type, vectors);

    -- Newest first, through the index of a large scope, and so near the exact answer, not surely it: what means most,
    -- what means and matters most together, and what was accessed last are scored exactly; all else is passed over.
    execute format($create$
create function %1$I(
    asked_scope bigint, cue %2$s, opposite %2$s, asked_kinds text[],
    weights double precision[], decay double precision, horizon integer, hit_limit integer
) returns setof ranked_memory
    language plpgsql stable as $$
declare
    nothing %2$s := '[0,0]';
    nearest double precision; farthest double precision; mildest double precision; gravest double precision;
    slope double precision; rise double precision; lift double precision;
    found uuid[]; more uuid[];
    usual text := current_setting('hnsw.ef_search');
    search text := format(
        'from %3$I where scope_id = %%s and kind = any (%%L) and not idle '
        'order by (fold_importance(embedding, importance)::%2$s(%4$s)) <#> $1 limit ', asked_scope, asked_kinds);
begin
    -- The planner takes the policy's range for a narrow one and would scan the whole scope for cheaper.
    perform set_config('enable_sort', 'off', true), set_config('hnsw.ef_search', '100', true);
    execute 'select embedding <#> $2 ' || search || '1' into farthest using (opposite || nothing), cue;
    execute 'select array_agg(id), min(distance) from (select id, embedding <#> $2 as distance ' || search || '30) top'
        into found, nearest using (cue || nothing), cue;
    execute format('select min(importance), max(importance) from %3$I where scope_id = %%s and not idle', asked_scope)
        into mildest, gravest;
    select least(mildest, min(m.importance)), greatest(gravest, max(m.importance)) into mildest, gravest
    from pending_embeddings p join memories m on m.scope_id = p.scope_id and m.id = p.id
    where p.scope_id = asked_scope and not m.idle;
    slope := coalesce(weights[2] / nullif(farthest - nearest, 0), 0);
    rise := coalesce(weights[3] / nullif(gravest - mildest, 0), 0);
    -- What importance weighs beside meaning, in the unit that it is folded in; the longer of the two is brought to 1.
    lift := case when slope * 1e9 > rise then rise / slope * 10 else 1e9 end;
    perform set_config('hnsw.ef_search', '200', true);
    execute 'select array_agg(id) from (select id ' || search || greatest(100, 2 * hit_limit) || ') top'
        into more
        using (cue::vector * array_fill((1 / greatest(lift, 1))::real, array[%4$s - 2])::vector)::%2$s
              || array[least(lift, 1), 0]::real[]::%2$s;
    perform set_config('enable_sort', 'on', true), set_config('hnsw.ef_search', usual, true);
    -- Where the index comes short, as for kinds that few memories have, all are ranked.
    if coalesce(cardinality(more), 0) < hit_limit then
        return query select * from %5$I(asked_scope, cue, asked_kinds, null, weights, decay, horizon, hit_limit);
        return;
    end if;
    return query
    with place as materialized (
        select a.id, row_number() over (order by max(a.accessed_at) desc, bool_or(a.thought), a.id desc) as rank
        from latest_accesses(asked_scope, asked_kinds, null, horizon) a group by a.id
    ), ranked as (
        -- Of a scope that is smaller than the horizon, all candidates are placed.
        select case when count(*) < horizon then count(*) end as total,
               case when count(*) < horizon then exp(greatest(ln(decay) * (count(*) - 1), -700)) else 0 end as least
        from place
    ), seen as (
        select v.id, v.importance, v.distance
        from (select unnest(found || more) as id union select place.id from place where place.rank <= horizon) known
        -- One by one: to join them all the planner would rather read the whole scope.
        cross join lateral (
            select n.id, n.importance, n.embedding <#> cue as distance from %3$I n
            where n.scope_id = asked_scope and n.id = known.id and n.kind = any (asked_kinds) and not n.idle offset 0
        ) v
        union all
        select m.id, m.importance, null
        from pending_embeddings p join memories m on m.scope_id = p.scope_id and m.id = p.id
        where p.scope_id = asked_scope and m.kind = any (asked_kinds) and not m.idle
          and not exists (select from %3$I v where v.scope_id = p.scope_id and v.id = p.id)
    ), factor as (
        select v.id, p.rank,
               case when p.rank is null then 0 when r.least = 1 then 0.5
                    else (exp(greatest(ln(decay) * (p.rank - 1), -700)) - r.least) / (1 - r.least) end as recency,
               r.total,
               case when nearest = farthest then 0.5
                    when v.distance is null then 0
                    else greatest(0, least(1, (farthest - v.distance) / (farthest - nearest))) end as similarity,
               coalesce((v.importance - mildest) / nullif(gravest - mildest, 0), 0.5) as importance
        from seen v left join place p on p.id = v.id and p.rank <= horizon cross join ranked r
    ), scored as (
        select f.*, weights[1] * f.recency + weights[2] * f.similarity + weights[3] * f.importance as score
        from factor f
    )
    select s.id, s.score, s.recency, s.similarity, s.importance, coalesce(s.rank, 0)::integer, s.total::bigint,
           null::double precision
    from scored s
    order by s.score desc, s.rank, s.id desc
    limit hit_limit;
end $$
$create$, 'rank_near_' || space, type, vectors, width, 'rank_newest_' || space);
end $equip$;
revoke execute on function equip_space(integer) from public;
