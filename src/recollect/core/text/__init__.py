"""Rules about texts."""
