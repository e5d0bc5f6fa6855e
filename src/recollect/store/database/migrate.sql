-- name: lock
select pg_advisory_lock(7230045918273645)

-- name: version
select current_setting('server_version_num')::int / 10000 as major

-- name: prepare
create table if not exists schema_migrations (
    name text primary key,
    checksum text not null,
    applied_at timestamptz not null default clock_timestamp(),
    -- A program is as old as its newest migration; null allows only programs that know this one.
    oldest_program integer
)

-- name: applied
select name, checksum from schema_migrations

-- name: record
insert into schema_migrations (name, checksum, oldest_program)
values (%(name)s, %(checksum)s, %(oldest_program)s)

-- name: show
grant select on schema_migrations to recollect_service

-- name: has_job_engine
select to_regclass('procrastinate_jobs') is not null as present
