-- name: await_writers
-- Wait for a write that found this job waiting and therefore queued none.
select id from scopes where id = %(scope_id)s for no key update

-- name: running
-- A restored conversation is read only when all of it is restored.
select id, segmented_number, last_number, idle_since, clock_timestamp() as now from conversations
where scope_id = %(scope_id)s and running and state in ('active', 'archived') and synced
order by idle_since, id

-- name: running_of
select id, segmented_number, last_number, idle_since, clock_timestamp() as now from conversations
where scope_id = %(scope_id)s and id between %(conversation)s and %(conversation)s
  and running and state in ('active', 'archived') and synced
order by id limit 1

-- name: messages
-- In the order of the conversation.
select said.id, said.parent_id, said.turn_id, said.number, said.role, said.status, said.occurred_at, said.tokens,
       said.images, said.parts, said.attachments, said.external_id, memory.content, memory.speaker, memory.metadata,
       memory.withheld
from (
    select * from messages
    where scope_id = %(scope_id)s and conversation_id = %(conversation)s
      and number between %(first_number)s and %(last_number)s
    order by number
    limit %(limit)s
) said
cross join lateral (
    select content, speaker, metadata, withheld from memories
    where memories.scope_id = %(scope_id)s and memories.id between said.id and said.id
    order by memories.id limit 1
) memory
order by said.number

-- name: in_sight
-- The visible ones among them, in the same order.
select said.id
from (
    select id, number from messages
    where scope_id = %(scope_id)s and conversation_id = %(conversation)s
      and number between %(first_number)s and %(last_number)s
    order by number
    limit %(limit)s
) said
cross join lateral (
    select withheld from memories
    where memories.scope_id = %(scope_id)s and memories.id between said.id and said.id
    order by memories.id limit 1
) memory
where withheld is null or withheld = 'archived'
order by said.number

-- name: known
-- The entities with these names, those with most of the names first.
select entity_id from (
    select entity_id, normalised from mentions
    where scope_id = %(scope_id)s and normalised = any (array(select unnest(%(names)s::text[])))
    union
    select id, normalised from entities
    where scope_id = %(scope_id)s and normalised = any (array(select unnest(%(names)s::text[])))
) called
group by entity_id
order by count(*) desc, entity_id
limit %(limit)s

-- name: hold_running
-- No segment was closed since then; a new append comes after it.
select last_number from conversations
where scope_id = %(scope_id)s and id = %(conversation)s and segmented_number = %(segmented_number)s
  and state in ('active', 'archived') and synced
for no key update

-- name: close
insert into segments (scope_id, conversation_id, first_number, last_number, ending, similarity, label)
values (%(scope_id)s, %(conversation)s, %(after)s::bigint + 1, %(last_number)s, %(ending)s, %(similarity)s, %(label)s)

-- name: advance
update conversations set segmented_number = %(number)s where scope_id = %(scope_id)s and id = %(conversation)s

-- name: next
select segments.id, segments.conversation_id, segments.first_number, segments.last_number, segments.label,
       segments.attempts
from segments
join conversations on conversations.scope_id = segments.scope_id and conversations.id = segments.conversation_id
where segments.scope_id = %(scope_id)s and segments.state = 'closed'
  and conversations.state in ('active', 'archived') and conversations.synced
order by segments.closed_at, segments.first_number
limit 1

-- name: count_closed
select count(*) as waiting from segments where scope_id = %(scope_id)s and state = 'closed'

-- name: count_attempt
update segments set attempts = greatest(0, attempts + %(change)s)
where scope_id = %(scope_id)s and id = %(segment_id)s and state = 'closed'

-- name: extraction
select content from extractions
where scope_id = %(scope_id)s and segment_id = %(segment_id)s and run_id = %(run_id)s

-- name: keep_matches
update extractions set content = content || jsonb_build_object('matches', %(matches)s::jsonb)
where scope_id = %(scope_id)s and segment_id = %(segment_id)s and run_id = %(run_id)s

-- name: keep_extraction
-- Only while the segment is unchanged: forgotten text must not be stored again.
insert into extractions (scope_id, segment_id, run_id, model, prompt_version, content)
select scope_id, id, %(run_id)s, %(model)s, %(prompt_version)s, %(content)s from segments
where scope_id = %(scope_id)s and id = %(segment_id)s
  and (state = 'closed' or %(run_id)s <> '00000000-0000-0000-0000-000000000000'::uuid)
  and %(ids)s::uuid[] = array(
      select messages.id from messages
      where messages.scope_id = %(scope_id)s and conversation_id = segments.conversation_id
        and number between segments.first_number and segments.last_number and messages.id = any (%(ids)s::uuid[])
      order by number
  )
on conflict (scope_id, segment_id, run_id) do update
set model = excluded.model, prompt_version = excluded.prompt_version, content = excluded.content,
    made_at = clock_timestamp(), applied_at = null

-- name: lock_closed_segment
select segments.id from segments
join conversations on conversations.scope_id = segments.scope_id and conversations.id = segments.conversation_id
where segments.scope_id = %(scope_id)s and segments.id = %(segment_id)s and segments.state = 'closed'
  and conversations.state in ('active', 'archived') and conversations.synced
for update of segments

-- name: record_outcome
update segments
set state = %(state)s, reason = %(reason)s, label = %(label)s, enriched_at = clock_timestamp()
where scope_id = %(scope_id)s and id = %(segment_id)s

-- name: apply_extraction
insert into extractions (scope_id, segment_id, model, prompt_version, content, applied_at, summary_id)
values (%(scope_id)s, %(segment_id)s, '', '', '{}', clock_timestamp(), %(summary_id)s)
on conflict (scope_id, segment_id, run_id) do update
set applied_at = excluded.applied_at, summary_id = excluded.summary_id

-- name: add_belief
-- A summary is a belief like any other, without a valid time; its lineage is its segment.
insert into beliefs (scope_id, id, lineage, version, created_at)
select scope_id, id, %(segment_id)s,
       1 + coalesce((select max(version) from beliefs
                     where beliefs.scope_id = %(scope_id)s and lineage = %(segment_id)s), 0),
       created_at
from memories where scope_id = %(scope_id)s and id = %(summary_id)s

-- name: close_belief
with closed as (
    update beliefs set superseded_at = memories.created_at
    from memories
    where memories.scope_id = %(scope_id)s and memories.id = %(summary_id)s
      and beliefs.scope_id = %(scope_id)s and lineage = %(segment_id)s and superseded_at is null
    returning beliefs.id
)
select withhold_memories(%(scope_id)s, array_agg(id), 'past') from closed having count(*) > 0

-- name: newest_summary
-- The running summary of a conversation is that of its newest segment.
update conversations set summary_id = newest.summary_id
from (
    select extractions.summary_id from segments join extractions
        on extractions.scope_id = segments.scope_id and segment_id = segments.id
    where segments.scope_id = %(scope_id)s and conversation_id = %(conversation)s
      and applied_at is not null and extractions.summary_id is not null
    order by first_number desc, applied_at desc
    limit 1
) newest
where scope_id = %(scope_id)s and id = %(conversation)s

-- name: rate
update memories set importance = given.importance, importance_from = 'model'
from unnest(%(ids)s::uuid[], %(importances)s::real[]) as given (id, importance)
where scope_id = %(scope_id)s and memories.id = given.id and importance_from <> 'caller'

-- name: gather
-- Messages rated by their caller, and events, were added when they were written.
update scopes
set unreflected_importance = unreflected_importance + added.importance,
    unreflected_memories = unreflected_memories + added.memories
from (
    select coalesce(sum(importance), 0) as importance, count(*) as memories from memories
    where scope_id = %(scope_id)s and id = any (%(ids)s::uuid[]) and importance_from <> 'caller' and kind = 'message'
) added
where scopes.id = %(scope_id)s and added.memories > 0
  and not exists (
      select from extractions
      where scope_id = %(scope_id)s and segment_id = %(segment_id)s and applied_at is not null
  )
returning unreflected_importance as importance, unreflected_memories as memories

-- name: enter
-- Events in the order of writing, stored as a conversation without a name: each is separate.
with journal as (
    insert into conversations (scope_id, id, last_number, created_at, updated_at, changed_at)
    select %(scope_id)s, '', cardinality(%(ids)s::uuid[]), %(moment)s, %(moment)s, %(moment)s
    on conflict (scope_id, id) do update
    set last_number = conversations.last_number + excluded.last_number, updated_at = excluded.updated_at,
        idle_since = clock_timestamp()
    returning last_number
)
insert into messages (scope_id, id, conversation_id, number, turn_id, role, status, occurred_at, tokens)
select %(scope_id)s, given.id, '', last_number - cardinality(%(ids)s::uuid[]) + place, given.id, 'user', 'done',
       given.occurred_at, '{}'
from journal, unnest(%(ids)s::uuid[], %(moments)s::timestamptz[]) with ordinality as given (id, occurred_at, place)

-- name: page
select segments.id, conversation_id as conversation, first_number, last_number, ending, similarity, label, state,
       reason, closed_at, enriched_at, current.summary_id
from segments
left join lateral (
    select summary_id from extractions
    where extractions.scope_id = segments.scope_id and extractions.segment_id = segments.id and applied_at is not null
    order by applied_at desc
    limit 1
) current on true
where segments.scope_id = {this_scope}
  and conversation_id = %(conversation)s and first_number > %(after)s
order by first_number
limit %(limit)s
