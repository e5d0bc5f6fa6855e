"""Models: embedders and chat models, as protocols, their adapters and their fakes."""
