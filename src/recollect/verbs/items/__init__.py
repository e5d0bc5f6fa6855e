"""Read and write items."""
