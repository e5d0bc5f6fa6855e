-- name: share
-- An erasure of saved recalls holds this lock exclusively: no recall is saved with memories that are being forgotten.
select pg_advisory_xact_lock_shared(hashint8extended(%(scope_id)s, 21))

-- name: keep
-- Not if one of its memories was forgotten, or is blank by now.
insert into recalls (
    scope_id, id, asked_at, text, cue, vector, space_id, inputs, listed, hits, "limit", status, message, methods, tallies,
    milliseconds
)
select %(scope_id)s, %(id)s, %(asked_at)s, %(text)s, %(cue)s, %(vector)s, %(space_id)s, %(inputs)s, %(listed)s::uuid[],
       %(hits)s, %(limit)s, %(status)s, %(message)s, %(methods)s, %(tallies)s, %(milliseconds)s
where (
    select count(*) from memories
    where scope_id = %(scope_id)s and id = any (array(select unnest(%(listed)s::uuid[])))
      and withheld is distinct from 'to_rederive'
) = cardinality(%(listed)s::uuid[])
returning id

-- name: fetch
select asked_at, cue, vector, space_id, inputs, hits, "limit", status, message, methods, tallies, milliseconds
from recalls
where scope_id = {this_scope} and id between %(id)s and %(id)s
order by id
limit 1

-- name: page
select id, asked_at, text, status, jsonb_array_length(hits) as hits, milliseconds
from recalls
where scope_id = {this_scope} and id < %(cursor)s
order by id desc
limit %(limit)s
