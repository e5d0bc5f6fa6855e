-- name: worded
-- Each of these is a statement of its own: joined, the planner takes every part for one row and pairs all with all.
select id, kind, occurred_at, speaker, left(content, %(most_read)s) as beginning,
       right(rtrim(right(content, 40)), 1) as ending
from memories
where scope_id = %(scope_id)s and id = any (%(ids)b::uuid[])
  -- What the fetch will not show must not stand for others that say the same.
  and (expires_at is null or expires_at > now())
  and case
      when kind in ('fact', 'summary') then stands(scope_id, id, occurred_at, %(as_of)s::timestamptz, %(at)s::timestamptz)
      else %(at)s::timestamptz is null or occurred_at <= %(at)s::timestamptz
  end
  and (
      not (select exists (
          select from conversations
          where scope_id = %(scope_id)s and not settled and state in ('deleted', 'purging')
      ))
      or not rests_on_deleted(scope_id, id)
  )

-- name: said
select id, conversation_id, number, role
from messages
where scope_id = %(scope_id)s and id = any (%(ids)b::uuid[])

-- name: weighed
select id, cardinality(terms) as length, array(
    select number - 1 from unnest(%(terms)s::bigint[]) with ordinality as asked (term, number)
    where term = any (terms)
    order by number
) as terms
from (
    select id, terms from memory_terms where scope_id = %(scope_id)s and id = any (%(ids)b::uuid[])
    union all
    select id, terms from withheld_memories where scope_id = %(scope_id)s and id = any (%(ids)b::uuid[])
) found

-- name: placed
select id, -(embedding <#> %(vector)s::{type}({dimensions})) as cosine
from {vectors}
where scope_id = %(scope_id)s and id = any (%(ids)b::uuid[])
