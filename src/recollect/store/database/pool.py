"""Manage the connections and run transactions: bound to one tenant, pipelined, durable after a commit."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, LiteralString, TypeAlias, TypeVar, cast

import psycopg
from pgvector.psycopg.halfvec import register_halfvec_info
from pgvector.psycopg.sparsevec import register_sparsevec_info
from pgvector.psycopg.vector import register_vector_info
from psycopg import AsyncConnection, AsyncCursor, errors
from psycopg.rows import DictRow, dict_row
from psycopg.sql import SQL, Composable
from psycopg.types import TypeInfo
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from recollect.core.service.erasures import ErasureLog
from recollect.errors import SetupError, UnavailableError, WrongServerError
from recollect.store.database.calls import BUCKET, COMMITS
from recollect.store.database.driver import LOST, AbandonableConnection, PreparedStatementMode, is_changed
from recollect.store.database.errors import describe_database_error, translated_errors
from recollect.store.database.identity import ServerCheck
from recollect.tracing import begin

HEADING = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
Connection: TypeAlias = AsyncConnection[DictRow]
Cursor: TypeAlias = AsyncCursor[DictRow]
Answer = TypeVar("Answer")
UNANSWERED = "PostgreSQL does not answer at RECOLLECT_DATABASE_URL ({})."
LOAD_MILLISECONDS = "600000"
"""Time limit for each step of a bulk load, which as a whole has no deadline."""
# Only all of these together detect a silent network; statement_timeout alone is not enough.
CONNECTION_TIMEOUTS: dict[str, Any] = {
    "connect_timeout": 5,
    "tcp_user_timeout": 5000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 2,
}


def load_queries(module_file: str, **fragments: Composable) -> Mapping[str, LiteralString]:
    """Load the queries of a module by name; they ship with the package, so they count as literals.

    A fragment, given or of `fragments.sql`, replaces its name in braces in each query; other braces are left.
    """
    text = Path(module_file).with_suffix(".sql").read_text(encoding="utf-8")
    for name, fragment in {**FRAGMENTS, **{name: each.as_string() for name, each in fragments.items()}}.items():
        text = text.replace(f"{{{name}}}", fragment)
    return split_queries(text)


def split_queries(text: str) -> dict[str, LiteralString]:
    """Split a file into its queries by name."""
    parts = HEADING.split(text)[1:]
    return {name: cast("LiteralString", body.strip()) for name, body in zip(parts[::2], parts[1::2], strict=True)}


def to_sql(query: Composable) -> SQL:
    """Convert a composed query to one text, so that a cached query is composed only once."""
    return SQL(cast("LiteralString", query.as_string()))


FRAGMENTS = split_queries(Path(__file__).with_name("fragments.sql").read_text(encoding="utf-8"))
QUERIES = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """The user of the connections: the key, and the bucket if there are several servers."""

    key_id: str = ""
    placed: tuple[int, int] | None = None
    """The bucket, and the generation of the map that chose the server; None without a map."""
    shard: int = 0
    """The number of the server if there are several; it may have only some of a tenant's buckets."""
    erasures: ErasureLog | None = None
    """The log of erasures outside the database, if there is one."""
    restoring: bool = False
    """Whether rows are restored: suspended buckets that await their rows accept only these writes."""
    unserved: bool = False
    """Whether an erasure removes rows that the server no longer serves: then no placement is checked."""

    async def bind(
        self, connection: Connection, tenant_id: int | None, milliseconds: str, *, writing: bool = False
    ) -> None:
        """Bind a transaction to a tenant, if the server serves the tenant."""
        tenant = "" if tenant_id is None else str(tenant_id)
        bound = {"tenant": tenant, "key_id": self.key_id, "milliseconds": milliseconds}
        await connection.execute(QUERIES["bind"], bound)
        if tenant_id is not None:
            await self.check_server(connection, tenant_id, writing=writing)

    async def check_server(self, connection: Connection, tenant_id: int, *, writing: bool = False) -> None:
        """End the pipeline if another server serves the bucket, or if the tenant's writes are suspended."""
        known = {"tenant": tenant_id, "writing": writing, "restoring": self.restoring}
        if self.placed:
            bucket, generation = self.placed
            await connection.execute(QUERIES["check_placement"], known | {"bucket": bucket, "generation": generation})
        elif (self.shard or writing) and not self.unserved:
            await connection.execute(QUERIES["check_served"], known | {"bucket": BUCKET.get()})


class Database:
    """A pool of connections of the service's role."""

    def __init__(
        self,
        pool: AsyncConnectionPool[AbandonableConnection],
        deadline_seconds: float,
        preparing: PreparedStatementMode,
        known: SessionInfo | None = None,
        server: ServerCheck | None = None,
    ) -> None:
        self._pool = pool
        self.server = server or ServerCheck()
        """The server that the connections must lead to."""
        self.direct = self.server.direct
        """The address past a pooler, for listeners and workers."""
        self._preparing = preparing
        self._known = known or SessionInfo()
        self.shard = self._known.shard
        """The number of the server if there are several; 0 for the only one."""
        self.erasures = self._known.erasures
        """The log of erasures outside the database, if there is one."""
        self.deadline_seconds = deadline_seconds
        self.milliseconds = str(int(deadline_seconds * 1000))

    @classmethod
    async def open(
        cls,
        dsn: str,
        pool_size: int,
        deadline_seconds: float,
        *,
        prepared: bool = True,
        server: ServerCheck | None = None,
    ) -> Database:
        """Open the pool; raise an error if the database cannot be used.

        Statements are prepared unless `prepared` is False.
        """
        server = server or ServerCheck()
        server.direct = server.direct or dsn
        vector, halfvec, sparsevec = await fetch_vector_types(dsn, server)
        preparing = PreparedStatementMode(wanted=prepared)

        closing: list[asyncio.Task[None]] = []

        async def configure(connection: AbandonableConnection) -> None:
            try:
                await server(connection)
            except WrongServerError:
                # Those that wait for a connection would wait for their whole deadline: the pool tries again and again.
                closing.append(asyncio.create_task(pool.close()))
                raise
            register_vector_info(connection, vector)
            register_halfvec_info(connection, halfvec)
            register_sparsevec_info(connection, sparsevec)
            if preparing.wanted:
                connection.prepare(preparing)
                await find_pooler(connection, preparing)

        pool: AsyncConnectionPool[AbandonableConnection] = AsyncConnectionPool(
            dsn,
            kwargs={"autocommit": True, "prepare_threshold": None, "row_factory": dict_row, **CONNECTION_TIMEOUTS},
            connection_class=AbandonableConnection,
            configure=configure,
            min_size=1,
            max_size=pool_size,
            timeout=deadline_seconds,
            open=False,
        )
        try:
            await pool.open(wait=True, timeout=deadline_seconds)
        except PoolTimeout as problem:
            raise SetupError(UNANSWERED.format(type(problem).__name__)) from None
        return cls(pool, deadline_seconds, preparing, server=server)

    def used(self, by: SessionInfo | None = None, /, **known: Any) -> Database:  # noqa: ANN401 - fields of `Known`
        """Return a copy with the same connections and another key, bucket or server number."""
        changed = replace(by or self._known, **known)
        return type(self)(self._pool, self.deadline_seconds, self._preparing, changed, self.server)

    @property
    def place(self) -> tuple[int, tuple[int, int] | None]:
        """Return the connections and the placement: one transaction serves all scopes with the same result."""
        return id(self._pool), self._known.placed

    def is_same(self, other: Database) -> bool:
        """Return whether another database has the same connections."""
        return self._pool is other._pool

    async def close(self) -> None:
        """Close every connection."""
        await self._pool.close()

    def statistics(self) -> dict[str, int]:
        """Return the pool's counters for the metrics page."""
        return dict(self._pool.get_stats())

    @asynccontextmanager
    async def statement(self) -> AsyncIterator[Connection]:
        """Provide a connection for one statement that names its tenant itself."""
        with translated_errors():
            end = begin("pool_wait")
            async with self._pool.connection() as connection:
                end()
                try:
                    yield connection
                except LOST as problem:
                    self._preparing.give_up(describe_database_error(problem))
                    raise
                except errors.FeatureNotSupported as problem:
                    if is_changed(problem):
                        # Its prepared statements no longer fit the schema: a new connection prepares them again.
                        await connection.close()
                    raise

    @asynccontextmanager
    async def asking(self, tenant_id: int) -> AsyncIterator[Connection]:
        """Provide a connection for one statement that names its tenant, if this server still serves the tenant."""
        if not self._known.placed:
            async with self.statement() as connection:
                yield connection
            return
        async with self.statement() as connection, connection.pipeline():
            await self._known.check_server(connection, tenant_id)
            yield connection

    @asynccontextmanager
    async def reading(
        self, tenant_id: int | None, *, one_snapshot: bool = False, seconds: float | None = None
    ) -> AsyncIterator[Connection]:
        """Read as a tenant: all statements of the block are sent together, in one round trip.

        A pipeline is one transaction without a `begin`, and the binding ends with it. Answers are read after the block:
        reading one inside the block would cost another round trip. A statement that takes longer than the seconds, or
        than the deadline, raises OverdueError: later statements are not answered.
        """
        milliseconds = self.milliseconds if seconds is None else str(max(1, int(seconds * 1000)))
        async with self.statement() as connection, connection.pipeline():
            if one_snapshot:
                await connection.execute(QUERIES["hold_snapshot"])
            await self._known.bind(connection, tenant_id, milliseconds)
            yield connection

    @asynccontextmanager
    async def listing(self, tenant_id: int) -> AsyncIterator[Connection]:
        """Read as a tenant the data about its scopes in all storage tiers, including object storage."""
        async with self.reading(tenant_id) as connection:
            await show_cold(connection)
            yield connection

    @asynccontextmanager
    async def transaction(self, tenant_id: int | None, *, pipelined: bool = True) -> AsyncIterator[Connection]:
        """Write as a tenant; if the block ends without an error, the write is durable."""
        async with self.statement() as connection:
            watch = CommitWatch()
            connection.add_notice_handler(watch.notice)
            try:
                async with connection.pipeline() if pipelined else unpipelined():
                    await connection.execute(QUERIES["begin"])
                    milliseconds = self.milliseconds if pipelined else LOAD_MILLISECONDS
                    await self._known.bind(connection, tenant_id, milliseconds, writing=True)
                    yield connection
                    ending = await connection.execute(QUERIES["commit"])
            finally:
                connection.remove_notice_handler(watch.notice)
            if (commits := COMMITS.get()) is not None:
                commits.any = True
            if watch.doubtful or ending.statusmessage != "COMMIT":
                raise UnavailableError("The write was not confirmed by every standby; try again.")

    @asynccontextmanager
    async def snapshot(self, tenant_id: int) -> AsyncIterator[Connection]:
        """Read as a tenant from one snapshot, without a deadline."""
        async with self.statement() as connection:
            await connection.execute(QUERIES["begin_snapshot"])
            await self._known.bind(connection, tenant_id, LOAD_MILLISECONDS)
            yield connection
            await connection.execute(QUERIES["commit"])


async def find_pooler(connection: Connection, preparing: PreparedStatementMode) -> None:
    """Stop preparing behind a pooler, unless it renames each statement."""
    answer = await connection.execute(QUERIES["look_behind"])
    row = await answer.fetchone()
    if row is not None and row["ours"] and row["process"] != connection.info.backend_pid:
        preparing.give_up("pooler")


async def show_cold(connection: Connection) -> None:
    """Include scopes that are not hot in lists until the transaction ends; lists read no rows of scopes."""
    await connection.execute(QUERIES["show_cold"])


async def commit_at_once(server: ServerCheck, connection: AsyncConnection[Any]) -> None:
    """Send the commit with the last statement: a caller that stops in between would hold locks."""
    await connection.set_autocommit(True)
    await server(connection)


class CommitWatch:
    """Detect a commit that was answered although a standby never confirmed it."""

    def __init__(self) -> None:
        self.doubtful = False

    def notice(self, diagnostic: errors.Diagnostic) -> None:
        """Record the warning of a cancelled wait for replication."""
        if diagnostic.sqlstate == "01000" and "synchronous replication" in (diagnostic.message_primary or ""):
            self.doubtful = True


@asynccontextmanager
async def unpipelined() -> AsyncIterator[None]:
    """Leave the pipeline mode of a connection: COPY cannot run in a pipeline."""
    yield


async def fetch_vector_types(dsn: str, server: ServerCheck) -> tuple[TypeInfo, TypeInfo, TypeInfo]:
    """Look up the pgvector types once, for all later connections."""
    try:
        async with await AsyncConnection.connect(dsn, autocommit=True, **CONNECTION_TIMEOUTS) as connection:
            await server(connection)
            vector = await TypeInfo.fetch(connection, "vector")
            halfvec = await TypeInfo.fetch(connection, "halfvec")
            sparsevec = await TypeInfo.fetch(connection, "sparsevec")
    except psycopg.OperationalError as problem:
        raise SetupError(UNANSWERED.format(type(problem).__name__)) from None
    if vector is None or halfvec is None or sparsevec is None:
        raise SetupError("This database has no pgvector 0.8. Run `recollect admin migrate` first.")
    return vector, halfvec, sparsevec


async def read_answered(read: Callable[[], Awaitable[Answer]]) -> Answer | None:
    """Read an answer of a pipeline that ended early; None if it ended before this answer."""
    try:
        return await read()
    except psycopg.ProgrammingError:
        return None
