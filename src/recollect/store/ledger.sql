-- name: enter
insert into ledger (scope_id, step, model, prompt_version, prompt_tokens, completion_tokens, price, milliseconds,
                    outcome, source_id)
values (%(scope_id)s, %(step)s, %(model)s, %(prompt_version)s, %(prompt_tokens)s, %(completion_tokens)s, %(price)s,
        %(milliseconds)s, %(outcome)s, %(source_id)s)

-- name: today
-- A day is a UTC day and has 24 hours, whatever clock the session goes by.
select own.tokens_per_day as own_limit, day.ends_at,
       coalesce((
           select sum(prompt_tokens + completion_tokens)::bigint from ledger
           where tenant_id = current_tenant() and at >= day.begins_at
       ), 0) as used
from (select date_trunc('day', clock_timestamp(), 'UTC') as begins_at,
             date_trunc('day', clock_timestamp(), 'UTC') + interval '24 hours' as ends_at) day
left join (select tokens_per_day from tenants where id = current_tenant()) own on true

-- name: sums
-- No agent means all scopes of the tenant.
select (at at time zone 'UTC')::date as day, step, model, count(*) as calls,
       count(*) filter (where outcome like 'failed%%') as failed,
       count(*) filter (where outcome = 'salvaged') as salvaged,
       sum(prompt_tokens)::bigint as prompt_tokens, sum(completion_tokens)::bigint as completion_tokens,
       sum(price) as price, sum(milliseconds) as milliseconds
from ledger
where tenant_id = current_tenant()
  and at >= date_trunc('day', clock_timestamp(), 'UTC') - make_interval(hours => 24 * (%(days)s::integer - 1))
  and (%(agent)s::text is null or scope_id = (
      select id from scopes where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
  ))
group by 1, 2, 3
order by 1 desc, 2, 3
