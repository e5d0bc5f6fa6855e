"""Ports that nobody uses, and that nobody is given by chance before a server has taken them."""

from __future__ import annotations

import random
import socket

# Below those that Linux hands out to outgoing connections, and to sockets that ask for any port.
RANGE = range(20_000, 32_000)


def free_port() -> int:
    """Find a port that is free now, and most likely when a server starts, or starts again."""
    for port in random.SystemRandom().sample(RANGE, 200):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"no free port between {RANGE.start} and {RANGE.stop}")
