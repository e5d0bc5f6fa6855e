"""Cold scopes in object storage: their location, objects and encryption keys."""
