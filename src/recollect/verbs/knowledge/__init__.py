"""State facts, and extract them from conversations."""
