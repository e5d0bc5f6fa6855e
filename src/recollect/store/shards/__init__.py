"""Several servers instead of one: which server has which data, and how to reach it."""
