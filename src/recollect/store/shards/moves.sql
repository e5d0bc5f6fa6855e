-- name: begin
insert into moves (tenant_id, first_bucket, last_bucket, source, target)
values (%(tenant_id)s, %(first_bucket)s, %(last_bucket)s, %(source)s, %(target)s)
returning id, tenant_id, first_bucket, last_bucket, source, target, state

-- name: under_way
select id, tenant_id, first_bucket, last_bucket, source, target, state from moves
where state not in ('done', 'ended') and (tenant_id = %(tenant_id)s or %(tenant_id)s::integer is null)
order by id

-- name: set_state
update moves set state = %(state)s, reason = %(reason)s,
    ended_at = case when %(state)s in ('done', 'ended') then clock_timestamp() end
where id = %(id)s

-- name: undivided
delete from placements where tenant_id = %(tenant_id)s and first_bucket = %(start)s

-- name: divide
-- Up to three placements in the place of one: before, within and behind the buckets that are to move.
insert into placements (tenant_id, first_bucket, last_bucket, shard_id, generation)
select %(tenant_id)s, part.first_bucket, part.last_bucket, %(source)s, %(generation)s + 1
from (values
    (%(start)s::integer, %(first_bucket)s::integer - 1),
    (%(first_bucket)s::integer, %(last_bucket)s::integer),
    (%(last_bucket)s::integer + 1, %(end)s::integer)
) as part (first_bucket, last_bucket)
where part.first_bucket <= part.last_bucket

-- name: switch
update placements set shard_id = %(target)s, generation = generation + 1
where tenant_id = %(tenant_id)s and first_bucket = %(first_bucket)s and shard_id = %(source)s

-- name: parts
-- What a shard serves, tenant by tenant.
select tenants.name, placements.first_bucket, placements.last_bucket
from placements join tenants on tenants.id = placements.tenant_id join shards on shards.id = placements.shard_id
where shards.name = %(name)s
order by tenants.id, placements.first_bucket
