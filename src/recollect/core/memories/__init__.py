"""Rules about memories."""
