-- name: scopes
-- Without an agent, all scopes of the tenant; without a user, all of the agent's.
select id, agent, "user" from scopes
where tenant_id = current_tenant() and {not_erased} and (%(agent)s = '' or agent = %(agent)s)
  and (%(user)s::text is null or "user" = %(user)s)
order by agent, "user"

-- name: segments
-- Segments that can be read again, in the order of the conversations.
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
-- The cost of the tenant's past enrichment questions.
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
-- Visible segments for which the run has an extraction; locked until it is written.
select segments.id from segments
join extractions on extractions.scope_id = segments.scope_id and extractions.segment_id = segments.id
    and extractions.run_id = %(run_id)s
join conversations on conversations.scope_id = segments.scope_id and conversations.id = segments.conversation_id
where segments.scope_id = %(scope_id)s and segments.id = any (array(select unnest(%(ids)s::uuid[])))
  and conversations.state in ('active', 'archived') and conversations.synced
for update of segments

-- name: mark_old_mentions
-- Mentions of the earlier extractions; those that are written again get their old time.
update mentions set description = '', mentioned_at = '-infinity'
where scope_id = %(scope_id)s and source_id = any (array(select unnest(%(ids)s::uuid[])))

-- name: drop_mentions
-- An entity with past facts stays visible with its name, even without other mentions.
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
-- A summary is a belief with the lineage of its segment, without a valid time.
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
