"""Agents in PostgreSQL."""
