"""The pure part: decisions as functions on values, without I/O, clock or randomness."""
