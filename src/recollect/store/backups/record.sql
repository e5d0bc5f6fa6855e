-- name: freeze
set transaction isolation level repeatable read, read only

-- name: snapshot
select pg_export_snapshot() as name

-- name: sees_all
select rolsuper or rolbypassrls as sees_all from pg_roles where rolname = current_user

-- name: describe
select incarnations.id as incarnation, current_database()::text as database, current_setting('server_version_num')::int as server,
       (select max(name) from schema_migrations where name !~ '/') as schema
from incarnations

-- name: roles
-- Those that own something in this database or have rights on it; the server's first role depends on nothing.
select rolname::text as name from pg_roles
where oid = (select relowner from pg_class where oid = 'memories'::regclass) or oid in (
    select refobjid from pg_shdepend
    where refclassid = 'pg_authid'::regclass and dbid = (select oid from pg_database where datname = current_database())
)
order by rolname

-- name: every_role
select rolname::text as name from pg_roles

-- name: create_role
create role {role}

-- name: tables
select relname::text as name from pg_class
where relkind = 'r' and relnamespace = 'public'::regnamespace and relname !~ '^procrastinate' and relname <> 'incarnations'
  and not exists (select from pg_depend where objid = pg_class.oid and deptype = 'e')
order by relname

-- name: count
select count(*) as rows from {table}

-- name: has_amcheck
select name from pg_available_extensions where name = 'amcheck'

-- name: add_amcheck
create extension if not exists amcheck

-- name: indexes
select pg_index.indexrelid::bigint as number from pg_index
join pg_class on pg_class.oid = pg_index.indexrelid
join pg_am on pg_am.oid = pg_class.relam and amname = 'btree'
where relnamespace = 'public'::regnamespace and indisready and indisvalid and relpersistence <> 't'

-- name: check_index
select bt_index_check(%(index)s::oid::regclass, true)

-- name: close
delete from incarnations returning begun_at

-- name: renew
select renew_incarnation() as id

-- name: sample
analyze

-- name: scope
select agent, "user" from scopes where tenant_id = current_tenant() and id = %(scope_id)s

-- name: has_purged
select from purge_receipts where scope_id = %(scope_id)s and id = %(receipt)s

-- name: has_erased
select from erasure_receipts where tenant_id = current_tenant() and id = %(receipt)s and erased_at is not null

-- name: drop_database
drop database {name}

-- name: rename
alter database {old} rename to {new}
