"""Read and store data of recall in PostgreSQL."""
