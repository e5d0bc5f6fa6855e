"""Send scopes to object storage, and bring them back."""
