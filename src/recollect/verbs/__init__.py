"""The operations that callers request: each verb is one file that reads from top to bottom."""
