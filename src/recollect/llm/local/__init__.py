"""The embedding model that runs in this process."""
