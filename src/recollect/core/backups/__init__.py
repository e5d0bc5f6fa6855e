"""The manifest of a backup."""
