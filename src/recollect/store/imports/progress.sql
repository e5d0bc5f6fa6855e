-- name: standing
select id, state, metadata ? %(ours)s as kept from conversations
where scope_id = {this_scope}
  and id = any (%(conversations)s)

-- name: known
-- In the order of the index by external IDs: any other that starts with the scope would read far more.
select known.conversation_id, known.external_id, known.id
from unnest(%(conversations)s::text[]) as asked (id)
cross join lateral (
    select conversation_id, external_id, id from messages
    where scope_id = {this_scope}
      and conversation_id between asked.id and asked.id and external_id <> ''
    order by conversation_id, external_id
) known

-- name: keep
update conversations
set name = case when name = '' then %(name)s else name end,
    metadata = metadata || %(metadata)s,
    created_at = least(created_at, %(created_at)s)
where scope_id = {this_scope}
  and id = %(conversation)s and not metadata ? %(ours)s

-- name: arrived
select id, metadata -> %(ours)s ->> 'id' as key, metadata -> %(ours)s ->> 'hash' as hash from memories
where scope_id = {this_scope}
  and kind <> 'message' and metadata -> %(ours)s ? 'id'
order by id

-- name: newest
select id from memories
where scope_id = {this_scope}
order by id desc limit 1
