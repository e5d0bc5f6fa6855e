"""State facts, and learn them from talk."""
