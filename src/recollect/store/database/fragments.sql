-- Parts of queries that many files need; the loader puts them in where a query has their name in braces.
-- this_scope: the number of the scope that a caller names, of the tenant that the connection is bound to.
-- not_erased: not a scope whose user was erased. It has the receipt in place of the name, which begins as no name does.

-- name: this_scope
(select id from scopes where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s)

-- name: not_erased
left("user", 1) <> '/'
