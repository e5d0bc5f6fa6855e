"""Associate, reflect, learn."""
