"""PostgreSQL: everything that talks to the database, and its SQL."""
