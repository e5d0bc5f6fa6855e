"""The routes, one module per room."""
