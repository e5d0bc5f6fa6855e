-- name: ended
-- Facts that were believed until their end and are still in the indexes.
select beliefs.scope_id, beliefs.id from beliefs
join memories on memories.scope_id = beliefs.scope_id and memories.id = beliefs.id
where beliefs.scope_id between first_scope() and last_scope()
  and beliefs.superseded_at is null and beliefs.invalid_at <= now() and memories.withheld is null
order by beliefs.scope_id, beliefs.invalid_at
limit %(limit)s

-- name: lock
select id from scopes where id = %(scope_id)s for no key update

-- name: withhold
select withhold_memories(%(scope_id)s, %(ids)s::uuid[], 'past') as withheld
