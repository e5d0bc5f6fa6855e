-- name: stage
-- Rows are not compressed here: long values are compressed once, in their final table.
create temporary table staged_memories ({fields}, terms bigint[], weights sparsevec, draw integer, embedding {type})
with (toast_tuple_target = 8160) on commit drop

-- name: copy
copy staged_memories from stdin (format binary)

-- name: move_vectors
insert into {vectors} (scope_id, id, kind, trust, idle, importance, embedding)
select %(scope_id)s, id, kind, trust, idle,
       case when {space} = (select folded_space from scopes where id = %(scope_id)s) then importance end,
       embedding
from staged_memories where embedding is not null

-- name: clear
truncate staged_memories
