"""Databases cloned from a template by a thread, a few ahead of the tests that take them."""

from __future__ import annotations

import itertools
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

import psycopg

AHEAD = 3
NUMBERS = itertools.count(1)


class Clones:
    """A stock of equal databases; each is taken once, and dropped when its test has ended."""

    def __init__(self, dsn: str, template: str, *, in_memory: bool) -> None:
        # Copying files is cheapest where they lie in memory, and dearest on a disk: it wants a checkpoint.
        self._template = f"{template} strategy {'file_copy' if in_memory else 'wal_log'}"
        self._connection = psycopg.connect(dsn, autocommit=True)
        self._thread = ThreadPoolExecutor(1)
        self._ready = deque(self._thread.submit(self._make) for _ in range(AHEAD))
        self._drops: list[Future[object]] = []

    def take(self) -> str:
        """Give a database that nobody has used, and have the next one made."""
        self._ready.append(self._thread.submit(self._make))
        return self._ready.popleft().result()

    def drop(self, name: str) -> None:
        """Remove a database, whoever is connected to it, while the tests go on."""
        self._drops.append(self._thread.submit(self._connection.execute, f"drop database {name} with (force)"))

    def close(self) -> None:
        """Stop making databases, and say if one could not be dropped."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._connection.close()
        for drop in self._drops:
            if not drop.cancelled():
                drop.result()

    def _make(self) -> str:
        name = f"test_{next(NUMBERS)}"
        self._connection.execute(f"create database {name} template {self._template}")
        return name
