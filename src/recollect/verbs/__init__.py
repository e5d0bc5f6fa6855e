"""What a caller asks: each verb is one file that reads from top to bottom."""
