"""The topic tree."""
