-- name: proposed
-- Two columns of bytes instead of rows: they are read as arrays, not value by value.
select coalesce(string_agg(uuid_send(proposed.id), ''), '') as ids,
       coalesce(string_agg(float8send(proposed.score), ''), '') as scores{more}
from ({query}) proposed

-- name: note_first_hits
, set_config('recollect.first_hits_' || {channel},
             %(cue)s || ' ' || coalesce(array_to_string((array_agg(proposed.id))[1:5], ' '), ''), true) as noted

-- name: read_first_hits
-- Only of this query: several queries may be sent in one transaction.
array(
    select each.id::uuid
    from unnest(array[current_setting('recollect.first_hits_text', true),
                      current_setting('recollect.first_hits_vector', true)]) as noted (hits)
    cross join lateral unnest((string_to_array(noted.hits, ' '))[2:]) as each (id)
    where split_part(noted.hits, ' ', 1) = %(cue)s and each.id <> ''
)
