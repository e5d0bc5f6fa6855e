-- name: all
select id, model, dimensions, state, precision, filled_count from embedding_spaces order by id

-- name: store_vectors
insert into {vectors} (scope_id, id, kind, trust, idle, importance, embedding)
select memories.scope_id, memories.id, memories.kind, memories.trust, memories.idle, memories.importance,
       given.embedding
from unnest(%(ids)s::uuid[], %(embeddings)s::{type}[]) as given (id, embedding)
join memories on memories.scope_id = %(scope_id)s and memories.id = given.id
where memories.withheld is null
on conflict (scope_id, id) do nothing

-- name: read_vectors
select id, embedding::real[] as numbers from {vectors}
where scope_id = (select id from scopes where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s)
  and id = any (%(ids)s)

-- name: hold
-- A memory that was made anew since its text was read waits for another vector.
select memories.id from unnest(%(ids)s::uuid[], %(marks)s::text[]) as given (id, mark)
join memories on memories.scope_id = %(scope_id)s and memories.id = given.id
where md5(content || embedding_text) = mark
order by memories.id
for key share of memories

-- name: await_writers
select id from scopes where id = %(scope_id)s for no key update

-- name: add_pending
insert into pending_embeddings (scope_id, id)
select %(scope_id)s, id from unnest(%(ids)s::uuid[]) as given (id)
on conflict do nothing

-- name: pending
select memories.id, memories.speaker, memories.content, memories.embedding_text,
       md5(memories.content || memories.embedding_text) as mark
from pending_embeddings pending
join memories on memories.scope_id = pending.scope_id and memories.id = pending.id
where pending.scope_id = %(scope_id)s and pending.id > %(after)s
order by pending.id
limit %(limit)s

-- name: count_pending
select count(*) as waiting from pending_embeddings where scope_id = %(scope_id)s

-- name: scopes_with_pending
select distinct scope_id from pending_embeddings where scope_id between first_scope() and last_scope()

-- name: settle_pending
delete from pending_embeddings where scope_id = %(scope_id)s and id = any (%(ids)s)

-- name: unfilled
select scope_id, id, speaker, content, embedding_text, md5(content || embedding_text) as mark from memories
where scope_id between first_scope() and last_scope() and (scope_id, id) > (%(scope_id)s, %(id)s)
  and withheld is null and (content <> '' or embedding_text <> '')
  and not exists (
      select from {vectors} vectors where vectors.scope_id = memories.scope_id and vectors.id = memories.id
  )
order by scope_id, id
limit %(limit)s

-- name: filled
update embedding_spaces
set filled_scope = %(scope_id)s, filled_id = %(id)s, filled_count = filled_count + %(count)s
where id = %(space)s

-- name: cursor
select filled_scope, filled_id from embedding_spaces where id = %(space)s

