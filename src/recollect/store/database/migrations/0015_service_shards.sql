-- Which buckets of which tenants this server serves, where it is one of several. A server alone has no rows here, and is
-- not asked. Bucket -1 is what belongs to a tenant and to no scope: keys, limits, receipts.
create table placements (
    tenant_id integer not null references tenants,
    first_bucket smallint not null check (first_bucket between -1 and 4095),
    last_bucket smallint not null check (last_bucket between first_bucket and 4095),
    -- Counted up whenever the buckets move, or are divided; who knows an earlier one has an old map.
    generation integer not null check (generation > 0),
    -- `fenced` is read and not written, while the last of it goes to another server. `closed` is served by another one:
    -- it is still to come here, or it has gone, and is kept for a day.
    state text not null default 'open' check (state in ('open', 'fenced', 'closed')),
    -- A fence ends by itself: who has put it up may have died.
    fenced_until timestamptz not null default '-infinity',
    closed_at timestamptz,
    primary key (tenant_id, first_bucket),
    exclude using gist (tenant_id with =, int4range(first_bucket, last_bucket, '[]') with &&)
);
alter table placements enable row level security;
create policy of_tenant on placements
    using (tenant_id = (select current_tenant())) with check (tenant_id = (select current_tenant()));
grant select on placements to recollect_service;

-- Whether a scope is served here: upkeep leaves out what another server has. Where nothing is closed, nothing is compared.
create function is_served(asked_scope bigint) returns boolean
    language sql stable
    return not exists (select from placements where state = 'closed')
        or not exists (
            select from placements
            where tenant_id = asked_scope >> 40 and (asked_scope >> 28 & 4095) between first_bucket and last_bucket
              and state = 'closed');

-- The number of the locks by which the writes of a tenant and its fence keep apart.
create function placement_lock() returns integer
    language sql immutable parallel safe
    return 7077;

-- Bind a transaction to the buckets of one placement, and refuse it if it goes by an old map. A write also keeps the
-- fence from closing until it has ended: it takes a lock first, and then looks with a snapshot of its own.
create function check_placement(asked_tenant integer, asked_bucket integer, known_generation integer, writing boolean)
    returns void
    language plpgsql security definer
    set search_path = pg_catalog, public, pg_temp
as $$
declare
    served record;
begin
    if writing then
        perform pg_advisory_xact_lock_shared(placement_lock(), asked_tenant);
    end if;
    select first_bucket, last_bucket, generation, state, fenced_until into served from placements
    where tenant_id = asked_tenant and asked_bucket between first_bucket and last_bucket;
    if not found or served.generation <> known_generation or served.state = 'closed' then
        raise exception 'The buckets are served elsewhere.' using errcode = 'RC001';
    elsif writing and served.state = 'fenced' and served.fenced_until > clock_timestamp() then
        raise exception 'The buckets are being moved.' using errcode = 'RC002';
    end if;
    perform set_config('recollect.first_bucket', greatest(served.first_bucket, 0)::text, true),
            set_config('recollect.last_bucket', served.last_bucket::text, true);
end $$;
revoke execute on function check_placement(integer, integer, integer, boolean) from public;
grant execute on function check_placement(integer, integer, integer, boolean) to recollect_service;

-- The same for a job, which works for one server by nobody's map: for a bucket, or, without one, for what is found to be
-- served here of a whole tenant.
create function check_served(asked_tenant integer, asked_bucket integer, writing boolean) returns void
    language plpgsql security definer
    set search_path = pg_catalog, public, pg_temp
as $$
begin
    if writing then
        perform pg_advisory_xact_lock_shared(placement_lock(), asked_tenant);
    end if;
    if exists (select from placements where tenant_id = asked_tenant and state = 'closed'
               and asked_bucket between first_bucket and last_bucket) then
        raise exception 'The buckets are served elsewhere.' using errcode = 'RC001';
    elsif writing and exists (select from placements where tenant_id = asked_tenant and state = 'fenced'
               and fenced_until > clock_timestamp() and coalesce(asked_bucket between first_bucket and last_bucket, true)) then
        raise exception 'The buckets are being moved.' using errcode = 'RC002';
    end if;
end $$;
revoke execute on function check_served(integer, integer, boolean) from public;
grant execute on function check_served(integer, integer, boolean) to recollect_service;

-- By how many seconds a replica may be behind. It has all that was committed before the last commit that it replayed, and,
-- if it has replayed all that it heard of, before the primary's last word. Only some owners may see when that was.
create function staleness() returns double precision
    language sql stable security definer
    set search_path = pg_catalog, public, pg_temp
    begin atomic
        select extract(epoch from clock_timestamp() - greatest(
            pg_last_xact_replay_timestamp(),
            (select last_msg_send_time from pg_stat_wal_receiver where latest_end_lsn <= pg_last_wal_replay_lsn())));
    end;
revoke execute on function staleness() from public;

-- End a read on a replica that has not replayed what the caller has seen, after waiting for it so many seconds; where the
-- caller has seen nothing of this timeline, on one that is too far behind. The timeline is that of the last checkpoint: for a
-- while after a change it is too low, and then the primary reads.
create function check_replayed(asked_timeline bigint, asked_lsn pg_lsn, seconds double precision, max_staleness double precision)
    returns void
    language plpgsql security definer
    set search_path = pg_catalog, public, pg_temp
as $$
declare
    until timestamptz := clock_timestamp() + seconds * interval '1 second';
begin
    if not pg_is_in_recovery() then
        raise exception 'This is no replica.' using errcode = 'RC004';
    elsif asked_timeline = (select timeline_id from pg_control_checkpoint()) then
        loop
            if pg_last_wal_replay_lsn() >= asked_lsn then
                return;
            end if;
            exit when clock_timestamp() >= until;
            perform pg_sleep(0.001);
        end loop;
    elsif staleness() <= max_staleness then
        return;
    end if;
    raise exception 'The replica is behind.' using errcode = 'RC004';
end $$;
revoke execute on function check_replayed(bigint, pg_lsn, double precision, double precision) from public;
grant execute on function check_replayed(bigint, pg_lsn, double precision, double precision) to recollect_service;

-- Let nobody write to some buckets of a tenant for so long: wait for the writes under way, and refuse those that come.
create function fence_placement(asked_tenant integer, asked_bucket integer, seconds double precision) returns void
    language plpgsql as $$
begin
    perform pg_advisory_xact_lock(placement_lock(), asked_tenant);
    update placements set state = 'fenced', fenced_until = clock_timestamp() + seconds * interval '1 second'
    where tenant_id = asked_tenant and first_bucket = asked_bucket and state in ('open', 'fenced');
end $$;
revoke execute on function fence_placement(integer, integer, double precision) from public;

-- Let nobody read or write them any more, if the fence still stands; whether it did. After a fence that has ended by
-- itself something may have been written.
create function close_placement(asked_tenant integer, asked_bucket integer) returns boolean
    language plpgsql as $$
begin
    perform pg_advisory_xact_lock(placement_lock(), asked_tenant);
    update placements set state = 'closed', closed_at = clock_timestamp()
    where tenant_id = asked_tenant and first_bucket = asked_bucket
      and (state = 'closed' or state = 'fenced' and fenced_until > clock_timestamp());
    return found;
end $$;
revoke execute on function close_placement(integer, integer) from public;

-- By which numbers jobs were known on the servers that they came from with their buckets.
create table moved_jobs (
    shard smallint not null,
    number bigint not null,
    job_id bigint not null references procrastinate_jobs on delete cascade,
    primary key (shard, number)
);
create index moved_jobs_by_job on moved_jobs (job_id);
grant select on moved_jobs to recollect_service;
