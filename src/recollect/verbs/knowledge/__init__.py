"""State facts, and learn them from conversations."""
