-- name: role
select current_user as name, rolsuper or rolbypassrls as passes,
       coalesce(pg_has_role((select relowner from pg_class where oid = to_regclass('memories')), 'member'), false)
           as owns
  from pg_roles
 where rolname = current_user

-- name: begun
select exists (select from incarnations) as begun

-- name: active_space
select id, model, dimensions, state, precision from embedding_spaces where state = 'active'

-- name: applied
select name, checksum, oldest_program from schema_migrations
