-- name: standing
select state, metadata ? %(ours)s as kept from conversations
where scope_id = {this_scope}
  and id = %(conversation)s

-- name: known
select external_id, id from messages
where scope_id = {this_scope}
  and conversation_id = %(conversation)s and external_id <> ''

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
