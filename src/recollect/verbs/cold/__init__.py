"""Move scopes to object storage, and restore them."""
