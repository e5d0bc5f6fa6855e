-- name: incarnation
select id from incarnations

-- name: numbers
select id as scope_id, change_number from scopes where id = any (%(scopes)s::bigint[])

-- name: log
select asked.scope_id, logged.number, logged.operation, logged.ids
from unnest(%(scopes)s::bigint[], %(positions)s::bigint[]) as asked (scope_id, position)
cross join lateral (
    select number, operation, ids from changes
    where changes.scope_id = asked.scope_id and changes.number > asked.position
    order by number limit %(most)s
) logged
order by asked.scope_id, logged.number

-- name: memories
-- Memories in recall.
select asked.scope_id, asked.id, held.kind, held.content as text, held.speaker, held.occurred_at, near.embedding as vector
from unnest(%(scopes)s::bigint[], %(ids)s::uuid[]) as asked (scope_id, id)
cross join lateral (
    select kind, content, speaker, occurred_at from memories
    where memories.scope_id = asked.scope_id and memories.id = asked.id and memories.withheld is null
    offset 0
) held
left join lateral (
    select embedding from {vectors} vectors where vectors.scope_id = asked.scope_id and vectors.id = asked.id offset 0
) near on true

-- name: memories_alone
select asked.scope_id, asked.id, held.kind, held.content as text, held.speaker, held.occurred_at
from unnest(%(scopes)s::bigint[], %(ids)s::uuid[]) as asked (scope_id, id)
cross join lateral (
    select kind, content, speaker, occurred_at from memories
    where memories.scope_id = asked.scope_id and memories.id = asked.id and memories.withheld is null
    offset 0
) held

-- name: facts
-- Every version that was believed at some time, as the walk over facts sees them.
select asked.scope_id, asked.id, held.subject_id, held.object_id, held.predicate, held.valid_at, held.invalid_at,
       held.created_at, held.superseded_at, said.content as text
from unnest(%(scopes)s::bigint[], %(ids)s::uuid[]) as asked (scope_id, id)
cross join lateral (
    select * from beliefs
    where beliefs.scope_id = asked.scope_id and beliefs.id = asked.id and beliefs.subject_id is not null
      and not beliefs.contested and coalesce(beliefs.withheld_for, 'past') = 'past'
    offset 0
) held
cross join lateral (
    select content from memories where memories.scope_id = asked.scope_id and memories.id = asked.id offset 0
) said

-- name: entities
-- Entities with a name from a visible source.
select asked.scope_id, asked.id, held.type, called.names,
       case when held.normalised = any (called.names) then held.name else called.newest end as name, led.kept_id as merged_into
from unnest(%(scopes)s::bigint[], %(ids)s::uuid[]) as asked (scope_id, id)
cross join lateral (
    select name, normalised, type from entities where entities.scope_id = asked.scope_id and entities.id = asked.id offset 0
) held
cross join lateral (
    select array_agg(distinct normalised order by normalised) as names,
           (array_agg(name order by mentioned_at desc, name))[1] as newest
    from mentions
    where mentions.scope_id = asked.scope_id and mentions.entity_id = asked.id
      and source_in_sight(mentions.scope_id, mentions.source_id)
    having count(*) > 0
) called
left join lateral (
    select kept_id from entity_merges
    where entity_merges.scope_id = asked.scope_id and absorbed_id = asked.id and split_at is null offset 0
) led on true

-- name: touched_entities
select distinct entity_id as id from mentions
where scope_id = %(scope_id)s and (%(every)s or source_id = any (%(sources)s::uuid[]))

-- name: list_memories
select id from memories where scope_id = %(scope_id)s and id > %(after)s order by id limit %(limit)s

-- name: list_facts
select id from beliefs where scope_id = %(scope_id)s and id > %(after)s order by id limit %(limit)s

-- name: list_entities
select id from entities where scope_id = %(scope_id)s and id > %(after)s order by id limit %(limit)s
