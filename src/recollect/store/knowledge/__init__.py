"""Facts and entities in PostgreSQL."""
