-- Parts of queries that many files need; the loader puts them in where a query has their name in braces.
-- this_scope: the number of the scope that a caller names, of the tenant that the connection is bound to.

-- name: this_scope
(select id from scopes where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s)
