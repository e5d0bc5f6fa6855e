"""Translators: each reads what another system saved, in that system's own words, and writes it back."""
