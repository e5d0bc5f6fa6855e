"""Recall by a cue, and say why."""
