"""JOBS: durable background work on what was stored, and the worker that runs it."""
