-- Jobs that are done once: what a job has effected, how far it is, and whose it is.

-- What was done for a job, written in the transaction that does it. A row outlives its job, until it is swept: as long
-- as there is a job that could be run again, there is the note that it was done.
create table job_effects (
    scope_id bigint not null,
    key text not null check (length(key) between 1 and 255),
    job_id bigint not null,
    done_at timestamptz not null default clock_timestamp(),
    primary key (scope_id, key)
);
select protect_scoped('job_effects');

-- How far a job is that takes more than a moment; `total` is null where nobody knows.
create table job_progress (
    job_id bigint primary key references procrastinate_jobs on delete cascade,
    done bigint not null,
    total bigint,
    updated_at timestamptz not null default clock_timestamp()
);
grant select, insert, update on job_progress to recollect_service;

-- How far a memory has come. It has failed when the job that was to give it a vector was given up, and none waits.
create function memory_state(asked_scope bigint, asked_id uuid) returns text
    language plpgsql stable as $$
declare
    space integer := (select id from embedding_spaces where state = 'active');
    embedded boolean := exists (
        select from withheld_vectors where scope_id = asked_scope and id = asked_id and space_id = space);
    lock_of_job text := 'embed:' || asked_scope;
begin
    if space is not null and not embedded then
        execute format('select exists (select from %I where scope_id = $1 and id = $2)', 'vectors_' || space)
            into embedded using asked_scope, asked_id;
    end if;
    if embedded then
        return 'embedded';
    elsif exists (select from pending_embeddings where scope_id = asked_scope and id = asked_id)
        and exists (select from procrastinate_jobs
                    where (args ->> 'scope_id')::bigint >> 40 = asked_scope >> 40 and status = 'failed'
                      and status in ('todo', 'doing', 'failed') and lock = lock_of_job)
        and not exists (select from procrastinate_jobs where lock = lock_of_job and status = 'todo')
        and not exists (select from procrastinate_jobs where lock = lock_of_job and status = 'doing') then
        return 'failed';
    end if;
    return 'stored';
end $$;

-- The engine's tables know no tenants: whoever asks for a tenant's jobs says so in the query, and finds them by this.
create index unfinished_jobs_by_tenant on procrastinate_jobs (((args ->> 'scope_id')::bigint >> 40), id)
    where status in ('todo', 'doing', 'failed');
