"""Scopes, keys, jobs and costs in PostgreSQL."""
