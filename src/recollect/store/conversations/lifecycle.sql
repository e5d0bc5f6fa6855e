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

-- name: begin_receipt
insert into purge_receipts (scope_id, conversation_id, asked_by) values (%(scope_id)s, %(conversation)s, %(asked_by)s)

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
-- Of all that was derived from these messages: its evidence, and whether that is of the same conversation.
select evidence.memory_id, evidence.source_id, messages.id is not null as purged
from derived_from(%(scope_id)s, %(ids)s::uuid[]) as derived (id)
join evidence on evidence.scope_id = %(scope_id)s and evidence.memory_id = derived.id
left join messages on messages.scope_id = %(scope_id)s and messages.id = evidence.source_id
    and messages.conversation_id = %(conversation)s

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
where scope_id = %(scope_id)s and conversation_id = %(conversation)s and finished_at is null

-- name: advance
update conversations set synced_number = %(number)s, synced = %(last)s
where scope_id = %(scope_id)s and id = %(conversation)s

-- name: close_purge
with closed as (
    delete from conversations where scope_id = %(scope_id)s and id = %(conversation)s
)
update purge_receipts set finished_at = clock_timestamp()
where scope_id = %(scope_id)s and conversation_id = %(conversation)s and finished_at is null

-- name: receipts
select id, conversation_id, asked_by, removed, begun_at, finished_at from purge_receipts
where scope_id = {this_scope}
  and (%(conversation)s = '' or conversation_id = %(conversation)s)
order by begun_at desc, id
limit %(limit)s

-- name: has_to_rederive
select exists (select from memories where scope_id = %(scope_id)s and withheld = 'to_rederive') as present

-- name: scopes_unsynced
select distinct scope_id from conversations
where scope_id between first_scope() and last_scope() and not synced

-- name: scopes_to_rederive
select distinct scope_id from memories
where scope_id between first_scope() and last_scope() and withheld = 'to_rederive'

-- name: due
-- One index lookup for each scope and state: what is not due is not read.
with chosen as materialized (
    select scopes.id as scope_id, scopes.agent, scopes."user", agents.profile,
           coalesce((agents.profile ->> 'archive_after_days')::float8, %(archive_after_days)s) as archive_days,
           coalesce((agents.profile ->> 'delete_after_days')::float8, %(delete_after_days)s) as delete_days,
           coalesce((agents.profile ->> 'purge_after_days')::float8, %(purge_after_days)s) as purge_days
    from scopes left join agents on agents.tenant_id = scopes.tenant_id and agents.agent = scopes.agent
    where scopes.tenant_id = current_tenant() and scopes.id >= %(after_scope)s
)
select chosen.scope_id, chosen.agent, chosen."user", chosen.profile, found.id, found.state, found.last_number,
       found.idle_since, found.changed_at, now() as now
from chosen cross join lateral (
    select now() - case when archive_days > 0 then archive_days end * interval '1 day' as archived,
           now() - case when delete_days > 0 then delete_days end * interval '1 day' as deleted
) idle cross join lateral (
    select id, state, last_number, idle_since, changed_at from conversations
    where conversations.scope_id = chosen.scope_id and state = 'active'
      and idle_day <= (greatest(idle.archived, idle.deleted) at time zone 'UTC')::date
      and idle_since <= greatest(idle.archived, idle.deleted)
    union all
    select id, state, last_number, idle_since, changed_at from conversations
    where conversations.scope_id = chosen.scope_id and state = 'archived'
      and idle_day <= (idle.deleted at time zone 'UTC')::date and idle_since <= idle.deleted
    union all
    select id, state, last_number, idle_since, changed_at from conversations
    where conversations.scope_id = chosen.scope_id and state = 'deleted'
      and changed_at <= now() - case when purge_days > 0 then purge_days end * interval '1 day'
) found
where (chosen.scope_id, found.id) > (%(after_scope)s, %(after_id)s)
order by chosen.scope_id, found.id
limit %(limit)s
