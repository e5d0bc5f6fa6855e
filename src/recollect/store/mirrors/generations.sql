-- name: list
select name, generation, mirrors.state, incarnation, mirrors.space_id, beats, shard,
       spaces.model, spaces.dimensions, spaces.precision, spaces.state as space_state,
       incarnation = (select id from incarnations) as same_record,
       mirrors.space_id is not distinct from (select id from embedding_spaces where state = 'active') as same_space
from mirrors left join embedding_spaces spaces on spaces.id = mirrors.space_id
where %(mirror)s::text is null or name = %(mirror)s
order by name, mirrors.state desc

-- name: hold_log
lock table changes in share mode

-- name: begin
-- A generation that is being filled from the same record is resumed.
with begun as (
    insert into mirrors (name, generation, incarnation, space_id, shard)
    select %(mirror)s, coalesce((select max(generation) from mirrors where name = %(mirror)s), 0) + 1,
           (select id from incarnations), (select id from embedding_spaces where state = 'active'), %(shard)s
    where not exists (select from mirrors where name = %(mirror)s and state = 'building')
    returning generation
)
select generation from begun
union all
select generation from mirrors
where name = %(mirror)s and state = 'building' and incarnation = (select id from incarnations)
  and space_id is not distinct from (select id from embedding_spaces where state = 'active')

-- name: retire
delete from mirrors where name = %(mirror)s and state = 'ready' and generation <> %(generation)s

-- name: activate_generation
update mirrors set state = 'ready' where name = %(mirror)s and generation = %(generation)s

-- name: remove
delete from mirrors where name = %(mirror)s and (%(generation)s::integer is null or generation = %(generation)s)

-- name: beat
update mirrors set beats = greatest(beats, %(beats)s) where name = %(mirror)s and generation = %(generation)s

-- name: standing
select scopes, behind, seconds from mirror_standing(%(mirror)s, %(generation)s)
