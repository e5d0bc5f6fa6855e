-- name: proposed
-- Two columns of bytes instead of rows: they are read as arrays, not value by value.
select coalesce(string_agg(uuid_send(proposed.id), ''), '') as ids,
       coalesce(string_agg(float8send(proposed.score), ''), '') as scores{more}
from ({query}) proposed
