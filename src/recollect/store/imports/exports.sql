-- name: settle
-- The same rows are the same text, wherever they are read.
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
select (to_jsonb(held) - 'scope_id' - %(omitted)s::text[])::text as line
from {table} held where scope_id = %(scope_id)s order by {key}

-- name: termed_rows
-- Terms without the bits of their scope.
select (to_jsonb(held) - 'scope_id' || jsonb_build_object('terms', array(
           select each.term & %(term_mask)s::bigint
           from unnest(held.terms) with ordinality as each (term, place) order by each.place)))::text as line
from {table} held where scope_id = %(scope_id)s order by {key}

-- name: folded_accesses
-- As the log and the table say together, by the rule of fold_accesses.
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
select (to_jsonb(scopes) - array[
           'id', 'tenant_id', 'agent', 'user', 'approximate_space', 'folded_space', 'change_number', 'followed_until',
           'written_hour', 'size_step', 'tier', 'tier_since'])::text as line
from scopes where id = %(scope_id)s

-- name: vectors
select jsonb_build_object(
           'id', held.id, 'embedding', held.embedding, 'with_context', exists (
               select from context_vectors context
               where context.scope_id = %(scope_id)s and context.id = held.id and context.space_id = %(space_id)s)
       )::text as line
from (
    select id, embedding::text as embedding from {vectors} where scope_id = %(scope_id)s
    union all
    select id, embedding::text from withheld_vectors where scope_id = %(scope_id)s and space_id = %(space_id)s
    union all
    select id, embedding::text from entity_vectors where scope_id = %(scope_id)s and space_id = %(space_id)s
) held
order by held.id

-- name: is_filled
select exists (select from {table} where scope_id = %(scope_id)s) as filled

-- name: columns
select attname as name from pg_attribute
where attrelid = %(table)s::regclass and attnum > 0 and not attisdropped and attgenerated = ''
order by attnum

-- name: unknown_fields
select field from {given_lines}, jsonb_object_keys(line) as field where field <> all (%(known)s::text[]) limit 1

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
set memory_count = held.memory_count, event_count = held.event_count, thought_count = held.thought_count,
    chat_count = held.chat_count, term_count = held.term_count,
    unreflected_importance = held.unreflected_importance, unreflected_memories = held.unreflected_memories,
    last_written_at = held.last_written_at,
    has_keywords = held.has_keywords, has_names = held.has_names, has_topics = held.has_topics,
    -- An export from before it was noted says nothing of it; the rows themselves have been stored by now, or will be.
    has_evidence = scopes.has_evidence or coalesce(held.has_evidence, false),
    text_version = coalesce(held.text_version, scopes.text_version)
from {given_lines}, jsonb_populate_record(null::scopes, line) as held
where scopes.id = %(scope_id)s
returning scopes.text_version

-- name: read_given
select line from {given_lines}

-- name: store_profile
-- An agent that has settings keeps them: they hold for its other users, too.
insert into agents (tenant_id, agent, profile, metadata)
select current_tenant(), %(agent)s, line -> 'profile', line -> 'metadata' from {given_lines}
on conflict (tenant_id, agent) do update
set profile = case when agents.profile = '{}' and agents.metadata = '{}' then excluded.profile else agents.profile end,
    metadata = case when agents.profile = '{}' and agents.metadata = '{}' then excluded.metadata else agents.metadata end
returning profile = (select line -> 'profile' from {given_lines})
      and metadata = (select line -> 'metadata' from {given_lines}) as same

-- name: store_vectors
-- Each where its memory or its entity stands.
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
