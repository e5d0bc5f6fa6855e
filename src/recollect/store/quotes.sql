-- name: quotes
select id, coalesce(nullif(speaker, ''), said.role, '') as speaker, content, occurred_at
from memories
left join lateral (
    select messages.role from messages
    where messages.scope_id = memories.scope_id and messages.id between memories.id and memories.id
      and memories.kind = 'message'
    order by messages.id limit 1
) said on true
where scope_id = %(scope_id)s
  -- As a subquery, because the planner, seeing the ids themselves, would rather read the scope by time.
  and id = any (array(select unnest(%(ids)s::uuid[])))
  and (expires_at is null or expires_at > now())
  and (withheld is null or withheld = 'archived')
  -- A deleted conversation, and what was made from it, is out of sight at once; the indexes follow one by one.
  and (
      not (select exists (
          select from conversations
          where conversations.scope_id = %(scope_id)s and not settled and state in ('deleted', 'purging')
      ))
      or not rests_on_deleted(memories.scope_id, memories.id)
  )
order by id
