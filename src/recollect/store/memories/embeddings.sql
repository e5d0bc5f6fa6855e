-- name: all
select id, model, dimensions, state, precision, filled_count from embedding_spaces order by created_at, id

-- name: store_vectors
insert into {vectors} (scope_id, id, kind, trust, idle, importance, embedding)
select held.scope_id, held.id, held.kind, held.trust, held.idle,
       case when {space} = (select folded_space from scopes where id = %(scope_id)s) then held.importance end,
       given.embedding
from unnest(%(ids)s::uuid[], %(embeddings)b::{type}[]) as given (id, embedding)
cross join lateral (
    -- One by one, in the order of the key: with a join of sets, a generic plan would read the whole scope.
    select scope_id, id, kind, trust, idle, importance, withheld from memories
    where memories.scope_id = %(scope_id)s and memories.id between given.id and given.id
    order by memories.id limit 1
) held
where held.withheld is null
-- A message may have one that was made without the previous message.
on conflict (scope_id, id) do update set embedding = excluded.embedding
where {vectors}.embedding <> excluded.embedding
returning id

-- name: note_with_context
insert into context_vectors (scope_id, id, space_id)
select %(scope_id)s, id, %(space_id)s from unnest(%(ids)s::uuid[]) as given (id)
on conflict do nothing

-- name: read_vectors
select id, embedding::real[] as numbers from {vectors}
where scope_id = {this_scope}
  and id = any (%(ids)s)

-- name: hold
-- All in one order, with the previous messages: forgetting one of these waits, and then finds the vectors made with it.
select id from memories
where scope_id = %(scope_id)s and id = any (array(select unnest(%(ids)s::uuid[])))
order by id
for key share

-- name: unchanged
-- A memory that has changed since its text was read, or follows another one now, waits for another vector.
select held.id
from (
    select scope_id, id, kind, content, embedding_text from memories
    where scope_id = %(scope_id)s and id = any (array(select unnest(%(ids)s::uuid[]))) offset 0
) held
join unnest(%(ids)s::uuid[], %(checksums)s::text[]) as given (id, checksum) on given.id = held.id
left join lateral said_before(held.scope_id, held.id, 0) as before on held.kind = 'message'
where md5(held.content || held.embedding_text) || coalesce(before.parent_id::text, '') = given.checksum

-- name: log_embedded
select log_change(%(scope_id)s, 'embedded', %(ids)s::uuid[])

-- name: await_writers
select id from scopes where id = %(scope_id)s for no key update

-- name: add_pending
insert into pending_embeddings (scope_id, id)
select %(scope_id)s, id from unnest(%(ids)s::uuid[]) as given (id)
on conflict do nothing

-- name: pending
select waiting.scope_id, waiting.id, waiting.speaker, waiting.content, waiting.embedding_text,
       md5(waiting.content || waiting.embedding_text) || coalesce(before.parent_id::text, '') as checksum,
       before.parent_id as before_id, before.speaker as before_speaker, before.content as before_content
from (
    select memories.scope_id, memories.id, kind, speaker, content, embedding_text
    from pending_embeddings pending
    join memories on memories.scope_id = pending.scope_id and memories.id = pending.id
    where pending.scope_id = %(scope_id)s and pending.id > %(after)s
    order by pending.id
    limit %(limit)s
) waiting
left join lateral said_before(waiting.scope_id, waiting.id, %(most)s) as before on waiting.kind = 'message'
order by waiting.id

-- name: count_pending
select count(*) as waiting from pending_embeddings where scope_id = %(scope_id)s

-- name: defer_waiting
select procrastinate_defer_jobs_v1(array[
    row('embed', 'embed', 0, job.lock, null, jsonb_build_object('scope_id', job.scope_id), null)
    ::procrastinate_job_to_defer_v1
])
from (
    select id as scope_id, 'embed:' || id as lock from scopes
    where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
) job
where exists (select from pending_embeddings where pending_embeddings.scope_id = job.scope_id)
  and not exists (select from procrastinate_jobs jobs where jobs.lock = job.lock and jobs.status = 'todo')

-- name: remove_pending
delete from pending_embeddings where scope_id = %(scope_id)s and id = any (%(ids)s)

-- name: unfilled
select lacking.scope_id, lacking.id, lacking.speaker, lacking.content, lacking.embedding_text,
       md5(lacking.content || lacking.embedding_text) || coalesce(before.parent_id::text, '') as checksum,
       before.parent_id as before_id, before.speaker as before_speaker, before.content as before_content
from (
    select scope_id, id, kind, speaker, content, embedding_text from memories
    where scope_id between first_scope() and last_scope() and (scope_id, id) > (%(scope_id)s, %(id)s)
      and withheld is null and (content <> '' or embedding_text <> '') and is_served(scope_id)
      and not exists (
          select from {vectors} vectors where vectors.scope_id = memories.scope_id and vectors.id = memories.id
      )
    order by scope_id, id
    limit %(limit)s
) lacking
left join lateral said_before(lacking.scope_id, lacking.id, %(most)s) as before on lacking.kind = 'message'
order by lacking.scope_id, lacking.id

-- name: held
select given.id, held.embedding::real[] as numbers
from unnest(%(scope_ids)s::bigint[], %(ids)s::uuid[]) as given (scope_id, id)
cross join lateral (
    select embedding from {vectors} vectors
    where vectors.scope_id = given.scope_id and vectors.id between given.id and given.id
    order by vectors.id limit 1
) held
where not exists (
    select from pending_embeddings pending where pending.scope_id = given.scope_id and pending.id = given.id
)

-- name: filled
update embedding_spaces
set filled_scope = %(scope_id)s, filled_id = %(id)s, filled_count = filled_count + %(count)s
where id = %(space)s

-- name: cursor
select filled_scope, filled_id from embedding_spaces where id = %(space)s
