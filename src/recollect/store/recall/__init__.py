"""What recall reads and keeps in PostgreSQL."""
