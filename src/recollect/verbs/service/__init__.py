"""Jobs, costs and readers."""
