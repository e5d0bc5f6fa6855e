"""Chinese glossed word by word into English, so that MiniLM reads it."""
