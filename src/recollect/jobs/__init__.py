"""What happens later: durable jobs that enrich what was stored, and the worker that runs them."""
