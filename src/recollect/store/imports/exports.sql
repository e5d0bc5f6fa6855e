-- name: settle
-- Equal rows have equal text on all servers.
select set_config('TimeZone', 'UTC', true), set_config('extra_float_digits', '1', true),
       set_config('bytea_output', 'hex', true)

-- name: scopes
select id, agent, "user", memory_count, tier = 'cold' as cold from scopes
where tenant_id = current_tenant() and {not_erased} and (%(agent)s::text is null or agent = %(agent)s)
  and (%(user)s::text is null or "user" = %(user)s)
order by agent collate "C", "user" collate "C"

-- name: names
select agent, "user", memory_count from scopes where id = %(scope_id)s

-- name: spaces
select id, model, dimensions, precision from embedding_spaces order by id

-- name: active_space
select id from embedding_spaces where state = 'active'

-- name: rows
select (to_jsonb(held) - 'scope_id' - {omitted}::text[])::text as line
from {table} held where scope_id = %(scope_id)s order by {key}

-- name: termed_rows
-- Terms without the bits of their scope.
select (to_jsonb(held) - 'scope_id' || jsonb_build_object('terms', array(
           select each.term & %(term_mask)s::bigint
           from unnest(held.terms) with ordinality as each (term, place) order by each.place)))::text as line
from {table} held where scope_id = %(scope_id)s order by {key}

-- name: folded_accesses
-- The log and the table together, by the rule of fold_accesses.
with logged as (
    select touched.id, max(accessed_at) as accessed_at, count(*) as times
    from access_log, unnest(access_log.ids) as touched (id)
    where access_log.scope_id = %(scope_id)s group by touched.id
), noted as (
    select logged.id, memories.kind, logged.accessed_at, logged.times
    from logged join memories on memories.scope_id = %(scope_id)s and memories.id = logged.id
    where memories.withheld is null
)
select jsonb_build_object(
           'id', id, 'kind', coalesce(held.kind, noted.kind),
           'last_accessed_at', greatest(held.last_accessed_at, noted.accessed_at),
           'access_count', coalesce(held.access_count, 0) + coalesce(noted.times, 0))::text as line
from (select * from {table} where scope_id = %(scope_id)s) held full join noted using (id)
order by {key}

-- name: profile
select jsonb_build_object('profile', profile, 'metadata', metadata)::text as line
from agents
where tenant_id = current_tenant() and agent = (select agent from scopes where id = %(scope_id)s)
  and (profile <> '{}' or metadata <> '{}')

-- name: counters
-- Counters that cannot be recomputed: an import counts the rest.
select jsonb_build_object(
           'unreflected_importance', unreflected_importance, 'unreflected_memories', unreflected_memories,
           'last_written_at', last_written_at)::text as line
from scopes where id = %(scope_id)s

-- name: vectors
select jsonb_build_object(
           'id', held.id, 'embedding', held.embedding, 'with_context', exists (
               select from context_vectors context
               where context.scope_id = %(scope_id)s and context.id = held.id and context.space_id = {space_id})
       )::text as line
from (
    select id, embedding::text as embedding from {vectors} where scope_id = %(scope_id)s
    union all
    select id, embedding::text from withheld_vectors where scope_id = %(scope_id)s and space_id = {space_id}
    union all
    select id, embedding::text from entity_vectors where scope_id = %(scope_id)s and space_id = {space_id}
) held
order by held.id

-- name: placed
select {place} as place, line from ({rows}) section

-- name: forget_plans
discard plans

-- name: filled
select {name} as filled where exists (select from {table} where scope_id = %(scope_id)s)

-- name: store_rows
insert into {table} ({columns})
select {values}
from {given_lines}, jsonb_populate_record(
    null::{table}, line || jsonb_build_object('scope_id', %(scope_id)s::bigint)) as held

-- name: own_terms
array(select each.term | %(scope_bits)s::bigint
      from unnest(held.terms) with ordinality as each (term, place) order by each.place)

-- name: store_counters
update scopes
set memory_count = counted.memories, event_count = counted.events, thought_count = counted.thoughts,
    chat_count = counted.chats, term_count = counted.terms,
    unreflected_importance = held.unreflected_importance, unreflected_memories = held.unreflected_memories,
    last_written_at = least(held.last_written_at, clock_timestamp())
from {given_lines}, jsonb_populate_record(null::scopes, line) as held, (
    select count(*) as memories, count(*) filter (where memories.kind = 'event') as events,
           count(*) filter (where memories.kind = 'thought') as thoughts,
           count(*) filter (where memories.kind = 'chat') as chats, coalesce(sum(features.length), 0) as terms
    from memories left join memory_features features using (scope_id, id)
    where memories.scope_id = %(scope_id)s and memories.withheld is null
) counted
where scopes.id = %(scope_id)s

-- name: store_profile
-- An agent with settings keeps them: they apply to its other users, too.
insert into agents (tenant_id, agent, profile, metadata)
select current_tenant(), %(agent)s, line -> 'profile', line -> 'metadata' from {given_lines}
on conflict (tenant_id, agent) do update
set profile = case when agents.profile = '{}' and agents.metadata = '{}' then excluded.profile else agents.profile end,
    metadata = case when agents.profile = '{}' and agents.metadata = '{}' then excluded.metadata else agents.metadata end
returning profile = (select line -> 'profile' from {given_lines})
      and metadata = (select line -> 'metadata' from {given_lines}) as same

-- name: store_vectors
-- Each next to its memory or its entity.
with given as materialized (
    select (line ->> 'id')::uuid as id, line ->> 'embedding' as embedding,
           (line ->> 'with_context')::boolean as with_context
    from {given_lines}
), shown as (
    insert into {vectors} (scope_id, id, kind, trust, idle, importance, embedding)
    select memories.scope_id, memories.id, memories.kind, memories.trust, memories.idle,
           case when %(space_id)s = (select folded_space from scopes where id = %(scope_id)s)
               then memories.importance end,
           given.embedding::{type}
    from given join memories on memories.scope_id = %(scope_id)s and memories.id = given.id
    where memories.withheld is null
), withheld as (
    insert into withheld_vectors (scope_id, id, space_id, embedding)
    select memories.scope_id, memories.id, %(space_id)s, given.embedding::vector
    from given join memories on memories.scope_id = %(scope_id)s and memories.id = given.id
    where memories.withheld is not null
), contexts as (
    insert into context_vectors (scope_id, id, space_id)
    select memories.scope_id, memories.id, %(space_id)s
    from given join memories on memories.scope_id = %(scope_id)s and memories.id = given.id
    where given.with_context
), named as (
    insert into entity_vectors (scope_id, space_id, id, embedding)
    select entities.scope_id, %(space_id)s, entities.id, given.embedding::halfvec
    from given join entities on entities.scope_id = %(scope_id)s and entities.id = given.id
    returning scope_id, space_id, id
)
delete from pending_embeddings pending using named
where pending.scope_id = named.scope_id and pending.id = named.id
  and named.space_id = (select id from embedding_spaces where state = 'active')

-- name: await_vectors
with waiting as (
    insert into pending_embeddings (scope_id, id)
    select scope_id, id from memories
    where scope_id = %(scope_id)s and withheld is null and (content <> '' or embedding_text <> '')
      and not exists (select from {vectors} held where held.scope_id = %(scope_id)s and held.id = memories.id)
    on conflict do nothing
    returning 1
)
select count(*) as waiting from waiting
