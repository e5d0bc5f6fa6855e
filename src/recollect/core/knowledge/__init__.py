"""Rules about facts and entities."""
