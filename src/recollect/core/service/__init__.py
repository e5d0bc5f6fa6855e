"""Rules about callers and costs."""
