-- name: lock
select id from scopes where id = %(scope_id)s for no key update

-- name: standings
-- For memories in recall: all data that decides whether they fade. Rows on the log count as folded.
with unfolded as materialized (
    select touched.id, max(access_log.accessed_at) as accessed_at, count(*) as times
    from access_log, unnest(access_log.ids) as touched (id)
    where access_log.scope_id = %(scope_id)s
    group by touched.id
)
select chosen.id, chosen.kind, chosen.importance, chosen.expires_at, now() as now,
       greatest(chosen.created_at, chosen.revived_at) as created_at,
       -- A memory without recalls counts as accessed when stored, or when it happens if that is in the future.
       greatest(chosen.created_at, chosen.revived_at, chosen.occurred_at, side.last_accessed_at, unfolded.accessed_at)
           as last_accessed_at,
       coalesce(side.access_count, 0) + coalesce(unfolded.times, 0) as access_count,
       case chosen.kind
           when 'message' then exists (
               select from messages where messages.scope_id = %(scope_id)s and messages.id between chosen.id and chosen.id
               order by messages.id limit 1)
           when 'summary' then exists (
               select from conversations
               where conversations.scope_id = %(scope_id)s and conversations.summary_id = chosen.id)
           else false
       end as held
from (
    select id, kind, importance, created_at, occurred_at, expires_at, revived_at from memories
    where scope_id = %(scope_id)s and id > %(cursor)s and withheld is null
      -- As a subquery: with the IDs themselves, the planner would rather read the scope by time.
      and (%(ids)s::uuid[] is null or id = any (array(select unnest(%(ids)s::uuid[]))))
      and (not %(expired)s or id = any (array(
          select id from memories where scope_id = %(scope_id)s and expires_at <= now() and withheld is null offset 0
      )))
    order by id
    limit %(limit)s
) chosen
left join lateral (
    select accesses.last_accessed_at, accesses.access_count from accesses
    where accesses.scope_id = %(scope_id)s and accesses.id between chosen.id and chosen.id
    order by accesses.id limit 1
) side on true
left join unfolded on unfolded.id = chosen.id
order by chosen.id

-- name: fade
select fade_memories(
    %(scope_id)s, %(ids)s::uuid[], %(scores)s::float8[], %(grounds)s::text[], %(reasons)s::text[]
) as faded

-- name: faded
select asked.id, memories.kind, side.faded_at, side.fading_score as score, side.fading_grounds as grounds,
       side.fading_reason as reason
from (select distinct unnest(%(ids)s::uuid[])) as asked (id)
cross join lateral (
    select kind from memories
    where scope_id = %(scope_id)s and memories.id between asked.id and asked.id and withheld = 'faded'
    order by memories.id limit 1
) memories cross join lateral (
    select faded_at, fading_score, fading_grounds, fading_reason from withheld_memories
    where scope_id = %(scope_id)s and withheld_memories.id between asked.id and asked.id
    order by withheld_memories.id limit 1
) side
order by asked.id

-- name: revive
select revived, waiting from revive_memories(%(scope_id)s, %(ids)s::uuid[])

-- name: profile
select agents.profile from scopes
left join agents on agents.tenant_id = scopes.tenant_id and agents.agent = scopes.agent
where scopes.id = %(scope_id)s

-- name: count_hot
select memory_count from scopes where id = %(scope_id)s
