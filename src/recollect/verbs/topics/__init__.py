"""Put topics in order."""
