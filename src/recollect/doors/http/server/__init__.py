"""How a process serves HTTP: its connections, how many requests at a time, and several processes on one port."""
