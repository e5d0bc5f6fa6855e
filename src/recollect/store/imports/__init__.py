"""Imports in PostgreSQL."""
