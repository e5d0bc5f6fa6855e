-- name: unmirrored
select scope_id, number, is_present(scope_id) as present from unmirrored
where scope_id > %(after)s order by scope_id limit %(limit)s

-- name: renew
-- Later changes wait from about now on.
update unmirrored set since = clock_timestamp()
from unnest(%(scopes)s::bigint[], %(numbers)s::bigint[]) as followed (scope_id, number)
where unmirrored.scope_id = followed.scope_id and unmirrored.number > followed.number

-- name: settle
-- Scopes that mirrors have removed have no positions any more, unless they were restored.
with settled as (
    delete from unmirrored
    using unnest(%(scopes)s::bigint[], %(numbers)s::bigint[], %(present)s::boolean[]) as followed (scope_id, number, present)
    where unmirrored.scope_id = followed.scope_id and unmirrored.number <= followed.number
      and is_present(followed.scope_id) = followed.present
    returning followed.scope_id, followed.present
)
delete from mirror_positions where scope_id in (select scope_id from settled where not present)

-- name: positions
select scope_id, position from mirror_positions
where mirror = %(mirror)s and generation = %(generation)s and scope_id = any (%(scopes)s::bigint[])

-- name: save
insert into mirror_positions (scope_id, mirror, generation, position)
select followed.scope_id, %(mirror)s, %(generation)s, followed.position
from unnest(%(scopes)s::bigint[], %(positions)s::bigint[]) as followed (scope_id, position)
-- A dropped generation is not followed any further.
where exists (select from mirrors where name = %(mirror)s and generation = %(generation)s)
order by followed.scope_id
on conflict (scope_id, mirror, generation) do update
set position = greatest(mirror_positions.position, excluded.position), applied_at = clock_timestamp()

-- name: hold_purges
select id from purge_receipts receipt
where (scope_id, id) in (
    select scope_id, receipt_id from awaited_mirrors where scope_id = any (%(scopes)s::bigint[]))
order by id for no key update

-- name: hold_erasures
select id from erasure_receipts receipt
where tenant_id = current_tenant() and id in (
    select receipt_id from awaited_mirrors where scope_id = any (%(scopes)s::bigint[]))
order by id for no key update

-- name: end
-- A receipt waits for all generations of a mirror: one that is being filled may have erased rows.
with ended as (
    delete from awaited_mirrors awaited
    where scope_id = any (%(scopes)s::bigint[]) and mirror = %(mirror)s and (%(dropped)s or number <= (
        select min(position) from mirror_positions held
        join mirrors on mirrors.name = held.mirror and mirrors.generation = held.generation
        where held.scope_id = awaited.scope_id and held.mirror = awaited.mirror))
    returning scope_id, receipt_id, mirror
), noted as (
    update purge_receipts receipt
    set mirrors = receipt.mirrors || jsonb_build_object(%(mirror)s::text, %(note)s::text),
        finished_at = case when not exists (
            select from awaited_mirrors awaited
            where awaited.scope_id = receipt.scope_id and awaited.receipt_id = receipt.id and awaited.mirror <> %(mirror)s
        ) then clock_timestamp() end
    where (scope_id, id) in (select scope_id, receipt_id from ended)
), noted_erasures as (
    update erasure_receipts receipt
    set mirrors = case when waiting.here then receipt.mirrors
                       else receipt.mirrors || jsonb_build_object(%(mirror)s::text, %(note)s::text) end,
        finished_at = case when not waiting.here and not waiting.elsewhere and erased_at is not null and unreported = 0
                           then clock_timestamp() end
    from (
        select id, exists (
            select from awaited_mirrors awaited
            where awaited.receipt_id = id and awaited.mirror = %(mirror)s
              and awaited.scope_id not in (select scope_id from ended where receipt_id = id)
        ) as here, exists (
            select from awaited_mirrors awaited where awaited.receipt_id = id and awaited.mirror <> %(mirror)s
        ) as elsewhere
        from (select distinct receipt_id as id from ended) receipts
    ) waiting
    where receipt.tenant_id = current_tenant() and receipt.id = waiting.id
)
select count(*) as ended from ended

-- name: forget
delete from mirror_positions
where mirror = %(mirror)s and (%(generation)s::integer is null or generation = %(generation)s)
  and scope_id = any (%(scopes)s::bigint[])
