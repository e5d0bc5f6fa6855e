"""What a backup says of itself."""
