"""Mirrors: what of the record other engines hold, and how it is compared with theirs."""
