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
