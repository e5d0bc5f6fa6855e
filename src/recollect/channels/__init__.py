"""Channels of recall: each has one file and one query, and proposes candidates in its own unit."""
