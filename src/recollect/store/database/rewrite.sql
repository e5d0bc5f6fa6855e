-- name: tables
-- All tables with rows of scopes, and the job engine's; the planner's samples come last, after they are made again.
select pg_class.oid::regclass::text as name, pg_total_relation_size(pg_class.oid) as bytes,
       pg_class.relnamespace = 'pg_catalog'::regnamespace as catalog
from pg_class
where relkind = 'r' and (
    (relnamespace = 'public'::regnamespace and (
        relname in ('procrastinate_jobs', 'procrastinate_events', 'job_failures', 'agents')
        or exists (select from pg_attribute where attrelid = pg_class.oid and attname = 'scope_id')
    ))
    or pg_class.oid in ('pg_statistic'::regclass, 'pg_statistic_ext_data'::regclass)
)
order by catalog, name

-- name: forget_samples
-- An emptied table is not sampled again, and would keep its old samples.
select count(pg_clear_attribute_stats('public', relname::text, attname::text, false))
from pg_class join pg_attribute on attrelid = pg_class.oid
where pg_class.oid = %(name)s::regclass and attnum > 0 and not attisdropped

-- name: forget_samples_before_18
delete from pg_statistic where starelid = %(name)s::regclass

-- name: rewrite
vacuum (full, analyze, verbose) {table}

-- name: rewrite_catalog
vacuum (full, verbose) {table}

-- name: checkpoint
checkpoint
