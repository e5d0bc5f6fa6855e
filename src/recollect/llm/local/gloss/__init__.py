"""Chinese text glossed word by word in English, so that MiniLM can read it."""
