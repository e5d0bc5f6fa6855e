"""Commands for operators: servers, other engines, and object storage."""
