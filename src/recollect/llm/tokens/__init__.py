"""Counting tokens as models do."""
