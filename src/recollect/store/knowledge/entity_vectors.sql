-- name: called
cross join lateral (
    select coalesce(array_agg(name order by mentioned_at desc, name), '{{}}') as names,
           (array_agg(description order by mentioned_at desc, description) filter (where description <> ''))[1]
               as description
    from (
        select name, description, mentioned_at from mentions
        where mentions.scope_id = entities.scope_id and mentions.entity_id = entities.id
        order by mentioned_at desc, name
        limit 200
    ) newest
) called

-- name: pending
select entities.scope_id, entities.id, entities.name, entities.type, called.names, called.description
from (
    select pending.scope_id, pending.id, name, type from pending_embeddings pending
    join entities on entities.scope_id = pending.scope_id and entities.id = pending.id
    where pending.scope_id = %(scope_id)s and pending.id > %(after)s
    order by pending.id
    limit %(limit)s
) entities
{called}
order by entities.id

-- name: unfilled
select entities.scope_id, entities.id, entities.name, entities.type, called.names, called.description
from (
    select scope_id, id, name, type from entities
    where scope_id between first_scope() and last_scope() and (scope_id, id) > (%(scope_id)s, %(after)s)
      and is_served(scope_id) and not exists (
          select from entity_vectors held
          where held.scope_id = entities.scope_id and held.space_id = %(space_id)s and held.id = entities.id
      )
    order by scope_id, id
    limit %(limit)s
) entities
{called}
order by entities.scope_id, entities.id

-- name: held
select entities.scope_id, entities.id, entities.name, entities.type, called.names, called.description
from (
    select scope_id, id, name, type from entities
    where scope_id = %(scope_id)s and id = any (array(select unnest(%(ids)s::uuid[]))) offset 0
) entities
{called}

-- name: older
-- For each given entity the older ones with a similar meaning.
select other.id as older, asked.id as younger, -(asked.embedding <#> other.embedding) as alike
from entity_vectors asked
join entity_vectors other
  on other.scope_id = asked.scope_id and other.space_id = asked.space_id and other.id < asked.id
where asked.scope_id = %(scope_id)s and asked.space_id = %(space_id)s
  and asked.id = any (array(select unnest(%(ids)s::uuid[])))
  and asked.embedding <#> other.embedding <= -%(least)s::real

-- name: vectors
select held.id, held.embedding::real[] as numbers
from unnest(%(scope_ids)s::bigint[], %(ids)s::uuid[]) as given (scope_id, id)
join entity_vectors held
    on held.scope_id = given.scope_id and held.space_id = %(space_id)s and held.id = given.id
where not exists (
    select from pending_embeddings pending where pending.scope_id = held.scope_id and pending.id = held.id
)

-- name: lock
select id from scopes where id = %(scope_id)s for no key update

-- name: store
insert into entity_vectors (scope_id, space_id, id, embedding)
select %(scope_id)s, %(space_id)s, given.id, given.embedding
from unnest(%(ids)s::uuid[], %(embeddings)b::halfvec[]) as given (id, embedding)
on conflict (scope_id, space_id, id) do update set embedding = excluded.embedding

-- name: remove_pending
delete from pending_embeddings where scope_id = %(scope_id)s and id = any (%(ids)s)
