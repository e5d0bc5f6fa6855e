-- name: collect
-- Memories under the requested topics, and below them on request; the newest memories under their parents, and under
-- the related topics of their links.
with given as materialized (
    {given}
), found as materialized (
    select place, id from topics_at(%(scope_id)s, (select paths || parents from given))
), asked as materialized (
    select id from found where place <= (select cardinality(paths) from given)
), outward as materialized (
    select asked.id as topic_id, link.* from asked cross join lateral (
        select memory_id, occurred_at, activation, diffusion, independence from topic_links
        where scope_id = %(scope_id)s and topic_id = asked.id and withheld_for is null{outward}
        order by occurred_at desc, memory_id
        limit %(most)s
    ) link
), own as materialized (
    {own}
), around as materialized (
    select distinct 'related' as source, named.related_id as id, %(related_taken)s as taken
    from outward cross join lateral (
        -- "between" and the order of the key force the right index: another one could read the whole scope.
        select related_id from related_topics
        where scope_id = %(scope_id)s and topic_id between outward.topic_id and outward.topic_id
          and memory_id between outward.memory_id and outward.memory_id
        order by topic_id, memory_id, related_id
        limit 1000
    ) named
    where outward.diffusion > 0
    union all
    select distinct 'parent', id, %(parent_taken)s from found where place > (select cardinality(paths) from given)
), lower as materialized (
    select link.* from (
        select distinct below.id from unnest((select paths from given)) as each (path)
        cross join lateral topics_below(%(scope_id)s, each.path) as below (id)
        where %(below)s
    ) below cross join lateral (
        select memory_id, occurred_at, activation, diffusion, independence from topic_links
        where scope_id = %(scope_id)s and topic_id = below.id and withheld_for is null{filter}
        order by occurred_at desc, memory_id
        limit %(most)s
    ) link
    order by link.occurred_at desc, link.memory_id
    limit %(most)s
), picked as (
    select 'primary' as source, memory_id, occurred_at, activation, diffusion, independence from own
    union all
    select around.source, link.* from around cross join lateral (
        select memory_id, occurred_at, activation, diffusion, independence from topic_links
        where scope_id = %(scope_id)s and topic_id = around.id and withheld_for is null{filter}
        order by occurred_at desc, memory_id
        limit around.taken
    ) link
    union all
    select 'descendant', lower.* from lower
)
select exists (select from asked) as known,
       exists (select from outward group by topic_id having count(*) >= %(most)s)
           or exists (select from own group by topic_id having count(*) >= %(most)s)
           or (select count(*) from lower) >= %(most)s as cut,
       picked.*
from (select) one left join picked on true

-- name: same
select * from outward

-- name: own
select asked.id as topic_id, link.* from asked cross join lateral (
    select memory_id, occurred_at, activation, diffusion, independence from topic_links
    where scope_id = %(scope_id)s and topic_id = asked.id and withheld_for is null{filter}
    order by occurred_at desc, memory_id
    limit %(most)s
) link

-- name: written
select %(paths)s::text[] as paths, %(parents)s::text[] as parents

-- name: worded
-- Topics that have a word of the cue as a name in their path: first by their own name, then by the number of such names,
-- then by the length of the names.
select coalesce(array_agg(path), '{}') as paths,
       coalesce(array_agg(regexp_replace(path, '\.[^.]*$', '')) filter (where path like '%%.%%'), '{}') as parents
from (
    select path::text as path from topics
    cross join lateral (
        select count(*) as names, max(length(label)) as longest,
               bool_or(place = nlevel(topics.path)) as own
        from unnest(string_to_array(topics.path::text, '.')) with ordinality as level (label, place)
        where label = any (%(labels)s::text[])
    ) met
    where scope_id = %(scope_id)s and met.names > 0
    order by met.own desc, met.names desc, met.longest desc, path
    limit %(most_worded)s
) worded
