-- What happens later: the job engine's own tables, used by the service's role; jobs carry ids, never content.

grant select, insert, update, delete
    on procrastinate_jobs, procrastinate_events, procrastinate_periodic_defers, procrastinate_workers
    to recollect_service;
grant usage on sequence procrastinate_jobs_id_seq, procrastinate_events_id_seq, procrastinate_periodic_defers_id_seq
    to recollect_service;

-- A write asks whether its scope has a job waiting already; the engine indexes locks of running jobs only.
create index waiting_jobs_by_lock on procrastinate_jobs (lock) where status = 'todo';

-- Why a job failed the last time: the engine keeps when, not why. Our own errors' words, which never quote content.
create table job_failures (
    job_id bigint primary key references procrastinate_jobs on delete cascade,
    reason text not null,
    failed_at timestamptz not null default clock_timestamp()
);
grant select, insert, update on job_failures to recollect_service;
