"""Converse within a budget."""
