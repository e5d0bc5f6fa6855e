"""An embedded PostgreSQL, for users without a server."""
