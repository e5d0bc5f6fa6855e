"""Token counting with the tokenizers of models."""
