-- name: known
select asked.id as asked, entities.id, entities.name, entities.type
from unnest(%(ids)s::uuid[]) as asked (id)
join entities on entities.scope_id = %(scope_id)s and entities.id = leads_to(%(scope_id)s, asked.id, null)

-- name: add
insert into entity_merges (scope_id, absorbed_id, kept_id, merged_at)
values (%(scope_id)s, %(absorbed)s, %(kept)s, %(moment)s)

-- name: end
-- Find the entity that has the facts before the merge ends.
with held as (
    select scope_id, absorbed_id, merged_at, leads_to(scope_id, absorbed_id, null) as kept from entity_merges
    where scope_id = %(scope_id)s and absorbed_id = %(absorbed)s and split_at is null
), ended as (
    update entity_merges set split_at = %(moment)s
    from held
    where entity_merges.scope_id = held.scope_id and entity_merges.absorbed_id = held.absorbed_id
      and entity_merges.merged_at = held.merged_at
)
select kept, merged_at from held

-- name: ended
-- Versions that the merge ended, with their facts; not those of which a later version ended for another reason.
select ended.id, ended.lineage from (
    select id, lineage, version from beliefs
    where scope_id = %(scope_id)s and subject_id = %(absorbed)s and superseded_at = %(merged_at)s
    union
    select id, lineage, version from beliefs
    where scope_id = %(scope_id)s and object_id = %(absorbed)s and superseded_at = %(merged_at)s
) ended
where not exists (
    select from beliefs later
    where later.scope_id = %(scope_id)s and later.lineage = ended.lineage and later.version > ended.version
) or exists (
    select from beliefs believed
    where believed.scope_id = %(scope_id)s and believed.lineage = ended.lineage and believed.superseded_at is null
)
