-- name: enter
insert into ledger (scope_id, step, model, prompt_version, prompt_tokens, completion_tokens, price, milliseconds,
                    outcome, source_id)
values (%(scope_id)s, %(step)s, %(model)s, %(prompt_version)s, %(prompt_tokens)s, %(completion_tokens)s, %(price)s,
        %(milliseconds)s, %(outcome)s, %(source_id)s)

-- name: today
-- A day is a UTC day and has 24 hours, independent of the session's time zone.
select own.tokens_per_day as own_limit, day.ends_at,
       coalesce((
           select sum(prompt_tokens + completion_tokens)::bigint from ledger
           where tenant_id = current_tenant() and at >= day.begins_at
       ), 0) as used
from (select date_trunc('day', clock_timestamp(), 'UTC') as begins_at,
             date_trunc('day', clock_timestamp(), 'UTC') + interval '24 hours' as ends_at) day
left join (select tokens_per_day from tenants where id = current_tenant()) own on true

-- name: sums
-- Without an agent, all scopes of the tenant.
select (at at time zone 'UTC')::date as day, step, model, sum(calls)::bigint as calls,
       coalesce(sum(calls) filter (where outcome like 'failed%%'), 0)::bigint as failed,
       coalesce(sum(calls) filter (where outcome = 'partial'), 0)::bigint as partial,
       sum(prompt_tokens)::bigint as prompt_tokens, sum(completion_tokens)::bigint as completion_tokens,
       sum(price) as price, sum(milliseconds) as milliseconds
from ledger
where tenant_id = current_tenant()
  and at >= date_trunc('day', clock_timestamp(), 'UTC') - make_interval(hours => 24 * (%(days)s::integer - 1))
  and (%(agent)s::text is null or scope_id = {this_scope})
group by 1, 2, 3
order by 1 desc, 2, 3

-- name: fold
-- Sums have the start time of their day. For a scope with an unfinished run every row is still needed.
with folded as (
    delete from ledger
    where tenant_id = current_tenant() and at < date_trunc('day', clock_timestamp(), 'UTC') - interval '48 hours'
      and at <> date_trunc('day', at, 'UTC') and is_served(scope_id)
      and not exists (select from runs where runs.scope_id = ledger.scope_id and runs.state = 'building')
    returning scope_id, date_trunc('day', at, 'UTC') as day, step, model, prompt_version, outcome,
              prompt_tokens, completion_tokens, price, milliseconds, calls
)
insert into ledger (scope_id, at, step, model, prompt_version, outcome, prompt_tokens, completion_tokens, price,
                    milliseconds, calls)
select scope_id, day, step, model, prompt_version, outcome, sum(prompt_tokens), sum(completion_tokens), sum(price),
       sum(milliseconds), sum(calls)
from folded
group by scope_id, day, step, model, prompt_version, outcome
