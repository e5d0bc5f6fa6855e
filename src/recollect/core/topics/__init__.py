"""Rules about topics."""
