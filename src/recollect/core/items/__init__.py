"""Rules about items."""
