"""Mirrors: the rows of the record in other engines, and comparisons with them."""
