"""Rules about recall."""
