-- name: newest
-- Newest first, and exact: recency is looked up only for memories that it could lift among the hits, or out of the last
-- place; beyond the horizon it adds less than a millionth.
with embedded as materialized (
    select v.id, v.embedding <#> %(vector)s::{type} as distance
    from {vectors} v
    where v.scope_id = %(scope_id)s and v.kind = any (%(kinds)s::text[]) and not v.idle
      and (%(before)s::uuid is null or v.id < %(before)s)
), candidate as materialized (
    select e.id, f.importance::double precision as importance, e.distance
    from embedded e join memory_features f on f.scope_id = %(scope_id)s and f.id = e.id
    union all
    select m.id, m.importance, null
    from pending_embeddings p
    -- One by one: few wait, and to join them all the planner would read the whole scope.
    cross join lateral (
        select memories.id, memories.kind, memories.idle, memories.importance from memories
        where memories.scope_id = p.scope_id and memories.id between p.id and p.id order by memories.id limit 1
    ) m
    where p.scope_id = %(scope_id)s and m.kind = any (%(kinds)s::text[]) and not m.idle
      and (%(before)s::uuid is null or m.id < %(before)s)
      and not exists (select from embedded e where e.id = p.id)
), extent as (
    select count(*) as total, min(c.distance) as nearest, max(c.distance) as farthest,
           min(c.importance) as mildest, max(c.importance) as gravest
    from candidate c
), bound as materialized (
    select e.*, coalesce(%(similarity)s::double precision / nullif(farthest - nearest, 0), 0) as slope,
           coalesce(%(importance)s::double precision / nullif(gravest - mildest, 0), 0) as rise,
           exp(greatest(ln(%(decay)s::double precision) * (total - 1), -700)) as stalest, 1::double precision as freshest
    from extent e
), standing as not materialized (
    select c.*, coalesce(b.farthest - c.distance, 0) * b.slope + (c.importance - b.mildest) * b.rise as timeless
    from candidate c cross join bound b
), edge as materialized (
    select (select min(best.timeless) from (
               select timeless from standing order by timeless desc limit %(limit)s::integer
           ) best) - %(recency)s::double precision as hits, min(timeless) + %(recency)s::double precision as last
    from standing
), {place}, considered as (
    select s.id, s.distance, s.importance, p.rank,
           -- What is no candidate holds its rank all the same, so there can be more ranks than candidates.
           greatest(b.stalest, exp(greatest(ln(%(decay)s::double precision) * (p.rank - 1), -700))) as freshness
    from standing s cross join edge cross join bound b left join place p on p.id = s.id and p.rank <= %(horizon)s::integer
    where s.timeless >= edge.hits or s.timeless <= edge.last
), {scored}

-- name: near
-- Newest first, through the index of a large scope, so near the exact result: what means most, what means and matters most
-- together, and what was accessed last are scored exactly; all else is left out.
with found as materialized (
    select * from search_stream_index(
        {space}, %(scope_id)s, %(vector)s::vector, %(kinds)s::text[],
        array[%(recency)s, %(similarity)s, %(importance)s]::double precision[], %(limit)s::integer
    )
), {place}, counted as materialized (
    select count(*) as places from place
), bound as materialized (
    -- Of a scope that is smaller than the horizon, all candidates have places.
    select case when places < %(horizon)s::integer then places end as total, nearest, farthest, mildest, gravest,
           case when places < %(horizon)s::integer
                then exp(greatest(ln(%(decay)s::double precision) * (places - 1), -700)) else 0 end as stalest,
           1::double precision as freshest
    from found cross join counted
), seen as (
    select v.id, v.importance::double precision as importance, v.distance
    from (
        select unnest(found.ids) as id from found union select place.id from place where place.rank <= %(horizon)s::integer
    ) known
    -- One by one: to join them all the planner would rather read the whole scope.
    cross join lateral (
        select n.id, n.importance, n.embedding <#> %(vector)s::{type} as distance from {vectors} n
        where n.scope_id = %(scope_id)s and n.id = known.id and n.kind = any (%(kinds)s::text[]) and not n.idle offset 0
    ) v
    union all
    select m.id, m.importance, null
    from pending_embeddings p join memories m on m.scope_id = p.scope_id and m.id = p.id
    where p.scope_id = %(scope_id)s and m.kind = any (%(kinds)s::text[]) and not m.idle
      and not exists (select from {vectors} v where v.scope_id = p.scope_id and v.id = p.id)
), considered as (
    select s.id, s.distance, s.importance, p.rank,
           greatest(b.stalest, exp(greatest(ln(%(decay)s::double precision) * (p.rank - 1), -700))) as freshness
    from seen s cross join bound b left join place p on p.id = s.id and p.rank <= %(horizon)s::integer
), {scored}

-- name: whole
-- In every mode, and exact: each candidate's last access is looked up.
with logged as materialized (
    select u.id, max(log.accessed_at) as accessed_at
    from access_log log, unnest(log.ids) as u (id) where log.scope_id = %(scope_id)s group by u.id
), candidate as materialized (
    select m.id, m.kind = 'thought' as thought, m.importance::double precision as importance,
           v.embedding <#> %(vector)s::{type} as distance,
           greatest(m.occurred_at, a.last_accessed_at, l.accessed_at) as accessed_at
    from memories m
    left join {vectors} v on v.scope_id = %(scope_id)s and v.id = m.id
    left join pending_embeddings p on p.scope_id = %(scope_id)s and p.id = m.id
    left join accesses a on a.scope_id = %(scope_id)s and a.id = m.id
    left join logged l on l.id = m.id
    where m.scope_id = %(scope_id)s and m.kind = any (%(kinds)s::text[]) and not m.idle
      and m.trust >= %(min_trust)s::smallint and (%(before)s::uuid is null or m.id < %(before)s)
      and ({allowed} is null or m.id in (select unnest({allowed}))) and (v.id is not null or p.id is not null)
), ordered as (
    select c.*, max(c.accessed_at) over () as latest,
           row_number() over (
               order by case when %(mode)s = 'original' then c.accessed_at end,
                        case when %(mode)s <> 'original' then c.accessed_at end desc, c.thought, c.id desc
           ) as rank
    from candidate c
), considered as materialized (
    select o.*,
           exp(greatest(ln(%(decay)s::double precision)
                        * case when %(mode)s = 'paper' then extract(epoch from o.latest - o.accessed_at) / 3600
                               else o.rank - 1 end, -700)) as freshness
    from ordered o
), bound as materialized (
    select count(*) as total, min(c.distance) as nearest, max(c.distance) as farthest,
           min(c.importance) as mildest, max(c.importance) as gravest,
           min(c.freshness) as stalest, max(c.freshness) as freshest
    from considered c
), {scored}

-- name: place
place as materialized (
    select a.id, row_number() over (order by max(a.accessed_at) desc, bool_or(a.thought), a.id desc) as rank
    from latest_accesses(%(scope_id)s, %(kinds)s::text[], %(before)s::uuid, %(horizon)s::integer) a group by a.id
)

-- name: scored
-- Each factor is scaled over all candidates; core/agents/scoring.py has the same formula.
factor as (
    select c.id, c.rank, b.total,
           coalesce((c.freshness - b.stalest) / nullif(b.freshest - b.stalest, 0), 0.5) as recency,
           case when b.farthest > b.nearest
                then greatest(0, least(1, coalesce((b.farthest - c.distance) / (b.farthest - b.nearest), 0)))
                else 0.5 end as similarity,
           coalesce((c.importance - b.mildest) / nullif(b.gravest - b.mildest, 0), 0.5) as importance
    from considered c cross join bound b
), scored as (
    select f.*, %(recency)s::double precision * f.recency + %(similarity)s::double precision * f.similarity
                + %(importance)s::double precision * f.importance as score
    from factor f
)
select s.id, s.score, s.recency, s.similarity, s.importance, coalesce(s.rank, 0)::integer as rank, s.total as candidates,
       {lowest} as lowest
from scored s
order by s.score desc, s.rank, s.id desc
limit %(limit)s::integer

-- name: lowest
min(s.score) over ()

-- name: plan_once
-- The planner takes a scope for one memory and would loop over all accesses for each: so it joins by hashing or merging.
select set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_nestloop', 'off', true),
       set_config('work_mem', '32MB', true), set_config('jit', 'off', true)

-- name: plan_as_usual
select set_config('plan_cache_mode', null, true), set_config('enable_nestloop', null, true),
       set_config('work_mem', null, true), set_config('jit', null, true)

-- name: then
-- All memories are ranked first, because it is not known earlier how many of them existed at that time.
select * from ({ranking}) as ranked
where true{then}
order by score desc, id desc
limit %(most)s
