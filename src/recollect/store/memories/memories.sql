-- name: sources
select id, trust, depth from memories
where scope_id = {this_scope}
  and id = any (%(ids)s) and (withheld is null or withheld in ('archived', 'faded', 'past'))
  and (not {any_deleted_of_tenant} or not rests_on_deleted(scope_id, id))
for key share

-- name: claim_key
insert into idempotency_keys (scope_id, key, fingerprint)
select id, %(key)s, %(fingerprint)s from scopes
where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
on conflict (scope_id, key) do update set replayed_at = clock_timestamp()
returning fingerprint, memory_ids, embedded, outcome, replayed_at is null as fresh

-- name: complete_claim
update idempotency_keys set memory_ids = %(ids)s, embedded = %(embedded)s, outcome = coalesce(%(outcome)s::jsonb, outcome)
where scope_id = %(scope_id)s and key = %(key)s

-- name: release_claim
delete from idempotency_keys where scope_id = %(scope_id)s and key = %(key)s

-- name: store_memories
with given as {source}, featured as (
    insert into memory_features (scope_id, origin, {features})
    select %(scope_id)s, %(origin)s, {feature_fields} from given
), termed as (
    insert into memory_terms (scope_id, id, kind, trust, terms, weights, draw)
    select %(scope_id)s, id, kind, trust, terms, weights, draw from given
)
insert into memories (scope_id, origin, created_at, {columns})
select %(scope_id)s, %(origin)s, %(created_at)s, {columns} from given

-- name: given
-- Read once for all three.
materialized (
    select * from json_to_recordset(%(rows)s::json)
        as given ({fields}, terms bigint[], weights sparsevec, draw integer)
)

-- name: staged
not materialized (select * from staged_memories)

-- name: store_terms
insert into memory_terms (scope_id, id, kind, trust, terms, weights, draw)
select %(scope_id)s, id, kind, trust, terms, weights, draw
from json_to_recordset(%(rows)s::json)
    as given (id uuid, kind text, trust smallint, terms bigint[], weights sparsevec, draw integer)

-- name: store_keywords
with filed as (
    select id, kind, keyword, counted
    from unnest(%(ids)s::uuid[], %(kinds)s::text[], %(keywords)s::text[], %(counted)s::boolean[])
        as given (id, kind, keyword, counted)
), linked as (
    insert into memory_keywords (scope_id, keyword, kind, id, counted)
    select %(scope_id)s, keyword, kind, id, counted from filed
)
insert into keyword_strengths (scope_id, kind, keyword, strength)
select %(scope_id)s, kind, keyword, count(*) from filed where counted group by kind, keyword
on conflict (scope_id, kind, keyword) do update set strength = keyword_strengths.strength + excluded.strength

-- name: store_evidence
insert into evidence (scope_id, memory_id, source_id)
select %(scope_id)s, memory_id, source_id
from unnest(%(memory_ids)s::uuid[], %(source_ids)s::uuid[]) as given (memory_id, source_id)

-- name: link_summaries
-- A new summary of messages becomes the running one of their conversation.
update conversations set summary_id = newest.summary_id
from (
    select messages.conversation_id, max(given.summary_id::text)::uuid as summary_id
    from unnest(%(summaries)s::uuid[], %(sources)s::uuid[]) as given (summary_id, source_id)
    join messages on messages.scope_id = %(scope_id)s and messages.id = given.source_id
    group by messages.conversation_id
) newest
where conversations.scope_id = %(scope_id)s and conversations.id = newest.conversation_id

-- name: read
with place as (
    select id as scope_id from scopes
    where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
), unfolded as materialized (
    select touched.id, max(access_log.accessed_at) as accessed_at
    from access_log, unnest(access_log.ids) as touched (id)
    where access_log.scope_id = (select scope_id from place)
      -- For named memories, only theirs: the log may have hundreds.
      and (%(ids)s::uuid[] is null or touched.id = any (%(ids)s::uuid[]))
    group by touched.id
)
select {columns}, origin, created_at, withheld,
       said.conversation_id as conversation, said.role,
       case when kind in ('fact', 'summary') or withheld is not null then belief_of(scope_id, id) end as belief,
       greatest(
           occurred_at,
           (select last_accessed_at from accesses where accesses.scope_id = memories.scope_id
                and accesses.id = memories.id),
           (select accessed_at from unfolded where unfolded.id = memories.id)
       ) as last_accessed_at,
       array(
           select source_id from evidence
           where evidence.scope_id = memories.scope_id and memory_id = memories.id order by source_id
       ) as evidence,
       (select pinned from memory_features features where features.scope_id = memories.scope_id
            and features.id = memories.id) as pinned
from {source} as memories
left join lateral (
    select messages.conversation_id, messages.role from messages
    where messages.scope_id = memories.scope_id and messages.id between memories.id and memories.id
      and memories.kind = 'message'
    -- Only its key has this order: otherwise any index of the scope is used, and all of it may be read.
    order by messages.id limit 1
) said on true
where true{filter}
  -- Expired memories are withheld at once; the indexes follow with the next pass of fading.
  and (%(expired)s or expires_at is null or expires_at > now())
  and (withheld is null or withheld = any (%(withheld)s::text[]))
  -- A deleted conversation, and memories derived from it, are hidden at once; the indexes follow.
  and (not {any_deleted_in_place} or not rests_on_deleted(memories.scope_id, memories.id))
order by {order}
limit %(limit)s

-- name: named
-- One by one, in the order of the key: with a list of IDs a generic plan would read the whole scope.
(
    select found.* from (select distinct unnest(%(ids)s::uuid[])) as asked (asked_id)
    cross join lateral (
        select * from memories
        where scope_id = (select scope_id from place) and id between asked_id and asked_id
        order by id limit 1
    ) found
)

-- name: following
(select * from memories where scope_id = (select scope_id from place) and id > %(cursor)s)

-- name: preceding
(select * from memories where scope_id = (select scope_id from place) and id < %(cursor)s)

-- name: worded

  -- By the key, as a filter's conditions: with a join, statistics would decide whether the whole scope is read.
  and memories.id = any (array(select having_terms((select scope_id from place), %(terms)s::bigint[])))

-- name: filed

  -- Of each kind only a page is read, not the whole list of the keyword.
  and memories.id = any (array(
      select filed.id from unnest(%(filed_kinds)s::text[]) as kinds (kind) cross join lateral (
          select id from memory_keywords
          where memory_keywords.scope_id = (select scope_id from place) and keyword = %(keyword)s
            and memory_keywords.kind = kinds.kind and id {step} %(cursor)s{allowed}
            -- Memories of a deleted conversation stay filed for a short time.
            and (not {any_deleted_in_place} or not rests_on_deleted(memory_keywords.scope_id, memory_keywords.id))
          order by {order}
          limit %(filed_limit)s
      ) filed
  ))

-- name: state
select memory_state(id, %(id)s) as state from scopes
where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s

-- name: fold_scope
select fold_accesses(id) from scopes
where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s

-- name: derived
-- Memories, and all memories derived from them.
with recursive place as (
    select id from scopes where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
), doomed (id) as (
    select id from memories where scope_id = (select id from place) and id = any (%(ids)s)
    union
    select next.id from doomed cross join lateral (
        select memory_id as id from evidence
        where evidence.scope_id = (select id from place) and evidence.source_id = doomed.id
        union all
        -- The successors of a version are deleted with it; else its words would stay in the next one.
        select later_versions((select id from place), doomed.id)
    ) next
){then}

-- name: foresee
select id from doomed

-- name: forget
, gone as (
    delete from memories
    where scope_id = (select id from place) and id = any (array(select id from doomed))
    returning id, kind, withheld
), counted as materialized (
    -- Withheld memories were subtracted before.
    select count_out((select id from place), array(select kind from gone where withheld is null))
)
select gone.id, gone.kind from gone cross join counted
