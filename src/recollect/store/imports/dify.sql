-- name: columns
select table_name, column_name from information_schema.columns
where table_schema = any (current_schemas(false)) and table_name = any (%(tables)s)

-- name: count
with chosen as materialized (
    select conversations.id from conversations
    where (%(app)s::uuid is null or conversations.app_id = %(app)s)
      and (%(since)s::timestamp is null or exists (
          select from messages recent where recent.conversation_id = conversations.id and recent.created_at >= %(since)s
      ))
)
select (select count(*) from chosen) as conversations,
       (select count(*) from messages join chosen on chosen.id = messages.conversation_id) as turns

-- name: count_files
select count(*) as files
from message_files join messages on messages.id = message_files.message_id
join conversations on conversations.id = messages.conversation_id
where (%(app)s::uuid is null or conversations.app_id = %(app)s)
  and (%(since)s::timestamp is null or exists (
      select from messages recent where recent.conversation_id = conversations.id and recent.created_at >= %(since)s
  ))

-- name: conversations
select conversations.id::text as id, conversations.app_id::text as app, conversations.mode, conversations.name, conversations.inputs, conversations.created_at,
       coalesce({is_deleted}, false) as deleted, conversations.from_source as source, {invoke_from} as invoked_from,
       conversations.from_end_user_id::text as end_user, conversations.from_account_id::text as account, {session} as session
from conversations
where (%(app)s::uuid is null or conversations.app_id = %(app)s)
  and (%(since)s::timestamp is null or exists (
      select from messages recent where recent.conversation_id = conversations.id and recent.created_at >= %(since)s
  ))
order by conversations.created_at, conversations.id

-- name: session
(select end_users.session_id from end_users where end_users.id = conversations.from_end_user_id)

-- name: outlines
select turn.id::text as id, {parent_message_id} as parent,
       coalesce(octet_length(turn.query), 0) + coalesce(octet_length(turn.answer), 0) as octets
from messages turn
where turn.conversation_id = %(conversation)s
order by turn.created_at, turn.id

-- name: exchanges
select turn.id::text as id,
       coalesce(left(turn.query, %(longest)s), '') as query, coalesce(length(turn.query), 0) as query_length,
       coalesce(left(turn.answer, %(longest)s), '') as answer, coalesce(length(turn.answer), 0) as answer_length,
       coalesce(turn.answer_tokens, 0) as answer_tokens, coalesce({status}, 'normal') as status,
       left({error}, 500) as error, turn.created_at
from messages turn
where turn.id = any (%(ids)s)

-- name: files
select file.message_id::text as message, file.type, {transfer_method} as method, left(file.url, 8001) as url,
       file.upload_file_id::text as upload, {belongs_to} as side, {name} as name
from message_files file
where file.message_id = any (%(ids)s)
order by file.created_at, file.id

-- name: name
(select upload_files.name from upload_files where upload_files.id = file.upload_file_id)

-- name: answered
update messages set status = 'done'
where scope_id = {this_scope}
  and conversation_id = %(conversation)s and id = any (%(ids)s)
