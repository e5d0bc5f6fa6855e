"""The database itself: connections, schema, ownership."""
