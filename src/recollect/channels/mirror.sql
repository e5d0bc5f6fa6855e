-- name: standing
-- The state of the ready mirror in one scope, with the age of the oldest change that it lacks.
select mirrors.generation, mirrors.shard, held.position, scopes.change_number,
       mirrors.incarnation = (select id from incarnations) as same_record,
       mirrors.space_id is not distinct from (select id from embedding_spaces where state = 'active') as same_space,
       (select extract(epoch from clock_timestamp() - changes.at)::float8 from changes
        where changes.scope_id = scopes.id and changes.number = held.position + 1) as behind_seconds
from mirrors
join scopes on scopes.id = %(scope_id)s
left join mirror_positions held
    on held.scope_id = scopes.id and held.mirror = mirrors.name and held.generation = mirrors.generation
where mirrors.name = %(mirror)s and mirrors.state = 'ready'

-- name: admitted
select id from ({allowed}) as admitted (id) limit %(most)s
