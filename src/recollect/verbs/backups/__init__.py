"""Bring a restored backup to where it may be used again."""
