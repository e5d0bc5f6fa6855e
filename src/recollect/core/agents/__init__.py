"""Rules about agents."""
