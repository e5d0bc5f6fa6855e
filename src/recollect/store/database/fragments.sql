-- Parts of queries that many files need; the loader inserts them for their names in braces.
-- this_scope: the number of the caller's scope, in the tenant of the connection.
-- any_deleted_...: whether a deleted conversation has memories that are not withheld yet: in the parameter's scope,
-- of the place that a query finds, or in all rows that the connection may read.
-- open_place: the number of a conversation that can be read, with its scope. Before this_scope, which it contains.
-- not_erased: excludes scopes of erased users. Their name is the receipt, with a start that no name has.

-- name: open_place
(
    select scope_id, id from conversations
    where scope_id = {this_scope}
      and id between %(conversation)s and %(conversation)s and state in ('active', 'archived')
    order by id limit 1
)

-- name: this_scope
(select id from scopes where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s)

-- name: not_erased
left("user", 1) <> '/'

-- name: any_deleted_here
(select exists (
    select from conversations
    where conversations.scope_id = %(scope_id)s and not synced and state in ('deleted', 'purging')
))

-- name: any_deleted_in_place
(select exists (
    select from conversations
    where conversations.scope_id = (select scope_id from place) and not synced and state in ('deleted', 'purging')
))

-- name: any_deleted_of_tenant
(select exists (
    select from conversations
    where conversations.scope_id between first_scope() and last_scope() and not synced and state in ('deleted', 'purging')
))
