"""Bring over what other systems hold."""
