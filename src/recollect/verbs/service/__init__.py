"""Look after jobs, costs and readers."""
