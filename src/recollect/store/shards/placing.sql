-- name: act_for
-- Row-level security binds the owner, too.
select set_config('recollect.tenant', %(tenant_id)s::text, false)

-- name: suspend
select suspend_writes(%(tenant_id)s)

-- name: resume
select resume_writes(%(tenant_id)s)

-- name: claims
-- The part of a tenant on this server, its number of memories, and whether an erasure is not finished.
select first_bucket, last_bucket, generation, state,
       (select coalesce(sum(memory_count), 0)::bigint from scopes where tenant_id = %(tenant_id)s) as memories,
       awaited,
       exists (select from erasure_receipts where tenant_id = %(tenant_id)s and finished_at is null) as erasing
from placements where tenant_id = %(tenant_id)s and state <> 'closed' order by first_bucket

-- name: is_home
select exists (
    select from placements where tenant_id = %(tenant_id)s and first_bucket = -1 and state <> 'closed') as is_home

-- name: has_rows
-- A scope with rows has a row in `scopes`, which is never deleted.
select exists (select from scopes where tenant_id = %(tenant_id)s)
    or exists (select from api_keys where tenant_id = %(tenant_id)s) as present

-- name: forget_closed
-- Placements that were closed before any row was restored.
delete from placements where tenant_id = %(tenant_id)s and state = 'closed'

-- name: await_rows
insert into placements (tenant_id, first_bucket, last_bucket, generation, state, awaited)
values (%(tenant_id)s, -1, 4095, %(generation)s, 'fenced', %(memories)s)
on conflict (tenant_id, first_bucket) do update set generation = excluded.generation, awaited = excluded.awaited

-- name: close
update placements set state = 'closed' where tenant_id = %(tenant_id)s and state = 'fenced'

-- name: forget_placements
delete from placements where tenant_id = %(tenant_id)s

-- name: add_tenant
insert into tenants (id, name) select %(tenant_id)s, %(name)s
where not exists (select from tenants where id = %(tenant_id)s)

-- name: limits
select tokens_per_day, requests_per_second, burst, bytes_per_minute, largest_body, change_streams from tenants
where id = %(tenant_id)s

-- name: set_limits
update tenants set tokens_per_day = given.tokens_per_day, requests_per_second = given.requests_per_second,
    burst = given.burst, bytes_per_minute = given.bytes_per_minute, largest_body = given.largest_body,
    change_streams = given.change_streams
from jsonb_populate_record(null::tenants, %(row)s) as given where tenants.id = %(tenant_id)s

-- name: rows
select to_jsonb({table}) - 'tenant_id' as row from {table} where tenant_id = %(tenant_id)s

-- name: add_row
insert into {table} select (jsonb_populate_record(null::{table}, %(row)s || jsonb_build_object('tenant_id', %(tenant_id)s))).*
on conflict do nothing
