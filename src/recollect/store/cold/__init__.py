"""Scopes that lie in object storage: where their rows are, their objects, and the keys that seal these."""
