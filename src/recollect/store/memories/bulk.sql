-- name: stage_memories
create temporary table staged_memories (like memories) on commit drop

-- name: stage_features
create temporary table staged_features (like memory_features including defaults) on commit drop

-- name: stage_terms
create temporary table staged_terms (like memory_terms) on commit drop

-- name: stage_vectors
create temporary table staged_vectors (like {vectors}) on commit drop

-- name: copy_memories
copy staged_memories (scope_id, origin, created_at, {columns}) from stdin (format binary)

-- name: copy_features
copy staged_features (scope_id, origin, {features}) from stdin (format binary)

-- name: copy_terms
copy staged_terms (scope_id, id, kind, trust, terms, weights, draw) from stdin (format binary)

-- name: copy_vectors
copy staged_vectors (scope_id, id, kind, trust, idle, importance, embedding) from stdin (format binary)

-- name: move_memories
insert into memories select * from staged_memories

-- name: move_features
insert into memory_features (scope_id, origin, {features}) select scope_id, origin, {features} from staged_features

-- name: move_terms
insert into memory_terms select * from staged_terms

-- name: move_vectors
insert into {vectors} (scope_id, id, kind, trust, idle, importance, embedding)
select scope_id, id, kind, trust, idle,
       case when {space} = (
           select folded_space from scopes where id = (select scope_id from staged_vectors limit 1)
       ) then importance end,
       embedding
from staged_vectors

-- name: clear_memories
truncate staged_memories

-- name: clear_features
truncate staged_features

-- name: clear_terms
truncate staged_terms

-- name: clear_vectors
truncate staged_vectors
