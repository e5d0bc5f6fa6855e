-- name: counted
select array_agg(found.id) as ids, array_agg(found.kind) as kinds
from (select distinct unnest(%(ids)s::uuid[]) as id) asked
cross join lateral (
    -- One by one, in the order of the key: with a list of IDs the planner would rather read the scope by time.
    select id, kind, idle, withheld from memories
    where scope_id = %(scope_id)s and memories.id between asked.id and asked.id
    order by memories.id limit 1
) found
where not found.idle and found.withheld is null
having count(*) > 0

-- name: record
with recorded as (
    insert into access_log (scope_id, accessed_at, ids, kinds)
    select %(scope_id)s, coalesce(%(moment)s::timestamptz, clock_timestamp()), counted.ids, counted.kinds
    from ({counted}) counted
    returning id, ids
), unfolded as materialized (
    -- One more than this statement sees: the one that it adds.
    select count(*) + 1 as recalls
    from (select from access_log where scope_id = %(scope_id)s limit %(longest)s) as before
)
select recorded.id, recorded.ids,
       case when unfolded.recalls >= %(fold_at)s
                 and not exists (select from procrastinate_jobs where lock = %(lock)s and status = 'todo')
            then procrastinate_defer_jobs_v1(array[
                row('fold', 'fold', 0, %(lock)s, null, jsonb_build_object('scope_id', %(scope_id)s::bigint), null)
                ::procrastinate_job_to_defer_v1
            ]) end as deferred,
       case when unfolded.recalls >= %(longest)s
                 and pg_try_advisory_xact_lock(hashint8extended(%(scope_id)s, 6))
            then fold_accesses(%(scope_id)s) is null end as folded
from recorded cross join unfolded

-- name: correct
update access_log set ids = counted.ids, kinds = counted.kinds
from ({counted}) counted
where access_log.scope_id = %(scope_id)s and access_log.id = %(id)s
returning access_log.id, access_log.ids

-- name: fold
select fold_accesses(%(scope_id)s)
