-- name: standing
-- The data that a revision needs of a memory, in a locked scope or before.
select memories.withheld, coalesce(own.lineage, memories.id) as lineage, coalesce(own.version, 1) as version,
       coalesce((
           select every.id from beliefs every
           where every.scope_id = memories.scope_id and every.lineage = own.lineage and every.superseded_at is null
       ), case when own.superseded_at is null then memories.id end) as current_id,
       own.subject_id is not null as joins_entities,
       exists (select from items where items.scope_id = memories.scope_id and items.memory_id = memories.id) as item,
       said.number, said.parts, said.attachments, said.conversation_id, features.role
from memories
left join beliefs own on own.scope_id = memories.scope_id and own.id = memories.id
join memory_features features on features.scope_id = memories.scope_id and features.id = memories.id
left join messages said on said.scope_id = memories.scope_id and said.id = memories.id
where memories.scope_id = {this_scope} and memories.id = %(id)s

-- name: every_version
select id from beliefs
where scope_id = {this_scope} and lineage = coalesce((
    select lineage from beliefs where scope_id = {this_scope} and id = %(id)s
), %(id)s)
order by version

-- name: former
select former.id from beliefs own
join beliefs former on former.scope_id = own.scope_id and former.lineage = own.lineage and former.id <> own.id
where own.scope_id = %(scope_id)s and own.id = %(heir)s

-- name: derived
select id, learned from derived_from_versions(%(scope_id)s, %(versions)s::uuid[])

-- name: close
select close_versions(%(scope_id)s, %(ids)s::uuid[], %(moment)s)

-- name: begin
-- A memory without versions becomes its first version before another one is added.
insert into beliefs (scope_id, id, lineage, version, created_at)
select scope_id, id, id, 1, created_at from memories where scope_id = %(scope_id)s and id = %(id)s
on conflict (scope_id, id) do nothing

-- name: add
select add_version(%(scope_id)s, %(elder)s, %(heir)s, %(moment)s, %(contested)s, true) as version

-- name: withhold
-- For the same reason as the previous version: an archived conversation, or a fact that has ended.
select withhold_memories(%(scope_id)s, array[%(id)s::uuid], %(reason)s)

-- name: inherit_links
select inherit_links(%(scope_id)s, %(elder)s, %(heir)s, %(topics)s)

-- name: replace_message
select replace_message(%(scope_id)s, %(elder)s, %(heir)s, %(row)s)

-- name: keep_contested_message
select keep_contested_message(%(scope_id)s, %(elder)s, %(heir)s, %(row)s)

-- name: read_segment_again
select read_segment_again(%(scope_id)s, %(conversation)s, %(number)s)

-- name: learn_again
select learn_again(%(scope_id)s, %(ids)s::uuid[])

-- name: leave_summary
update conversations set summary_id = null where scope_id = %(scope_id)s and summary_id = any (%(ids)s::uuid[])

-- name: add_unworded
-- A version of each derived memory that rests on the new one, and waits until a model has worded it.
insert into memories (scope_id, {columns}, origin, created_at, withheld)
select %(scope_id)s, {unworded}, elder.origin, %(moment)s, 'to_rederive'
from unnest(%(elders)s::uuid[], %(heirs)s::uuid[]) as given (elder, heir)
join memories elder on elder.scope_id = %(scope_id)s and elder.id = given.elder

-- name: add_features_unworded
insert into memory_features (scope_id, {features}, origin, state)
select %(scope_id)s, {features_unworded}, elder.origin, 'withheld'
from unnest(%(elders)s::uuid[], %(heirs)s::uuid[]) as given (elder, heir)
join memory_features elder on elder.scope_id = %(scope_id)s and elder.id = given.elder

-- name: move_evidence
-- Evidence in `former` is replaced by that in `latter`.
insert into evidence (scope_id, memory_id, source_id)
select distinct %(scope_id)s::bigint, given.heir, coalesce(instead.latter, evidence.source_id)
from unnest(%(elders)s::uuid[], %(heirs)s::uuid[]) as given (elder, heir)
join evidence on evidence.scope_id = %(scope_id)s and evidence.memory_id = given.elder
left join unnest(%(former)s::uuid[], %(latter)s::uuid[]) as instead (former, latter)
    on instead.former = evidence.source_id

-- name: add_each
select add_version(%(scope_id)s, given.elder, given.heir, %(moment)s, false, false)
from unnest(%(elders)s::uuid[], %(heirs)s::uuid[]) as given (elder, heir)

-- name: replace_summaries
update conversations set summary_id = given.heir
from unnest(%(elders)s::uuid[], %(heirs)s::uuid[]) as given (elder, heir)
where scope_id = %(scope_id)s and summary_id = given.elder

-- name: log
select log_change(%(scope_id)s, 'revised', %(ids)s::uuid[])

-- name: pin
-- If it is visible, as for evidence.
with found as materialized (
    select features.scope_id, features.id, features.pinned
    from memory_features features join memories using (scope_id, id)
    where features.scope_id = {this_scope} and features.id = %(id)s
      and (memories.withheld is null or memories.withheld in ('archived', 'faded', 'past'))
      and (not {any_deleted_of_tenant} or not rests_on_deleted(memories.scope_id, memories.id))
), changed as (
    update memory_features features set pinned = %(pinned)s from found
    where features.scope_id = found.scope_id and features.id = found.id and found.pinned <> %(pinned)s
    returning features.scope_id, features.id
), logged as materialized (
    select log_change(scope_id, 'pinned', array_agg(id order by id)) from changed group by scope_id
)
select found.pinned <> %(pinned)s as changed from found left join logged on true
