"""Send the statements of a pipeline together, when the first answer is needed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from psycopg import AsyncPipeline
from psycopg.abc import PQGen
from psycopg.generators import send

MOST_HELD, MOST_BYTES = 32, 32_768
"""More statements, or larger ones, are sent before their answers are needed: the server works while others are written,
and the event loop is free in between."""


class HeldPipeline(AsyncPipeline):
    """A pipeline that holds its statements back.

    The driver asks the event loop for every statement whether it may be written, which costs more than to write it.
    """

    def _write_held(self) -> None:
        """Hand all statements to libpq, which buffers them."""
        while self.command_queue:
            self.command_queue.popleft()()

    def _communicate_gen(self) -> PQGen[None]:
        """Hold a statement back, unless there are many or it is large."""
        if len(self.command_queue) >= MOST_HELD or self._last_size() > MOST_BYTES:
            yield from self._send_gen()

    def _last_size(self) -> int:
        """Return the size of the parameters of the statement that was added last."""
        command = self.command_queue[-1] if self.command_queue else None
        given = command.args[1] if isinstance(command, partial) and len(command.args) > 1 else None
        return sum(len(value) for value in given if value) if isinstance(given, Sequence) else 0

    def _send_gen(self) -> PQGen[None]:
        """Send what is held, and process the answers that have come by then."""
        self._write_held()
        yield from super()._communicate_gen()

    def _sync_gen(self) -> PQGen[None]:
        """End a transaction, and read all answers.

        The driver would also ask the server to flush. A pooler that reads this after the end of the transaction may
        take it for the beginning of another, and keep a connection to the server for it.
        """
        self._enqueue_sync()
        self._write_held()
        yield from send(self.pgconn)
        yield from self._fetch_gen(flush=False)

    _exit_gen = _sync_gen

    def _fetch_gen(self, *, flush: bool) -> PQGen[None]:
        """Read the answers that have come; with `flush`, those of all statements."""
        self._write_held()
        yield from super()._fetch_gen(flush=flush)
