"""Rules about conversations."""
