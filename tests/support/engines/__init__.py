"""Real servers of other engines for tests: made once per machine, started once per run, stopped by their pid."""
