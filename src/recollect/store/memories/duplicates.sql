-- name: known
select asked.place, found.id, found.content, found.trust, found.depth, features.speaker
from json_to_recordset(%(rows)s::json) as asked (
    place integer, kind text, speaker text, trust smallint, terms bigint[], rare bigint[], fewest integer, expected integer
)
cross join lateral alike_terms(
    %(scope_id)s, asked.terms, asked.rare, asked.fewest, asked.kind, asked.trust, asked.expected, %(limit)s
) as alike (id)
cross join lateral (
    select id, content, trust, depth, expires_at from memories
    where scope_id = %(scope_id)s and memories.id between alike.id and alike.id
    order by memories.id limit 1
) found
-- By key, one by one: with a join, the planner would start with the features of the whole scope.
cross join lateral (
    select speaker from memory_features
    where scope_id = %(scope_id)s and memory_features.id between alike.id and alike.id
    order by memory_features.id limit 1
) features
where features.speaker = asked.speaker and (found.expires_at is null or found.expires_at > now())
  and (not {any_deleted_here} or not rests_on_deleted(%(scope_id)s, found.id))
order by asked.place, found.id

-- name: states
select id, memory_state(%(scope_id)s, id) as state from unnest(%(ids)s::uuid[]) as asked (id)
