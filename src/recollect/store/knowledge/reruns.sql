-- name: scopes
-- No agent means all scopes of the tenant, no user all of the agent's.
select id, agent, "user" from scopes
where tenant_id = current_tenant() and {not_erased} and (%(agent)s = '' or agent = %(agent)s)
  and (%(user)s::text is null or "user" = %(user)s)
order by agent, "user"

-- name: segments
-- What can be read again, in the order in which it was said.
select segments.id, segments.conversation_id, segments.first_number, segments.last_number, segments.label,
       segments.attempts,
       exists (
           select from extractions
           where extractions.scope_id = %(scope_id)s and segment_id = segments.id and run_id = %(run_id)s
       ) as kept
from segments
join conversations on conversations.scope_id = segments.scope_id and conversations.id = segments.conversation_id
cross join lateral (
    select max(occurred_at) as last_at from messages
    where messages.scope_id = segments.scope_id and messages.conversation_id = segments.conversation_id
      and number between segments.first_number and segments.last_number
) said
where segments.scope_id = %(scope_id)s and conversations.state in ('active', 'archived') and conversations.synced
  and (%(since)s::timestamptz is null or said.last_at >= %(since)s) and said.last_at is not null
order by said.last_at, segments.conversation_id, segments.first_number

-- name: unsegmented
-- Conversations that begin with messages from before there were segments.
select conversations.id, 0::bigint as segmented_number, early.last_number, idle_since, clock_timestamp() as now
from conversations
cross join lateral (
    select coalesce(min(segments.first_number) - 1, conversations.segmented_number) as last_number from segments
    where segments.scope_id = conversations.scope_id and segments.conversation_id = conversations.id
) early
where conversations.scope_id = %(scope_id)s and conversations.state in ('active', 'archived') and conversations.synced
  and exists (
      select from messages
      where messages.scope_id = conversations.scope_id and messages.conversation_id = conversations.id
        and number <= early.last_number and (%(since)s::timestamptz is null or occurred_at >= %(since)s)
  )
order by conversations.id

-- name: hold_conversation
select id from conversations
where scope_id = %(scope_id)s and id = %(conversation)s and state in ('active', 'archived') and synced
for no key update

-- name: cut
-- Unless the same stretch was cut meanwhile.
insert into segments (scope_id, conversation_id, first_number, last_number, ending, similarity, label, state)
select %(scope_id)s, %(conversation)s, %(after)s::bigint + 1, %(last_number)s, %(ending)s, %(similarity)s, %(label)s,
       'cut'
where not exists (
    select from segments
    where scope_id = %(scope_id)s and conversation_id = %(conversation)s
      and first_number <= %(last_number)s and last_number > %(after)s::bigint
)

-- name: find
select id, begun_at from runs
where scope_id = %(scope_id)s and model = %(model)s and prompt_version = %(prompt_version)s
  and since is not distinct from %(since)s and state = 'building'
order by begun_at desc limit 1

-- name: begin
insert into runs (scope_id, model, prompt_version, since)
values (%(scope_id)s, %(model)s, %(prompt_version)s, %(since)s)
returning id

-- name: past
-- What questions of enrichment cost the tenant so far.
select coalesce(sum(calls) filter (where step = 'summarise'), 0)::bigint as segments,
       coalesce(sum(prompt_tokens) filter (where step = 'resolve'), 0)::bigint as prompt_tokens,
       coalesce(sum(completion_tokens), 0)::bigint as completion_tokens
from ledger
where scope_id between first_scope() and last_scope() and step in ('summarise', 'resolve') and model <> ''
  and outcome in ('answered', 'partial')

-- name: clock
select clock_timestamp() as now

-- name: spent
select count(*) as calls, coalesce(sum(prompt_tokens), 0)::bigint as prompt_tokens,
       coalesce(sum(completion_tokens), 0)::bigint as completion_tokens, sum(price) as price
from ledger
where scope_id = %(scope_id)s and at >= %(since)s and model = %(model)s and step in ('summarise', 'resolve')
  and source_id = any (array(select unnest(%(ids)s::uuid[])))

-- name: replaced
select id, lineage, stands, valid_at, invalid_at from versions_of_run(%(scope_id)s, %(ids)s::uuid[])

-- name: hold
select id from runs where scope_id = %(scope_id)s and id = %(run_id)s and state = 'building' for update

-- name: ready
-- Segments that the run has an extraction of and that are still visible; locked until it is written.
select segments.id from segments
join extractions on extractions.scope_id = segments.scope_id and extractions.segment_id = segments.id
    and extractions.run_id = %(run_id)s
join conversations on conversations.scope_id = segments.scope_id and conversations.id = segments.conversation_id
where segments.scope_id = %(scope_id)s and segments.id = any (array(select unnest(%(ids)s::uuid[])))
  and conversations.state in ('active', 'archived') and conversations.synced
for update of segments

-- name: dim_mentions
-- Mentions of the earlier extractions; those that are made again get their moment back.
update mentions set description = '', mentioned_at = '-infinity'
where scope_id = %(scope_id)s and source_id = any (array(select unnest(%(ids)s::uuid[])))

-- name: drop_mentions
-- An entity that past facts refer to stays visible under its name, if nothing else mentions it.
with needed as materialized (
    select mentions.source_id, mentions.entity_id, mentions.normalised from mentions
    join entities on entities.scope_id = %(scope_id)s and entities.id = mentions.entity_id
    where mentions.scope_id = %(scope_id)s and mentioned_at = '-infinity'
      and source_id = any (array(select unnest(%(ids)s::uuid[])))
      and mentions.normalised = entities.normalised
      and not exists (
          select from mentions fresh where fresh.scope_id = %(scope_id)s and fresh.entity_id = mentions.entity_id
            and fresh.mentioned_at > '-infinity'
      )
      and (
          exists (select from beliefs where beliefs.scope_id = %(scope_id)s and subject_id = mentions.entity_id)
          or exists (select from beliefs where beliefs.scope_id = %(scope_id)s and object_id = mentions.entity_id)
      )
)
delete from mentions
where scope_id = %(scope_id)s and mentioned_at = '-infinity'
  and source_id = any (array(select unnest(%(ids)s::uuid[])))
  and (source_id, entity_id, normalised) not in (select source_id, entity_id, normalised from needed)

-- name: restore_mentions
update mentions set mentioned_at = segments.closed_at
from segments
where mentions.scope_id = %(scope_id)s and mentioned_at = '-infinity'
  and source_id = any (array(select unnest(%(ids)s::uuid[])))
  and segments.scope_id = %(scope_id)s and segments.id = mentions.source_id

-- name: close_beliefs
with closed as (
    update beliefs set superseded_at = %(moment)s
    where scope_id = %(scope_id)s and lineage = any (array(select unnest(%(ids)s::uuid[]))) and superseded_at is null
    returning id
)
select withhold_memories(%(scope_id)s, array_agg(id), 'past') from closed having count(*) > 0

-- name: add_beliefs
-- A summary is a belief of its segment's lineage, without a span in the world.
insert into beliefs (scope_id, id, lineage, version, created_at)
select %(scope_id)s, given.summary_id, given.segment_id, 1 + coalesce(newest.version, 0), %(moment)s
from unnest(%(ids)s::uuid[], %(summaries)s::uuid[]) as given (segment_id, summary_id)
left join lateral (
    select max(version) as version from beliefs where scope_id = %(scope_id)s and lineage = given.segment_id
) newest on true

-- name: note_outcomes
update segments set state = 'enriched', reason = '', label = given.label, enriched_at = clock_timestamp()
from unnest(%(ids)s::uuid[], %(labels)s::text[]) as given (segment_id, label)
where scope_id = %(scope_id)s and id = given.segment_id

-- name: apply_extractions
update extractions set applied_at = clock_timestamp(), summary_id = given.summary_id
from unnest(%(ids)s::uuid[], %(summaries)s::uuid[]) as given (segment_id, summary_id)
where scope_id = %(scope_id)s and extractions.segment_id = given.segment_id and run_id = %(run_id)s

-- name: finish
update runs
set state = case when id = %(run_id)s then 'switched' else 'abandoned' end,
    switched_at = case when id = %(run_id)s then %(moment)s end
where scope_id = %(scope_id)s and state = 'building'
