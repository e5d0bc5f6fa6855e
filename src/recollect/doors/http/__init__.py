"""The HTTP door: JSON in, JSON out, problems as application/problem+json."""
