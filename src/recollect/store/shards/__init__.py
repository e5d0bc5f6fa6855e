"""Several servers in place of one: which of them has what, and how to reach it."""
