"""MODELS: what turns texts into vectors, as a protocol, its adapters and its fake."""
