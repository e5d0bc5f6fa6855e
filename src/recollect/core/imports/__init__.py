"""Rules about imports."""
