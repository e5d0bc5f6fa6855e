"""Prepare a restored backup for use."""
