-- name: ensure
-- From the root down; an existing topic keeps its first name.
insert into topics (scope_id, path, name)
select %(scope_id)s, path::ltree, name from unnest(%(paths)s::text[], %(names)s::text[]) as given (path, name)
on conflict (scope_id, path) do nothing

-- name: link
insert into topic_links
    (scope_id, topic_id, memory_id, activation, diffusion, independence, occurred_at, kind, trust, withheld_for)
select %(scope_id)s, topic.id, memory.id, given.activation, given.diffusion, given.independence,
       coalesce(given.occurred_at, memory.occurred_at), memory.kind, memory.trust, memory.withheld
from unnest(
    %(paths)s::text[], %(memory_ids)s::uuid[], %(activations)s::float8[], %(diffusions)s::float8[],
    %(independences)s::float8[], %(moments)s::timestamptz[]
) with ordinality as given (path, memory_id, activation, diffusion, independence, occurred_at, place)
join topics_at(%(scope_id)s, %(paths)s::text[]) topic on topic.place = given.place
join (
    select id, kind, trust, withheld, occurred_at from memories
    where scope_id = %(scope_id)s and id = any (array(select unnest(%(memory_ids)s::uuid[])))
    offset 0
) memory on memory.id = given.memory_id
on conflict (scope_id, topic_id, memory_id) do update
set activation = excluded.activation, diffusion = excluded.diffusion, independence = excluded.independence,
    occurred_at = excluded.occurred_at

-- name: relate
-- After the existing links. No topic leads to itself.
insert into related_topics (scope_id, topic_id, memory_id, related_id, place)
select %(scope_id)s, topic.id, given.memory_id, related.id,
       last_place(%(scope_id)s, topic.id, given.memory_id) + given.place
from unnest(%(paths)s::text[], %(memory_ids)s::uuid[], %(related)s::text[])
    with ordinality as given (path, memory_id, related, place)
join topics_at(%(scope_id)s, %(paths)s::text[]) topic on topic.place = given.place
join topics_at(%(scope_id)s, %(related)s::text[]) related on related.place = given.place
where topic.id <> related.id
order by given.place
on conflict do nothing

-- name: present
-- Memories that a caller may file: visible ones.
select id from memories
where scope_id = %(scope_id)s and id = any (array(select unnest(%(ids)s::uuid[])))
  and (withheld is null or withheld in ('archived', 'faded', 'past'))
  and (not {any_deleted_here} or not rests_on_deleted(scope_id, id))

-- name: unlink
delete from topic_links
where scope_id = %(scope_id)s and memory_id = any (%(ids)s::uuid[])
  and topic_id in (select id from topics_at(%(scope_id)s, array[%(path)s]))
returning memory_id

-- name: tidy
select tidy_topics(%(scope_id)s, array(select id from topics_at(%(scope_id)s, %(paths)s::text[])))

-- name: at
select place from topics_at(%(scope_id)s, %(paths)s::text[])

-- name: deepest
-- The length of the longest path below one, in letters and in levels.
select coalesce(max(length(path::text)), 0) as letters, coalesce(max(nlevel(path)), 0) as levels from topics
where scope_id = %(scope_id)s
  and id = any (array(select topics_below(%(scope_id)s, %(path)s)) || array(
      select id from topics_at(%(scope_id)s, array[%(path)s])))

-- name: replant
select replant_topics(%(scope_id)s, %(path)s, %(new_path)s)

-- name: name
update topics set name = %(name)s
where scope_id = %(scope_id)s and id in (select id from topics_at(%(scope_id)s, array[%(path)s]))

-- name: tree
select path, name, memories, seen, activation, newest_at from list_topics(%(scope_id)s, %(paths)s::text[], {allowed})

-- name: links
-- The memories of a topic, or the topics of one memory, newest first.
with unsynced as materialized (
    select exists (
        select from conversations
        where scope_id = %(scope_id)s and not synced and state in ('deleted', 'purging')
    ) as any_left
), asked as materialized (
    select link.* from topic_links link
    where link.scope_id = %(scope_id)s{filter}
      and (%(memory_id)s::uuid is null or link.memory_id = %(memory_id)s::uuid)
      and (%(path)s = '' or link.topic_id = any (array(select id from topics_at(%(scope_id)s, array[%(path)s]))))
      and (withheld_for is null or withheld_for in ('archived', 'faded'))
      and (not (select any_left from unsynced) or not rests_on_deleted(scope_id, memory_id))
    order by occurred_at desc, memory_id, topic_id
    limit %(limit)s
)
select asked.memory_id, asked.occurred_at, asked.activation, asked.diffusion, asked.independence,
       names_of(%(scope_id)s, asked.topic_id) as names,
       array(
           select array_to_string(names_of(%(scope_id)s, named.related_id), %(arrow)s)
           from (
               -- Between, here and below: only the key has the order of a range.
               select related_id, place from related_topics
               where related_topics.scope_id = %(scope_id)s
                 and related_topics.topic_id between asked.topic_id and asked.topic_id
                 and related_topics.memory_id between asked.memory_id and asked.memory_id
               order by related_topics.topic_id, related_topics.memory_id, related_id
               limit 1000
           ) named
           order by named.place, named.related_id
       ) as related
from asked
order by asked.occurred_at desc, asked.memory_id, asked.topic_id

-- name: related
with unsynced as materialized (
    select exists (
        select from conversations
        where scope_id = %(scope_id)s and not synced and state in ('deleted', 'purging')
    ) as any_left
), own as materialized (
    select topic_id, memory_id, diffusion from topic_links
    where scope_id = %(scope_id)s and topic_id = any (array(select id from topics_at(%(scope_id)s, array[%(path)s])))
      and withheld_for is null
      and (not (select any_left from unsynced) or not rests_on_deleted(scope_id, memory_id))
), summed as materialized (
    select named.related_id, max(own.diffusion) as diffusion, count(*) as links
    from own cross join lateral (
        select related_id from related_topics
        where scope_id = %(scope_id)s and topic_id between own.topic_id and own.topic_id
          and memory_id between own.memory_id and own.memory_id
        order by topic_id, memory_id, related_id
        limit 1000
    ) named
    group by named.related_id
)
select names_of(%(scope_id)s, related_id) as names, diffusion, links from summed
order by diffusion desc, links desc, names
limit %(limit)s
