"""Mirrors: the record as they read it, how far they have followed, and the engines themselves."""
