-- name: source_texts
select id, coalesce(nullif(speaker, ''), said.role, '') as speaker, content, occurred_at
from memories
left join lateral (
    select messages.role from messages
    where messages.scope_id = memories.scope_id and messages.id between memories.id and memories.id
      and memories.kind = 'message'
    order by messages.id limit 1
) said on true
where scope_id = %(scope_id)s
  -- As a subquery: with the IDs themselves, the planner would rather read the scope by time.
  and id = any (array(select unnest(%(ids)s::uuid[])))
  and (expires_at is null or expires_at > now())
  and (withheld is null or withheld = 'archived')
  -- A deleted conversation, and memories derived from it, are hidden at once; the indexes follow.
  and (not {any_deleted_here} or not rests_on_deleted(memories.scope_id, memories.id))
order by id

-- name: next
-- The next that can be derived again: all of its remaining evidence is visible. Facts with entities are not among
-- them: they are deleted as soon as they lose evidence.
select id, kind, importance, depth, occurred_at,
       array(select source_id from evidence
             where evidence.scope_id = memories.scope_id and memory_id = memories.id order by source_id) as evidence
from memories
where scope_id = %(scope_id)s and withheld = 'to_rederive' and id > %(after)s
  -- A summary that is no longer believed stays blank.
  and not exists (
      select from beliefs
      where beliefs.scope_id = %(scope_id)s and beliefs.id = memories.id and superseded_at is not null
  )
  and exists (select from evidence where evidence.scope_id = %(scope_id)s and evidence.memory_id = memories.id)
  and not exists (
      select from evidence join memories source on source.scope_id = %(scope_id)s and source.id = evidence.source_id
      where evidence.scope_id = %(scope_id)s and evidence.memory_id = memories.id
        and source.withheld in ('deleted', 'to_rederive')
  )
  and not rests_on_deleted(scope_id, id)
order by id
limit 1

-- name: open
select memory_count, term_count from scopes where id = %(scope_id)s for no key update

-- name: hold
-- Still waiting, and still with the same evidence.
select id from memories
where scope_id = %(scope_id)s and id = %(id)s and withheld = 'to_rederive'
  and %(evidence)s::uuid[] = array(
      select source_id from evidence where scope_id = %(scope_id)s and memory_id = %(id)s order by source_id
  )
  and not exists (
      select from memories source
      where source.scope_id = %(scope_id)s and source.id = any (%(evidence)s::uuid[])
        and source.withheld in ('deleted', 'to_rederive')
  )
  and not rests_on_deleted(scope_id, id)
for update

-- name: write
update memories
set content = %(content)s, subject = %(subject)s, predicate = %(predicate)s, object = %(object)s,
    keywords = %(keywords)s::text[], idle = %(idle)s, trust = %(trust)s, withheld = null
where scope_id = %(scope_id)s and id = %(id)s

-- name: write_features
update memory_features set length = %(length)s, tells = %(tells)s, speaker = %(speaker)s
where scope_id = %(scope_id)s and id = %(id)s

-- name: count
select count_in(%(scope_id)s, array[%(kind)s], %(terms)s)

-- name: exclude_past_version
select withhold_memories(%(scope_id)s, array(select past_among(%(scope_id)s, array[%(id)s::uuid])), 'past')

-- name: sources_of
-- One end at a time, as in the key: for an end with very many links, only the requested number is read.
select found.source_id as id, ends.id as of
from unnest(%(ends)s::uuid[]) with ordinality as ends (id, place)
cross join lateral (
    select source_id from evidence
    where scope_id = {this_scope} and memory_id between ends.id and ends.id and source_id <> all (%(known)s::uuid[])
    order by memory_id, source_id limit %(most)s
) found
limit %(most)s

-- name: derived_of
select found.memory_id as id, ends.id as of
from unnest(%(ends)s::uuid[]) with ordinality as ends (id, place)
cross join lateral (
    select memory_id from evidence
    where scope_id = {this_scope} and source_id between ends.id and ends.id and memory_id <> all (%(known)s::uuid[])
    order by source_id, memory_id limit %(most)s
) found
limit %(most)s
