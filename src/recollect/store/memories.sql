-- name: source_trust
select id, trust from memories
where scope_id = (select id from scopes where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s)
  and id = any (%(ids)s)
for key share

-- name: claim_key
insert into idempotency_keys (scope_id, key, fingerprint)
select id, %(key)s, %(fingerprint)s from scopes
where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
on conflict (scope_id, key) do update set replayed_at = clock_timestamp()
returning fingerprint, memory_ids, embedded, replayed_at is null as fresh

-- name: settle_key
update idempotency_keys set memory_ids = %(ids)s, embedded = %(embedded)s
where scope_id = %(scope_id)s and key = %(key)s

-- name: store_memories
insert into memories
    (scope_id, id, kind, content, speaker, importance, keywords, origin, trust, occurred_at, created_at, metadata)
select %(scope_id)s, id, kind, content, speaker, importance,
       coalesce(string_to_array(nullif(keywords, ''), %(separator)s), '{}'),
       %(origin)s, trust, occurred_at, %(created_at)s, metadata
from unnest(
    %(ids)s::uuid[], %(kinds)s::text[], %(contents)s::text[], %(speakers)s::text[], %(importances)s::real[],
    %(keywords)s::text[], %(trusts)s::smallint[], %(moments)s::timestamptz[], %(metadata)s::jsonb[]
) as given (id, kind, content, speaker, importance, keywords, trust, occurred_at, metadata)

-- name: store_terms
insert into memory_terms (scope_id, id, kind, trust, terms, weights)
select %(scope_id)s, id, kind, trust, terms::bigint[], weights::sparsevec
from unnest(%(ids)s::uuid[], %(kinds)s::text[], %(trusts)s::smallint[], %(terms)s::text[], %(weights)s::text[])
    as given (id, kind, trust, terms, weights)

-- name: store_evidence
insert into evidence (scope_id, memory_id, source_id)
select %(scope_id)s, memory_id, source_id
from unnest(%(memory_ids)s::uuid[], %(source_ids)s::uuid[]) as given (memory_id, source_id)

-- name: read
select id, kind, content, speaker, importance, keywords, origin, trust, occurred_at, created_at, metadata,
       array(
           select source_id from evidence
           where evidence.scope_id = memories.scope_id and memory_id = memories.id order by source_id
       ) as evidence
from memories
where scope_id = (select id from scopes where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s)
  and (%(ids)s::uuid[] is null or id = any (%(ids)s::uuid[]))
  and id > %(cursor)s
order by id
limit %(limit)s

-- name: lock_scope
select id from scopes
where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
for no key update

-- name: forget
with recursive place as (
    select id from scopes where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
), doomed (id) as (
    select id from memories where scope_id = (select id from place) and id = any (%(ids)s)
    union
    select evidence.memory_id from doomed
    join evidence on evidence.scope_id = (select id from place) and evidence.source_id = doomed.id
), gone as (
    delete from memories
    where scope_id = (select id from place) and id in (select id from doomed)
    returning id
), counted as (
    update scopes
    set memory_count = memory_count - (select count(*) from gone),
        term_count = term_count - term_count * (select count(*) from gone) / greatest(memory_count, 1)
    where id = (select id from place)
)
select id from gone

-- name: forget_old_keys
delete from idempotency_keys
where scope_id between first_scope() and last_scope() and created_at < clock_timestamp() - %(age)s::interval
returning key
