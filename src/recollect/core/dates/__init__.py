"""Rules about dates in texts."""
