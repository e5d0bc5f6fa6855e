-- name: counts
select memory_count, event_count, thought_count, chat_count, unreflected_importance, unreflected_memories,
       (select count(*) from memories where memories.scope_id = scopes.id and withheld = 'to_rederive') as to_rederive,
       message, event, chat, thought, fact, summary, faded, archived,
       (
           select count(*) from conversations
           where conversations.scope_id = scopes.id and id <> '' and state not in ('deleted', 'purging')
       ) as conversations,
       (select count(*) from entities where entities.scope_id = scopes.id) as entities,
       (select count(distinct topic_id) from topic_links where topic_links.scope_id = scopes.id) as topics,
       (select count(*) from items where items.scope_id = scopes.id) as items
from scopes
cross join lateral (
    select count(*) filter (where kind = 'message' and taking_part) as message,
           count(*) filter (where kind = 'event' and taking_part) as event,
           count(*) filter (where kind = 'chat' and taking_part) as chat,
           count(*) filter (where kind = 'thought' and taking_part) as thought,
           count(*) filter (where kind = 'fact' and taking_part) as fact,
           count(*) filter (where kind = 'summary' and taking_part) as summary,
           count(*) filter (where state = 'faded') as faded, count(*) filter (where state = 'in_archived') as archived
    from memory_features features
    cross join lateral (select state = 'current' and (expires_at is null or expires_at > now()) as taking_part) counts
    where features.scope_id = scopes.id and state in ('current', 'faded', 'in_archived')
) by_kind
where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s

-- name: strongest
with place as materialized (
    select id from scopes where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
)
select keyword, kind, strength from keyword_strengths strengths
where scope_id = (select id from place)
  -- A keyword can be a word of a message: those of a deleted conversation are hidden before they are removed.
  and (
      not (select exists (
          select from conversations
          where scope_id = (select id from place) and not synced and state in ('deleted', 'purging')
      ))
      or exists (
          select from memory_keywords filed
          where filed.scope_id = strengths.scope_id and filed.keyword = strengths.keyword and filed.kind = strengths.kind
            and not rests_on_deleted(filed.scope_id, filed.id)
      )
  )
order by strength desc, keyword, kind
limit %(limit)s

-- name: others
with place as materialized (
    select id from scopes where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
)
select
    (select count(*) from entities where scope_id = (select id from place)) as entities,
    (select count(*) from topic_links where scope_id = (select id from place)) as topic_links,
    (
        select count(*) from conversations
        where scope_id = (select id from place) and id <> '' and state not in ('deleted', 'purging')
    ) as conversations,
    (select count(*) from items where scope_id = (select id from place)) as items,
    (select count(*) from memories where scope_id = (select id from place) and withheld = 'past') as past_versions

-- name: activity
-- A range of the key: IDs contain their time. Days are the positions of their first IDs.
select width_bucket(features.id, %(starts)s::uuid[]) as place, features.kind, count(*) as memories
from memory_features features
where features.scope_id = {this_scope} and features.id >= (%(starts)s::uuid[])[1] and features.state <> 'deleted'
  -- A deleted conversation, and memories derived from it, are hidden at once; the states follow.
  and (not {any_deleted_of_tenant} or not rests_on_deleted(features.scope_id, features.id))
group by 1, 2
order by 1, 2
