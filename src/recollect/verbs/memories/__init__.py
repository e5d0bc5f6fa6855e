"""Remember, read and forget."""
