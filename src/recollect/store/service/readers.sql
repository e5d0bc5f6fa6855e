-- name: has_role
select from pg_roles where rolname = %(name)s

-- name: add_reader
-- A reader whose role was dropped by hand may still exist.
insert into readers (name, tenant_id) values (%(name)s, %(tenant_id)s)
on conflict (name) do update set tenant_id = excluded.tenant_id, created_at = clock_timestamp()

-- name: list_readers
select readers.name, tenants.name as tenant, readers.created_at
from readers join tenants on tenants.id = readers.tenant_id
where %(name)s::text is null or readers.name = %(name)s
order by readers.name

-- name: remove_reader
delete from readers where name = %(name)s returning name

-- name: create_role
create role {role} login nosuperuser nobypassrls nocreatedb nocreaterole connection limit 5
    password {password} in role recollect_readers

-- name: bound_statements
alter role {role} set statement_timeout = '30s'

-- name: bound_transactions
alter role {role} set idle_in_transaction_session_timeout = '60s'

-- name: read_only
alter role {role} set default_transaction_read_only = on

-- name: may_bound_files
-- A superuser may, and roles with a grant, as in deploy/roles.sql.
select from pg_roles where rolname = current_user and has_parameter_privilege('temp_file_limit', 'set')

-- name: bound_files
alter role {role} set temp_file_limit = '1GB'

-- name: find_open_database
-- All roles may create temporary tables in a database, until its owner revokes this.
select datname as name from pg_database
where datname = current_database() and pg_has_role(datdba, 'usage') and has_database_privilege('public', oid, 'temporary')

-- name: grant_temporary
grant temporary on database {database} to recollect_service

-- name: revoke_temporary
revoke temporary on database {database} from public

-- name: become_member
-- Objects of a role are dropped by its members, and an owner who is not a superuser is not a member yet.
grant {role} to current_user

-- name: drop_owned
drop owned by {role}

-- name: drop_role
drop role if exists {role}
