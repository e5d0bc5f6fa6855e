"""What operators look after in a running Recollect."""
