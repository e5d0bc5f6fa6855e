"""Commands that look after servers and engines."""
