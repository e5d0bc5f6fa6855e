"""Mirrors: the data that they read, how far they have followed, and the engines themselves."""
