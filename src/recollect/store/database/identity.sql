-- The identity of this server in its catalog; a single server has no row.
select catalog_id::text, number from server_identity
