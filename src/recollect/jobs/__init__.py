"""JOBS: durable background work on stored memories, and the worker that runs it."""
