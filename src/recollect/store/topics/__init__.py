"""Topics in PostgreSQL."""
