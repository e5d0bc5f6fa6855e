-- name: versions
-- Current versions for pairs of entities and for lineages; any version names its lineage.
with wanted as materialized (
    select believed.id from unnest(%(subjects)s::uuid[]) as asked (subject)
    cross join lateral (
        select id from beliefs
        where scope_id = %(scope_id)s and superseded_at is null and subject_id = asked.subject
          and (%(newest)s::integer is null or invalid_at is null or invalid_at > now())
        order by id desc
        limit %(newest)s
    ) believed
    union
    select believed.id from unnest(%(objects)s::uuid[]) as asked (object)
    cross join lateral (
        select id from beliefs where scope_id = %(scope_id)s and superseded_at is null and object_id = asked.object
        offset 0
    ) believed
    union
    select unnest(%(asked)s::uuid[])
    union
    select believed.id from unnest(%(ones)s::uuid[], %(others)s::uuid[]) as pair (one, other)
    cross join lateral (
        select id from beliefs
        where scope_id = %(scope_id)s and superseded_at is null and subject_id = pair.one and object_id = pair.other
        offset 0
    ) believed
    union
    select id from beliefs
    where scope_id = %(scope_id)s and superseded_at is null and subject_id is not null and lineage = any (array(
        select lineage from beliefs where scope_id = %(scope_id)s and id = any (%(lineages)s::uuid[])
        union all
        select unnest(%(lineages)s::uuid[])
    ))
)
select beliefs.id, lineage, version, subject_id, beliefs.predicate, object_id, valid_at, invalid_at,
       beliefs.created_at, superseded_at, memories.content, memories.speaker, memories.importance, memories.importance_from, memories.subject,
       memories.predicate as stated, memories.object, memories.keywords, memories.trust, memories.occurred_at,
       memories.embedding_text, memories.metadata, memories.expires_at, memories.withheld,
       (select pinned from memory_features features where features.scope_id = %(scope_id)s
            and features.id = memories.id) as pinned,
       coalesce(memories.withheld in ('deleted', 'to_rederive'), false)
           or ({any_deleted_here} and rests_on_deleted(%(scope_id)s, beliefs.id)) as hidden,
       case when cardinality(%(lineages)s::uuid[]) > 0 then array(
           select id from beliefs every where every.scope_id = %(scope_id)s and every.lineage = beliefs.lineage
       ) else '{}' end as every_id
from wanted
-- By key, one by one: the planner does not know the length of a joined list, and would compare all with all.
cross join lateral (
    select * from beliefs every
    where every.scope_id = %(scope_id)s and every.id between wanted.id and wanted.id
    order by every.id limit 1
) beliefs
cross join lateral (
    select * from memories every
    where every.scope_id = %(scope_id)s and every.id between wanted.id and wanted.id
    order by every.id limit 1
) memories
order by beliefs.id

-- name: supersede
update beliefs set superseded_at = %(moment)s
where scope_id = %(scope_id)s and id = any (%(ids)s) and superseded_at is null

-- name: store
insert into beliefs
    (scope_id, id, lineage, version, subject_id, predicate, object_id, valid_at, invalid_at, created_at)
select %(scope_id)s, id, lineage, version, subject_id, predicate, object_id, valid_at, invalid_at, %(moment)s
from unnest(%(ids)s::uuid[], %(lineages)s::uuid[], %(versions)s::integer[], %(subjects)s::uuid[],
            %(predicates)s::text[], %(objects)s::uuid[], %(starts)s::timestamptz[], %(ends)s::timestamptz[])
    as given (id, lineage, version, subject_id, predicate, object_id, valid_at, invalid_at)

-- name: add_evidence
with added as (
    insert into evidence (scope_id, memory_id, source_id)
    select %(scope_id)s, memory_id, source_id
    from unnest(%(memory_ids)s::uuid[], %(source_ids)s::uuid[]) as given (memory_id, source_id)
    on conflict do nothing
    returning memory_id
)
select log_change(%(scope_id)s, 'changed', array_agg(distinct memory_id)) from added having count(*) > 0

-- name: inherit
select inherit_vectors(%(scope_id)s, %(heirs)s::uuid[], %(elders)s::uuid[]) as waiting

-- name: read
-- Without a time of belief, the current versions; without a valid time, facts of any time.
-- Facts about an entity can be in the order of valid time; the versions of one fact are in the order of writing.
with place as (
    select id as scope_id from scopes
    where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
), asked as materialized (
    select leads_to((select scope_id from place), %(about)s::uuid, %(as_of)s::timestamptz) as id, coalesce((
        select about.lineage from beliefs about
        where about.scope_id = (select scope_id from place) and about.id = %(about)s
    ), %(about)s::uuid) as lineage
)
select beliefs.id, lineage, version, subject_id, beliefs.predicate, object_id, valid_at, invalid_at,
       beliefs.created_at, superseded_at, memories.content, memories.subject, memories.predicate as stated,
       memories.object
from beliefs
cross join lateral (
    select content, subject, predicate, object, withheld from memories
    where memories.scope_id = beliefs.scope_id and memories.id between beliefs.id and beliefs.id{filter}
    order by memories.id limit 1
) memories
cross join lateral (
    select case when lineage = (select lineage from asked) then '-infinity' else coalesce(valid_at, '-infinity') end
) as placed (since)
where beliefs.scope_id = (select scope_id from place) and subject_id is not null{times}
  and (%(ids)s::uuid[] is null or beliefs.id = any (array(select unnest(%(ids)s::uuid[]))))
  and (%(about)s::uuid is null or beliefs.id = any (array(
      select id from beliefs about
      where about.scope_id = (select scope_id from place) and subject_id = (select id from asked)
      union all
      select id from beliefs about
      where about.scope_id = (select scope_id from place) and object_id = (select id from asked)
      union all
      select id from beliefs about
      where about.scope_id = (select scope_id from place) and about.lineage = (select lineage from asked)
  )))
  and (%(predicate)s = '' or beliefs.predicate = %(predicate)s)
  and {after}
  and (memories.withheld is null or memories.withheld in ('archived', 'past', 'faded'))
  and (not {any_deleted_in_place} or not rests_on_deleted(beliefs.scope_id, beliefs.id))
order by {order}
limit %(limit)s

-- name: after
beliefs.id > %(cursor)s

-- name: by_age
beliefs.id

-- name: by_time
since, beliefs.id

-- name: after_time
(since, beliefs.id) > (coalesce((
    select last.valid_at from beliefs last
    where last.scope_id = (select scope_id from place) and last.id = %(cursor)s
      and last.lineage <> (select lineage from asked)
), '-infinity'), %(cursor)s)

-- name: believed
superseded_at is null

-- name: believed_then
beliefs.created_at <= %(as_of)s and (superseded_at is null or superseded_at > %(as_of)s)

-- name: true_then
(valid_at is null or valid_at <= %(at)s) and (invalid_at is null or invalid_at > %(at)s)

-- name: ended
select scope_id, id from ended_facts(%(limit)s)

-- name: lock
select id from scopes where id = %(scope_id)s for no key update

-- name: withhold
select withhold_memories(%(scope_id)s, %(ids)s::uuid[], 'past') as withheld
