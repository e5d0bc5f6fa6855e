"""Send the statements of a pipeline together, when the first answer is needed."""

from __future__ import annotations

from psycopg import AsyncPipeline
from psycopg.abc import PQGen

MOST_HELD = 32
"""More statements are sent before their answers are needed, so that the server works while others are written."""


class HeldPipeline(AsyncPipeline):
    """A pipeline that holds its statements back.

    The driver asks the event loop for every statement whether it may be written, which costs more than to write it.
    """

    def _write_held(self) -> None:
        """Hand all statements to libpq, which buffers them."""
        while self.command_queue:
            self.command_queue.popleft()()

    def _communicate_gen(self) -> PQGen[None]:
        """Hold a statement back, unless there are many."""
        if len(self.command_queue) >= MOST_HELD:
            yield from self._send_gen()

    def _send_gen(self) -> PQGen[None]:
        """Send what is held, and process the answers that have come by then."""
        self._write_held()
        yield from super()._communicate_gen()

    def _sync_gen(self) -> PQGen[None]:
        """End a transaction, and read all answers."""
        self._enqueue_sync()
        yield from self._send_gen()
        yield from self._fetch_gen(flush=False)

    def _exit_gen(self) -> PQGen[None]:
        """End the pipeline, and read all answers."""
        self._enqueue_sync()
        yield from self._fetch_gen(flush=True)

    def _fetch_gen(self, *, flush: bool) -> PQGen[None]:
        """Read the answers that have come; with `flush`, those of all statements."""
        self._write_held()
        yield from super()._fetch_gen(flush=flush)
