"""Recall for a query, and explain the result."""
