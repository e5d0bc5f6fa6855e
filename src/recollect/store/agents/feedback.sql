-- name: store
with place as (
    select id from scopes where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
), known as (
    select id from memories where scope_id = (select id from place) and id = any (%(ids)s::uuid[])
      and (withheld is null or withheld = 'archived')
      and (
          not (select exists (
              select from conversations
              where scope_id = (select id from place) and not synced and state in ('deleted', 'purging')
          ))
          or not rests_on_deleted(scope_id, id)
      )
    for key share
)
insert into feedback (scope_id, recall_id, memory_id, useful, rank, similarity, importance, candidates, unweighed, script)
select place.id, %(recall_id)s, known.id, useful, rank, similarity, importance, %(candidates)s, unweighed, %(script)s
from place, known
join unnest(%(ids)s::uuid[], %(useful)s::boolean[], %(ranks)s::integer[], %(similarities)s::real[],
            %(importances)s::real[], %(unweighed)s::jsonb[])
    as given (id, useful, rank, similarity, importance, unweighed) using (id)
on conflict (scope_id, recall_id, memory_id) do update set useful = excluded.useful
returning memory_id

-- name: of_agent
select feedback.recall_id, feedback.memory_id, useful, rank, similarity, importance, candidates, unweighed, script
from scopes join feedback on feedback.scope_id = scopes.id
where scopes.tenant_id = current_tenant() and scopes.agent = %(agent)s
order by marked_at desc, recall_id, memory_id
limit %(limit)s
