"""Backups of the record: copies of it, their manifests, and the log of erasures that outlives them."""
