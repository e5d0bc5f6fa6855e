-- name: read
-- Shown memories that still take part in recall; others are not shown again, and keep their short IDs.
select shown_memories.memory_id, shown_memories.short_id, shown_memories.score, shown_memories.computed_at, memory.withheld is null as in_sight
from shown_memories
cross join lateral (
    select withheld from memories
    where memories.scope_id = %(scope_id)s and memories.id between shown_memories.memory_id and shown_memories.memory_id
    order by memories.id limit 1
) memory
where shown_memories.scope_id = %(scope_id)s and shown_memories.conversation_id = %(conversation)s
order by shown_memories.memory_id

-- name: state
select state from conversations
where scope_id = %(scope_id)s and id between %(conversation)s and %(conversation)s
order by id limit 1

-- name: save
-- Nothing for a conversation that is being deleted, and no deleted memory.
insert into shown_memories (scope_id, conversation_id, memory_id, short_id, score, computed_at)
select %(scope_id)s, %(conversation)s, given.id, given.short_id, given.score, given.computed_at
from unnest(%(ids)s::uuid[], %(short_ids)s::text[], %(scores)s::double precision[], %(moments)s::timestamptz[])
    as given (id, short_id, score, computed_at)
where given.id = any (array(
        select id from memories
        where scope_id = %(scope_id)s and id = any (array(select unnest(%(ids)s::uuid[])))
    ))
    and not exists (
        select from conversations
        where scope_id = %(scope_id)s and id between %(conversation)s and %(conversation)s
          and state in ('deleted', 'purging')
    )
order by given.id
on conflict (scope_id, conversation_id, memory_id) do update
set short_id = excluded.short_id, score = excluded.score, computed_at = excluded.computed_at

-- name: resolve
select memory_id from shown_memories
where scope_id = %(scope_id)s and conversation_id = %(conversation)s and short_id = %(short_id)s
  and not exists (
      select from conversations
      where scope_id = %(scope_id)s and id between %(conversation)s and %(conversation)s
        and state in ('deleted', 'purging')
  )
order by memory_id limit 1

-- name: ending
-- IDs are random at their end, so no index helps: only the IDs of the scope are read, all of them.
select id from memories
where scope_id = %(scope_id)s and right(replace(id::text, '-', ''), %(length)s) = %(tail)s
limit 2
