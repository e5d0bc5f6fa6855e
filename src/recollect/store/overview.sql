-- name: counts
select memory_count, event_count, thought_count, chat_count, unreflected_importance, unreflected_events
from scopes where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s

-- name: strongest
select keyword, kind, strength from keyword_strengths
where scope_id = (select id from scopes where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s)
order by strength desc, keyword, kind
limit %(limit)s
