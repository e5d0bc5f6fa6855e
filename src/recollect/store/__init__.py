"""PostgreSQL, the record: everything that speaks to the database, and the SQL it speaks."""
