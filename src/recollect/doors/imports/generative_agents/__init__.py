"""The saved personas of Generative Agents: read from a folder, and written to one that reads back equal."""
