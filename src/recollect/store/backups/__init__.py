"""Backups of the record: dumps, their manifests, and the log of erasures."""
