-- name: recent
-- Hour by hour, as in the index: the last hour is read completely, and sorted.
select id, agent, "user", memory_count, last_written_at
from (
    select id, agent, "user", memory_count, last_written_at from scopes
    where tenant_id = current_tenant(){conditions}
      and (last_written_at, id) < (%(before)s::timestamptz, %(tie)s::bigint)
      and written_hour <= %(before)s::timestamptz at time zone 'UTC'
    order by written_hour desc
    fetch first (%(limit)s) rows with ties
) newest
order by last_written_at desc, id desc
limit %(limit)s

-- name: size
-- Step by step, as in the index. A step of large scopes is read completely and sorted; that of small ones has one size.
select id, agent, "user", memory_count, last_written_at
from (
    (
        select id, agent, "user", memory_count, last_written_at from scopes
        where tenant_id = current_tenant(){conditions}
          and size_step >= 16 and (memory_count, id) < (%(before)s::bigint, %(tie)s::bigint)
          and size_step <= floor(8 * ln(greatest(%(before)s::bigint, 1)::float8) / ln(2::float8))::integer + 1
        order by size_step desc
        fetch first (%(limit)s) rows with ties
    )
    union all
    (
        select id, agent, "user", memory_count, last_written_at from scopes
        where tenant_id = current_tenant(){conditions}
          and size_step < 16 and (size_step, id) < (%(before)s::bigint, %(tie)s::bigint)
        order by size_step desc, id desc
        limit %(limit)s
    )
) largest
order by memory_count desc, id desc
limit %(limit)s

-- name: name
select id, agent, "user", memory_count, last_written_at from scopes
where tenant_id = current_tenant(){conditions}
  and (agent, "user") > (%(before)s, %(tie)s)
order by agent, "user"
limit %(limit)s

-- name: by_agent
agent = %(agent)s

-- name: by_user
"user" = %(user)s

-- name: by_search
(strpos(lower(agent), lower(%(search)s)) > 0 or strpos(lower("user"), lower(%(search)s)) > 0)

-- name: not_erased
{not_erased}
