-- A row is looked up as `id between x and x order by id limit 1`, because only its key has that order. For `id = x` the
-- planner assumes that any index that starts with the scope is as good, and may read the whole conversation.

-- name: open
-- An append locks the scope, so no other append comes between; the lock prevents a change of state.
select state, last_number, newest.id as newest_id, newest.turn_id as newest_turn,
       unbranched.id as unbranched_id, unbranched.turn_id as unbranched_turn,
       exists (select from forgotten_messages forgotten where forgotten.scope_id = conversation.scope_id
               and conversation_id = conversation.id and external_hash = any (%(hashes)s::bytea[])) as was_forgotten
from (
    select scope_id, id, state, last_number from conversations
    where scope_id = {this_scope}
      and id between %(conversation)s and %(conversation)s
    order by id limit 1
    for no key update
) conversation
left join lateral (
    select messages.id, messages.turn_id from messages
    where messages.scope_id = conversation.scope_id and conversation_id = conversation.id
    order by number desc limit 1
) newest on true
left join lateral (
    select messages.id, messages.turn_id from messages
    where messages.scope_id = conversation.scope_id and conversation_id = conversation.id
      and stated_parent = '00000000-0000-0000-0000-000000000000'
    order by number desc limit 1
) unbranched on true

-- name: repeated
-- All versions of messages by their external IDs, the current one first.
select version.*, said.content, said.speaker, said.metadata
from unnest(%(external_ids)s::text[]) as asked (external_id)
cross join lateral (
    select messages.* from messages
    where scope_id = {this_scope} and conversation_id between %(conversation)s and %(conversation)s
      and messages.external_id between asked.external_id and asked.external_id and messages.external_id <> ''
    order by conversation_id, messages.external_id limit 1
) shown
cross join lateral (
    select shown.* union all select past.* from past_messages past
    where past.scope_id = shown.scope_id and past.conversation_id = shown.conversation_id and past.number = shown.number
) version
cross join lateral (
    select content, speaker, metadata from memories
    where memories.scope_id = shown.scope_id and memories.id between version.id and version.id
    order by memories.id limit 1
) said
order by shown.number, version.id = shown.id desc

-- name: forgotten
select external_hash, id from forgotten_messages
where scope_id = {this_scope} and conversation_id = %(conversation)s and external_hash = any (%(hashes)s::bytea[])

-- name: anchors
-- A message is also named by an earlier version of it.
select named.id as asked, anchor.id, anchor.turn_id
from unnest(%(ids)s::uuid[]) as named (id)
cross join lateral (
    (
        select messages.id, messages.turn_id, messages.conversation_id from messages
        where messages.scope_id = {this_scope}
          and messages.id between named.id and named.id
        order by messages.id limit 1
    )
    union all
    (
        select messages.id, messages.turn_id, messages.conversation_id
        from past_messages past join messages on messages.scope_id = past.scope_id
            and messages.conversation_id = past.conversation_id and messages.number = past.number
        where past.scope_id = {this_scope} and past.id = named.id
    )
    limit 1
) anchor
where anchor.conversation_id = %(conversation)s

-- name: store_messages
insert into messages
    (scope_id, id, conversation_id, number, parent_id, turn_id, role, status, occurred_at, tokens, images, parts,
     attachments, external_id, stated_parent)
select %(scope_id)s, id, %(conversation)s, number, parent_id, turn_id, role, status, occurred_at, tokens, images,
       nullif(parts, '[]'), nullif(attachments, '[]'), external_id, stated_parent
from json_to_recordset(%(rows)s::json) as given (
    id uuid, number bigint, parent_id uuid, turn_id uuid, role text, status text, occurred_at timestamptz, tokens jsonb,
    images smallint, parts jsonb, attachments jsonb, external_id text, stated_parent uuid
)

-- name: close
insert into conversations (scope_id, id, last_number, created_at, updated_at, changed_at)
values (%(scope_id)s, %(conversation)s, %(last_number)s, %(begun_at)s, %(updated_at)s, %(begun_at)s)
on conflict (scope_id, id) do update
set last_number = excluded.last_number,
    updated_at = greatest(conversations.updated_at, excluded.updated_at),
    idle_since = excluded.idle_since,
    synced = conversations.synced and conversations.state = 'active',
    synced_number = case when conversations.state = 'active' then conversations.synced_number else 0 end,
    changed_at = case when conversations.state = 'active' then conversations.changed_at else clock_timestamp() end,
    state = 'active'

-- name: appended
select found.id, found.number, found.parent_id, found.tokens
from unnest(%(ids)s::uuid[]) as named (id)
cross join lateral (
    select messages.id, messages.number, messages.parent_id, messages.tokens from messages
    where messages.scope_id = {this_scope}
      and messages.id between named.id and named.id
    order by messages.id limit 1
) found

-- name: find
select id, name, state, last_number, created_at, updated_at, changed_at, metadata
from conversations
where scope_id = {this_scope}
  and id between %(conversation)s and %(conversation)s and state = any (%(states)s)
order by id limit 1

-- name: page
-- Hour by hour, as in the index: the last hour is read completely, and sorted.
select id, name, state, last_number, created_at, updated_at, changed_at, metadata
from (
    select id, name, state, last_number, created_at, updated_at, changed_at, metadata
    from conversations
    where scope_id = {this_scope}
      and id <> '' and state = any (%(states)s)
      and (updated_at, id) < (%(before)s::timestamptz, %(before_id)s)
      and updated_hour <= %(before)s::timestamptz at time zone 'UTC'
    order by updated_hour desc
    fetch first (%(limit)s) rows with ties
) newest
order by updated_at desc, id desc
limit %(limit)s

-- name: messages_now
messages

-- name: messages_then
-- With arguments that do not change, it is called once.
messages_as_of((select scope_id from place), (select id from place), %(before)s::uuid, %(as_of)s::timestamptz)

-- name: leaf_now
-- A leaf may be named by an earlier version of it.
coalesce((
    select messages.id from past_messages past join messages using (scope_id, conversation_id, number)
    where past.scope_id = (select scope_id from place) and past.id = %(leaf)s
), %(leaf)s)

-- name: leaf_then
(
    select messages.id
    from messages_as_of((select scope_id from place), (select id from place), %(before)s::uuid, %(as_of)s::timestamptz)
        messages
    where messages.number = message_number((select scope_id from place), %(leaf)s)
)

-- name: walk
-- From the leaf to the root, one index lookup for each message, until the budget is spent and a turn has begun. Last
-- turns without an answer cost nothing, because they are omitted: the answer of a turn is an assistant's last message
-- that is done, unless it calls a tool; a system's message needs no answer.
with recursive place as materialized {open_place}, chosen (id) as materialized (
    select case when %(leaf)s::uuid is not null then {leaf} else (
        select messages.id from {messages} messages
        where messages.scope_id = (select scope_id from place) and conversation_id = (select id from place)
          and (%(before)s::uuid is null or messages.id < %(before)s::uuid)
          and (%(at)s::timestamptz is null or messages.occurred_at <= %(at)s::timestamptz)
        order by number desc limit 1
    ) end
), leaf as (
    select message.* from (
        select messages.* from {messages} messages
        where messages.scope_id = (select scope_id from place)
          and messages.id between (select id from chosen) and (select id from chosen)
        order by messages.id limit 1
    ) message
    where message.conversation_id = (select id from place)
      and (%(before)s::uuid is null or message.id < %(before)s::uuid)
      and (%(at)s::timestamptz is null or message.occurred_at <= %(at)s::timestamptz)
), walked as (
    select leaf.id, leaf.parent_id, leaf.turn_id, leaf.number, leaf.role, leaf.status, leaf.occurred_at, leaf.tokens,
           leaf.images, leaf.parts, leaf.attachments, leaf.external_id, judged.counts,
           answer.given and answer.calls as calls,
           case when judged.counts then 0 else priced.cost end as unanswered,
           case when judged.counts then priced.cost else 0 end as spent,
           case when judged.counts and leaf.id = leaf.turn_id then 1 else 0 end as turns
    from leaf
    cross join lateral (
        select coalesce((leaf.tokens ->> %(tokenizer)s)::bigint, (leaf.tokens ->> 'estimate')::bigint, 0)
               + leaf.images * %(image_tokens)s::bigint as cost
    ) priced
    cross join lateral (
        select leaf.role = 'assistant' and leaf.status = 'done' as given,
               coalesce(leaf.parts @> '[{"type": "tool_call"}]', false) as calls
    ) answer
    cross join lateral (
        select %(unanswered)s or leaf.role = 'system' or (answer.given and not answer.calls) as counts
    ) judged
    union all
    select parent.id, parent.parent_id, parent.turn_id, parent.number, parent.role, parent.status, parent.occurred_at,
           parent.tokens, parent.images, parent.parts, parent.attachments, parent.external_id, judged.counts,
           (turn.goes_on and walked.calls) or (answer.given and answer.calls),
           case when judged.counts then 0 else priced.cost + turn.unanswered end,
           walked.spent + case when judged.counts then priced.cost + turn.unanswered else 0 end,
           walked.turns + case when judged.counts and parent.id = parent.turn_id then 1 else 0 end
    from walked
    cross join lateral (
        select messages.* from {messages} messages
        where messages.scope_id = (select scope_id from place) and messages.id between walked.parent_id and walked.parent_id
          and messages.number < walked.number
        order by messages.id limit 1
    ) parent
    cross join lateral (
        select coalesce((parent.tokens ->> %(tokenizer)s)::bigint, (parent.tokens ->> 'estimate')::bigint, 0)
               + parent.images * %(image_tokens)s::bigint as cost
    ) priced
    cross join lateral (
        select parent.turn_id = walked.turn_id as goes_on,
               case when parent.turn_id = walked.turn_id then walked.unanswered else 0 end as unanswered
    ) turn
    cross join lateral (
        select parent.role = 'assistant' and parent.status = 'done' as given,
               coalesce(parent.parts @> '[{"type": "tool_call"}]', false) as calls
    ) answer
    cross join lateral (
        select walked.counts
               or (parent.role = 'system' and not turn.goes_on)
               or (answer.given and not answer.calls and not (turn.goes_on and walked.calls)) as counts
    ) judged
    where walked.spent <= %(budget)s or walked.turns = 0
)
select walked.id, walked.parent_id, walked.turn_id, walked.number, walked.role, walked.status, walked.occurred_at,
       walked.tokens, walked.images, walked.parts, walked.attachments, walked.external_id, said.content, said.speaker,
       said.metadata
from walked
cross join lateral (
    select content, speaker, metadata from memories
    where memories.scope_id = (select scope_id from place) and memories.id between walked.id and walked.id
    order by memories.id limit 1
) said
order by walked.number desc

-- name: count_thread
-- From a message to the root, one index lookup for each; no text is read.
with recursive place as materialized {open_place}, walked as (
    select leaf.id, leaf.parent_id, leaf.turn_id, leaf.number, leaf.tokens, leaf.images, 1 as steps
    from (
        select messages.* from {messages} messages
        where messages.scope_id = (select scope_id from place) and messages.id between %(leaf)s and %(leaf)s
        order by messages.id limit 1
    ) leaf
    where leaf.conversation_id = (select id from place)
    union all
    select parent.id, parent.parent_id, parent.turn_id, parent.number, parent.tokens, parent.images, walked.steps + 1
    from walked cross join lateral (
        select messages.* from {messages} messages
        where messages.scope_id = (select scope_id from place) and messages.id between walked.parent_id and walked.parent_id
          and messages.number < walked.number
        order by messages.id limit 1
    ) parent
    where walked.steps < %(most)s
)
select count(*) filter (where id = turn_id) as turns, coalesce(sum(
           coalesce((tokens ->> %(tokenizer)s)::bigint, (tokens ->> 'estimate')::bigint, 0)
           + images * %(image_tokens)s::bigint
       ), 0) as tokens
from walked

-- name: turns
-- The newest questions as Dify orders them, each with its newest answer.
with place as materialized {open_place}, head as materialized (
    select messages.* from {messages} messages
    where scope_id = (select scope_id from place) and conversation_id = (select id from place) and role = 'user'
      and (%(before)s::uuid is null or messages.id < %(before)s::uuid)
      and (%(at)s::timestamptz is null or messages.occurred_at <= %(at)s::timestamptz)
    order by occurred_at desc, number desc
    limit %(limit)s
), answer as (
    select newest.*
    from head cross join lateral (
        select messages.* from {messages} messages
        where scope_id = (select scope_id from place) and parent_id between head.id and head.id and role = 'assistant'
          and (%(before)s::uuid is null or messages.id < %(before)s::uuid)
          and (%(at)s::timestamptz is null or messages.occurred_at <= %(at)s::timestamptz)
        order by parent_id, number desc limit 1
    ) newest
), shown as (
    select * from head union all select * from answer
)
select shown.id, shown.parent_id, shown.turn_id, shown.number, shown.role, shown.status, shown.occurred_at,
       shown.tokens, shown.images, shown.parts, shown.attachments, shown.external_id, shown.stated_parent,
       followed.turn_id as parent_turn, said.content, said.speaker, said.metadata
from shown
cross join lateral (
    select content, speaker, metadata from memories
    where memories.scope_id = (select scope_id from place) and memories.id between shown.id and shown.id
    order by memories.id limit 1
) said
left join lateral (
    select messages.turn_id from {messages} messages
    where messages.scope_id = (select scope_id from place) and messages.id between shown.parent_id and shown.parent_id
    order by messages.id limit 1
) followed on true
order by shown.occurred_at desc, shown.number desc

-- name: numbered
with place as materialized {open_place}, shown as materialized (
    select * from messages
    where scope_id = (select scope_id from place) and conversation_id = (select id from place) and number > %(after)s
    order by number limit %(limit)s
)
select shown.id, shown.parent_id, shown.turn_id, shown.number, shown.role, shown.status, shown.occurred_at,
       shown.tokens, shown.images, shown.parts, shown.attachments, shown.external_id, said.content, said.speaker,
       said.metadata
from shown
cross join lateral (
    select content, speaker, metadata from memories
    where memories.scope_id = (select scope_id from place) and memories.id between shown.id and shown.id
    order by memories.id limit 1
) said
order by shown.number

-- name: leaves
with place as materialized {open_place}, leaf as materialized (
    select messages.id, messages.number, messages.role, messages.occurred_at from messages
    where messages.scope_id = (select scope_id from place) and messages.conversation_id = (select id from place)
      -- Not as `not exists`, which would be joined with the whole conversation.
      and (
          select child.number from messages child
          where child.scope_id = (select scope_id from place) and child.parent_id between messages.id and messages.id
          order by child.parent_id limit 1
      ) is null
    order by messages.number desc
    limit %(limit)s
)
select leaf.id, leaf.number, leaf.role, leaf.occurred_at, left(said.content, 200) as content
from leaf
cross join lateral (
    select content from memories
    where memories.scope_id = (select scope_id from place) and memories.id between leaf.id and leaf.id
    order by memories.id limit 1
) said
order by leaf.number desc

-- name: summary
select summary_id from conversations
where scope_id = {this_scope}
  and id between %(conversation)s and %(conversation)s and summary_id is not null
order by id limit 1

-- name: summary_then
-- The newest summary of the conversation's messages that was believed at that time.
select evidence.memory_id as summary_id from evidence
join memories on memories.scope_id = evidence.scope_id and memories.id = evidence.memory_id
left join beliefs on beliefs.scope_id = evidence.scope_id and beliefs.id = evidence.memory_id
where evidence.scope_id = {this_scope}
  and evidence.source_id = any (array(
      select messages.id from messages
      where messages.scope_id = {this_scope}
        and messages.conversation_id = %(conversation)s
      union all
      select past.id from past_messages past
      where past.scope_id = {this_scope} and past.conversation_id = %(conversation)s
  ))
  and memories.kind = 'summary'
  and (%(before)s::uuid is null or evidence.memory_id < %(before)s::uuid)
  and (%(at)s::timestamptz is null or memories.occurred_at <= %(at)s::timestamptz)
  and (beliefs.superseded_at is null or beliefs.superseded_at > %(as_of)s::timestamptz)
order by evidence.memory_id desc
limit 1
