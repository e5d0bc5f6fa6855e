-- Run once by a superuser, inside the empty database: who owns the tables, who serves, who matches terms.
-- psql reads the two passwords from the environment:
--   RECOLLECT_OWNER_PASSWORD=... RECOLLECT_SERVICE_PASSWORD=... psql -d recollect -f roles.sql
\set ON_ERROR_STOP on
\getenv owner_password RECOLLECT_OWNER_PASSWORD
\getenv service_password RECOLLECT_SERVICE_PASSWORD

-- CREATEROLE lets `recollect admin migrate` find the roles below in place; it gives no right over other roles.
create role recollect_owner login createrole password :'owner_password';
-- Owns nothing and cannot pass row-level security.
create role recollect_service login nosuperuser nobypassrls password :'service_password';
-- Owns the one function that matches terms; the owner must be able to hand it over.
create role recollect_matcher nologin nosuperuser nobypassrls;
grant recollect_matcher to recollect_owner;
-- Owns the functions that find what is due over all tenants; it reads times and numbers, no content.
create role recollect_upkeep nologin nosuperuser nobypassrls;
grant recollect_upkeep to recollect_owner;
-- Own the views for existing SQL, and may read them; the owner makes the roles that log in as readers.
create role recollect_compat nologin nosuperuser nobypassrls;
grant recollect_compat to recollect_owner;
create role recollect_readers nologin nosuperuser nobypassrls;
grant recollect_readers to recollect_owner with admin option;

select format('alter database %I owner to recollect_owner', current_database()) \gexec
create extension vector;

-- What PostgreSQL lets everybody do, and a reader could harm others by: advisory locks, large objects, messages in the log.
select format('revoke execute on function %s from public', oid::regprocedure),
       -- Who makes backups reads all data, and holds a lock for a moment.
       format('grant execute on function %s to recollect_owner, recollect_service, pg_read_all_data', oid::regprocedure)
from pg_proc where pronamespace = 'pg_catalog'::regnamespace
and proname ~ '^(pg_(try_)?advisory_|pg_logical_emit_message$|lo_(creat|create|from_bytea)$)' \gexec
-- How large the temporary files of a reader may be is the owner's to say.
grant set on parameter temp_file_limit to recollect_owner;
