"""Replace three private parts of the driver: waiting, the end of a pipeline, and the names of prepared statements."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from hashlib import blake2b
from typing import TypeVar

from psycopg import AsyncConnection, AsyncPipeline, Error, errors, waiting
from psycopg._preparing import Prepare, PrepareManager
from psycopg._queries import PostgresQuery
from psycopg.abc import PQGen
from psycopg.generators import send
from psycopg.rows import DictRow

LOG = logging.getLogger("recollect.database")
SETTING = "RECOLLECT_POSTGRES__PREPARE_STATEMENTS"
PREFIX = b"recollect_"
MAX_PREPARED = 200
"""Maximum number of prepared statements per connection; the least recently used one makes room."""
LOST = (errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement)
"""Errors of a server that lacks a statement, or has it from another client: a pooler exchanged the server."""
CHANGED = "RevalidateCachedQuery"
"""The function of the server that refuses a prepared statement after its columns were changed."""
Answer = TypeVar("Answer")


class PreparedStatementMode:
    """Whether the connections of a pool prepare their statements; after `give_up` they never do again."""

    def __init__(self, *, wanted: bool) -> None:
        self.wanted = wanted

    def give_up(self, sign: str) -> None:
        """Prepare nothing from now on, and log it once, with the setting that makes this permanent."""
        if self.wanted:
            self.wanted = False
            told = {
                "event": "prepared_statements_disabled",
                "reason": sign,
                "setting": f"{SETTING}=false",
            }
            LOG.warning(json.dumps(told))


class NamedStatements(PrepareManager):
    """The prepared statements of one connection.

    The name of each is made from its text and the types of its parameters: a server connection that a pooler exchanged
    can lack it, but never runs another one in its place. The driver's own number follows, so that a statement whose
    preparation failed is never in the way.
    """

    # From the first time on. If it counts first, the driver believes a statement prepared after its pipeline broke.
    prepare_threshold: int | None = 0
    prepared_max: int = MAX_PREPARED

    def __init__(self, preparing: PreparedStatementMode) -> None:
        super().__init__()
        self._preparing = preparing

    def get(self, query: PostgresQuery, prepare: bool | None = None) -> tuple[Prepare, bytes]:  # noqa: FBT001 - the driver's signature
        """Return whether a statement is prepared or should be, and its name."""
        if not self._preparing.wanted:
            self.prepare_threshold = None
        state, name = super().get(query, prepare)
        return state, name_statement(query) + name if state is Prepare.SHOULD else name

    def clear(self) -> bool:
        """Keep everything after a rollback: the service changes no table, and prepared statements outlive it."""
        return False


class QuietPipeline(AsyncPipeline):
    """A pipeline that asks for no flush when it ends.

    A pooler that reads the driver's flush after the end of the transaction takes it for the beginning of another one,
    and keeps a connection to the server for a client that is idle.
    """

    def _exit_gen(self) -> PQGen[None]:
        """End the transaction, and read all answers."""
        try:
            self._enqueue_sync()
            yield from self._communicate_gen()
        finally:
            # A socket accepts large parameters a part at a time, and from here on the driver only reads.
            yield from send(self.pgconn)
            yield from self._fetch_gen(flush=False)


class AbandonableConnection(AsyncConnection[DictRow]):
    """A connection that is abandoned when its caller's time is over."""

    def prepare(self, preparing: PreparedStatementMode) -> None:
        """Prepare statements from now on."""
        self._prepared = NamedStatements(preparing)

    @asynccontextmanager
    async def pipeline(self) -> AsyncIterator[AsyncPipeline]:
        """Send the statements of a block together."""
        if self._pipeline is None:
            self._pipeline = QuietPipeline(self)
        async with super().pipeline() as pipeline:
            yield pipeline

    async def wait(self, gen: PQGen[Answer], interval: float = 0.1, timeout: float | None = None) -> Answer:  # noqa: ASYNC109 - the driver's signature
        """Wait for an answer; the driver would ask a silent server to cancel, and wait ten seconds more."""
        try:
            return await waiting.wait_async(gen, self.pgconn.socket, interval=interval, timeout=timeout)
        except asyncio.CancelledError:
            # The server ends the statement itself, by its own time limit.
            self.pgconn.finish()
            with suppress(Error):
                # If the garbage collector closed it, it would log a warning about the closed connection.
                gen.close()
            raise


def name_statement(query: PostgresQuery) -> bytes:
    """Return the name of a statement, made from its text and the types of its parameters."""
    said = query.query + repr(query.types).encode()
    return PREFIX + blake2b(said, digest_size=16).hexdigest().encode()


def is_changed(problem: Exception) -> bool:
    """Return whether the server refused a prepared statement because the schema was changed after it was prepared."""
    return isinstance(problem, errors.FeatureNotSupported) and problem.diag.source_function == CHANGED
