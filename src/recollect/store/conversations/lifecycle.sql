-- name: find
select conversations.scope_id, state, idle_since from conversations
join scopes on scopes.id = conversations.scope_id
where scopes.tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
  and conversations.id = %(conversation)s

-- name: change
-- A conversation that is being purged has no name any more.
update conversations
set state = %(state)s, changed_at = clock_timestamp(), synced = false, synced_number = 0,
    idle_since = case when %(state)s = 'active' then clock_timestamp() else idle_since end,
    name = case when %(state)s = 'purging' then '' else name end,
    metadata = case when %(state)s = 'purging' then '{}' else metadata end
where scope_id = %(scope_id)s and id = %(conversation)s

-- name: describe
update conversations
set name = coalesce(%(name)s, name), metadata = coalesce(%(metadata)s, metadata)
where scope_id = %(scope_id)s and id = %(conversation)s and state in ('active', 'archived')
returning id

-- name: begin_receipt
insert into purge_receipts (scope_id, id, conversation_id, asked_by)
values (%(scope_id)s, coalesce(%(receipt)s, gen_random_uuid()), %(conversation)s, %(asked_by)s)
returning scope_id, id, conversation_id

-- name: lock
select id from scopes where id = %(scope_id)s for no key update

-- name: unsynced
select id, state, synced_number from conversations
where scope_id = %(scope_id)s and not synced and (%(conversation)s::text is null or id = %(conversation)s)
order by changed_at, id
limit 1

-- name: count_unsynced
select count(*) as waiting from conversations
join messages on messages.scope_id = conversations.scope_id and messages.conversation_id = conversations.id
    and messages.number > conversations.synced_number
where conversations.scope_id = %(scope_id)s and not conversations.synced

-- name: chunk
select id, number from messages
where scope_id = %(scope_id)s and conversation_id = %(conversation)s and number > %(after)s
order by number
limit %(limit)s

-- name: earlier
-- Past and contested versions of the messages in a chunk.
select id from past_messages
where scope_id = %(scope_id)s and conversation_id = %(conversation)s and number > %(after)s and number <= %(last)s

-- name: every_message
select id from messages where scope_id = %(scope_id)s and conversation_id = %(conversation)s
union all
select id from past_messages where scope_id = %(scope_id)s and conversation_id = %(conversation)s

-- name: withhold
select withhold_memories(%(scope_id)s, %(ids)s::uuid[], 'archived')

-- name: hide
select withhold_memories(
    %(scope_id)s, %(ids)s::uuid[] || array(select derived_from(%(scope_id)s, %(ids)s::uuid[])), 'deleted')

-- name: restore
select restore_memories(%(scope_id)s, %(ids)s::uuid[]) as waiting

-- name: restore_derived
select restore_derived(%(scope_id)s, %(ids)s::uuid[]) as waiting

-- name: derived
-- All memories derived from these messages: their evidence, and whether it is in the same conversation.
select evidence.memory_id, evidence.source_id, messages.id is not null as purged
from derived_from(%(scope_id)s, %(ids)s::uuid[]) as derived (id)
join evidence on evidence.scope_id = %(scope_id)s and evidence.memory_id = derived.id
left join lateral (
    select id from messages
    where messages.scope_id = %(scope_id)s and messages.id = evidence.source_id
      and messages.conversation_id = %(conversation)s
    union all
    select id from past_messages past
    where past.scope_id = %(scope_id)s and past.id = evidence.source_id and past.conversation_id = %(conversation)s
) messages on true

-- name: erase
with erased as materialized (
    select erase_memories(%(scope_id)s, %(gone)s::uuid[], %(to_rederive)s::uuid[], %(lost)s::uuid[]) as removed
)
update purge_receipts
set removed = (
    select jsonb_object_agg(key, value::bigint + coalesce((purge_receipts.removed ->> key)::bigint, 0))
    from jsonb_each_text(erased.removed)
)
from erased
where scope_id = %(scope_id)s and conversation_id = %(conversation)s and erased_at is null

-- name: foresee_purge
select count_erasure(%(scope_id)s, %(gone)s::uuid[], %(to_rederive)s::uuid[], %(lost)s::uuid[]) as removed

-- name: foresee_deletion
with derived as materialized (select derived_from(%(scope_id)s, %(ids)s::uuid[]) as id)
select 'messages' as what, count(*) as memories from memories
where scope_id = %(scope_id)s and id = any (%(ids)s::uuid[]) and withheld is distinct from 'deleted'
union all
select 'derived', count(*) from memories join derived using (id)
where scope_id = %(scope_id)s and coalesce(withheld, '') not in ('deleted', 'to_rederive')

-- name: advance
update conversations set synced_number = %(number)s, synced = %(last)s
where scope_id = %(scope_id)s and id = %(conversation)s

-- name: close_purge
with closed as (
    delete from conversations where scope_id = %(scope_id)s and id = %(conversation)s
), freed as (
    delete from forgotten_messages where scope_id = %(scope_id)s and conversation_id = %(conversation)s
)
update purge_receipts
set erased_at = clock_timestamp(), finished_at = case when not exists (select from mirrors) then clock_timestamp() end
where scope_id = %(scope_id)s and conversation_id = %(conversation)s and erased_at is null

-- name: await_mirrors
select await_mirrors(scope_id, id) from purge_receipts
where scope_id = %(scope_id)s and conversation_id = %(conversation)s and erased_at is not null and finished_at is null

-- name: has_to_rederive
select exists (select from memories where scope_id = %(scope_id)s and withheld = 'to_rederive') as present

-- name: due
select scope_id, agent, "user", profile, id, state, last_number, idle_since, changed_at, now() as now
from due_conversations(
    %(archive_after_days)s, %(delete_after_days)s, %(purge_after_days)s, %(after_scope)s, %(after_id)s, %(limit)s)
order by scope_id, id

-- name: receipts_of_tenant
select latest.id, conversation_id as conversation, asked_by, removed, begun_at, erased_at, finished_at, mirrors,
       scopes.agent, scopes."user"
from receipts_before(%(before)s::timestamptz, %(before_id)s::uuid, %(limit)s) latest
join scopes on scopes.id = latest.scope_id
order by latest.begun_at desc, latest.id desc

-- name: receipts_of_scope
select receipts.id, conversation_id as conversation, asked_by, removed, begun_at, erased_at, finished_at, mirrors,
       %(agent)s as agent, %(user)s as "user"
from purge_receipts receipts
where receipts.scope_id = {this_scope}
  and (%(conversation)s = '' or conversation_id = %(conversation)s)
  and (receipts.begun_at, receipts.id) < (%(before)s::timestamptz, %(before_id)s::uuid)
order by receipts.begun_at desc, receipts.id desc
limit %(limit)s
