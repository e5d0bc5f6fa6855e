"""Hold the connections and run transactions: bound to one tenant, pipelined, durable when acknowledged."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, LiteralString, TypeAlias, TypeVar, cast

import psycopg
from pgvector.psycopg.halfvec import register_halfvec_info
from pgvector.psycopg.sparsevec import register_sparsevec_info
from pgvector.psycopg.vector import register_vector_info
from psycopg import AsyncConnection, AsyncCursor, AsyncPipeline, errors, waiting
from psycopg.abc import PQGen
from psycopg.rows import DictRow, dict_row
from psycopg.sql import SQL, Composable
from psycopg.types import TypeInfo
from psycopg_pool import AsyncConnectionPool

from recollect.core.service.erasures import ErasureLog
from recollect.core.service.positions import read_lsn
from recollect.errors import SetupError, UnavailableError
from recollect.models.shards import Position
from recollect.store.database.calls import BUCKET, COMMITS, note_written
from recollect.store.database.pipeline import HeldPipeline
from recollect.store.database.prepared import LOST, NamedStatements, Preparing, is_changed
from recollect.store.database.translation import describe, translated_errors
from recollect.tracing import begin

HEADING = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
Connection: TypeAlias = AsyncConnection[DictRow]
Cursor: TypeAlias = AsyncCursor[DictRow]
Answer = TypeVar("Answer")
LOAD_MILLISECONDS = "600000"
"""A bulk load has no deadline; this is how long one of its steps may take."""
# Only all of these together notice a silent network; statement_timeout alone is not enough.
CONNECTION_TIMEOUTS: dict[str, Any] = {
    "connect_timeout": 5,
    "tcp_user_timeout": 5000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 2,
}


def load_queries(module_file: str, **fragments: Composable) -> Mapping[str, LiteralString]:
    """Load the queries of a module by name; they ship with the package, so they count as literals.

    A fragment, given or of `fragments.sql`, stands wherever a query has its name in braces; other braces are left.
    """
    text = Path(module_file).with_suffix(".sql").read_text(encoding="utf-8")
    for name, fragment in {**FRAGMENTS, **{name: each.as_string() for name, each in fragments.items()}}.items():
        text = text.replace(f"{{{name}}}", fragment)
    return split_queries(text)


def split_queries(text: str) -> dict[str, LiteralString]:
    """Split a file into its queries by name."""
    parts = HEADING.split(text)[1:]
    return {name: cast("LiteralString", body.strip()) for name, body in zip(parts[::2], parts[1::2], strict=True)}


def write_out(query: Composable) -> SQL:
    """Write a composed query as one text, so that whoever keeps it does not put it together again each time."""
    return SQL(cast("LiteralString", query.as_string()))


FRAGMENTS = split_queries(Path(__file__).with_name("fragments.sql").read_text(encoding="utf-8"))
QUERIES = load_queries(__file__)


class GivenUpConnection(AsyncConnection[DictRow]):
    """A connection that is abandoned when its caller's time is over."""

    async def prepare(self, preparing: Preparing) -> None:
        """Prepare statements from now on; what a pooler hands on under another name it keeps, all else it loses."""
        self._prepared = NamedStatements(preparing)
        answer = await self.execute(QUERIES["look_behind"])
        row = await answer.fetchone()
        if row is not None and row["ours"] and row["process"] != self.info.backend_pid:
            preparing.give_up("pooler")

    @asynccontextmanager
    async def pipeline(self) -> AsyncIterator[AsyncPipeline]:
        """Switch into a mode in which statements are sent together."""
        if self._pipeline is None:
            self._pipeline = HeldPipeline(self)
        async with super().pipeline() as pipeline:
            yield pipeline

    async def wait(self, gen: PQGen[Answer], interval: float = 0.1, timeout: float | None = None) -> Answer:  # noqa: ASYNC109 - the driver's signature
        """Wait for an answer; the driver would ask a silent server to cancel, and wait ten seconds more."""
        try:
            return await waiting.wait_async(gen, self.pgconn.socket, interval=interval, timeout=timeout)
        except asyncio.CancelledError:
            # The server ends the statement itself, by its own time limit.
            self.pgconn.finish()
            with suppress(psycopg.Error):
                # Left to the garbage collector, it would log a warning about the closed connection.
                gen.close()
            raise


@dataclass(slots=True)
class FollowedLog:
    """How far the log of a server that has replicas is known to have come by writes of this process."""

    newest: Position | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a read needs of a replica: to have replayed a position, or not to be further behind than this."""

    position: Position | None
    max_staleness: float | None
    wait_seconds: float

    def bind(self) -> dict[str, object]:
        """Return the parameters of the check."""
        lsn = self.position.written_lsn if self.position else None
        timeline = self.position.timeline if self.position else None
        return {"timeline": timeline, "lsn": lsn, "wait": self.wait_seconds, "staleness": self.max_staleness}


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of whoever uses the connections: the key, and the bucket where there are several servers."""

    key_id: str = ""
    placed: tuple[int, int] | None = None
    """The bucket, and by which generation of it the server was chosen; None if it was not chosen by a map."""
    shard: int = 0
    """The number of the server, where it is one of several, which may have some of a tenant's buckets."""
    log: FollowedLog | None = None
    """Set where the server has replicas: then every write asks how far the log has come."""
    wanted: Wanted | None = None
    """Set where the server is a replica: what a read needs of it."""
    erasures: ErasureLog | None = None
    """Where erasures are logged outside the database, if anywhere."""

    async def bind(
        self, connection: Connection, tenant_id: int | None, milliseconds: str, *, writing: bool = False
    ) -> None:
        """Bind a transaction to a tenant, as far as its server serves it."""
        tenant = "" if tenant_id is None else str(tenant_id)
        bound = {"tenant": tenant, "key_id": self.key_id, "milliseconds": milliseconds}
        await connection.execute(QUERIES["bind"], bound)
        if tenant_id is not None:
            await self.check_server(connection, tenant_id, writing=writing)

    async def check_server(self, connection: Connection, tenant_id: int, *, writing: bool = False) -> None:
        """Where there are several servers, end the pipeline with MovedError if this one does not serve the bucket.

        A replica that is behind ends it with BehindError.
        """
        if self.wanted:
            await connection.execute(QUERIES["check_replayed"], self.wanted.bind())
        known = {"tenant": tenant_id, "writing": writing}
        if self.placed:
            bucket, generation = self.placed
            await connection.execute(QUERIES["check_placement"], known | {"bucket": bucket, "generation": generation})
        elif self.shard:
            await connection.execute(QUERIES["check_served"], known | {"bucket": BUCKET.get()})

    async def note_position(self, reached: Cursor) -> None:
        """Note how far the log has come by a write."""
        row = await reached.fetchone()
        if row is not None and self.log is not None:
            position = Position(self.shard, int(row["timeline"], 16), read_lsn(row["lsn"]))
            self.log.newest = max(position, self.log.newest or position)
            note_written(position)


class Database:
    """A pool of connections of the service's role."""

    def __init__(
        self,
        pool: AsyncConnectionPool[GivenUpConnection],
        deadline_seconds: float,
        preparing: Preparing,
        known: Known | None = None,
        direct: str = "",
    ) -> None:
        self._pool = pool
        self.direct = direct
        """The address past a pooler, for whoever listens or works."""
        self._preparing = preparing
        self._known = known or Known()
        self.shard = self._known.shard
        """The number of the server, where it is one of several; 0 where it is the only one."""
        self.log = self._known.log
        """How far it has come, where the server has replicas."""
        self.erasures = self._known.erasures
        """Where erasures are logged outside the database, if anywhere."""
        self.deadline_seconds = deadline_seconds
        self.milliseconds = str(int(deadline_seconds * 1000))

    @classmethod
    async def open(
        cls, dsn: str, pool_size: int, deadline_seconds: float, *, prepared: bool = True, direct: str = ""
    ) -> Database:
        """Open the pool, or say why the database cannot be used; statements are prepared unless told otherwise."""
        vector, halfvec, sparsevec = await fetch_vector_types(dsn)
        preparing = Preparing(wanted=prepared)

        async def configure(connection: GivenUpConnection) -> None:
            register_vector_info(connection, vector)
            register_halfvec_info(connection, halfvec)
            register_sparsevec_info(connection, sparsevec)
            if preparing.wanted:
                await connection.prepare(preparing)

        pool: AsyncConnectionPool[GivenUpConnection] = AsyncConnectionPool(
            dsn,
            kwargs={"autocommit": True, "prepare_threshold": None, "row_factory": dict_row, **CONNECTION_TIMEOUTS},
            connection_class=GivenUpConnection,
            configure=configure,
            min_size=1,
            max_size=pool_size,
            timeout=deadline_seconds,
            open=False,
        )
        await pool.open(wait=True, timeout=deadline_seconds)
        return cls(pool, deadline_seconds, preparing, direct=direct or dsn)

    def used(self, by: Known | None = None, /, **known: Any) -> Database:  # noqa: ANN401 - fields of `Known`
        """Return the same connections for whom something else is known: a key, a bucket, a server of several."""
        changed = replace(by or self._known, **known)
        return type(self)(self._pool, self.deadline_seconds, self._preparing, changed, self.direct)

    def as_replica(self, primary: Database, wanted: Wanted) -> Database:
        """Return the same connections for who uses the primary's, as far as the replica has replayed enough."""
        return self.used(primary._known, wanted=wanted)

    def is_same(self, other: Database) -> bool:
        """Tell whether another one has the same connections, for whomever."""
        return self._pool is other._pool

    async def close(self) -> None:
        """Close every connection."""
        await self._pool.close()

    def statistics(self) -> dict[str, int]:
        """Return the pool's counters for the metrics page."""
        return dict(self._pool.get_stats())

    @asynccontextmanager
    async def statement(self) -> AsyncIterator[Connection]:
        """Lend a connection for one statement that names its tenant itself."""
        with translated_errors():
            end = begin("pool_wait")
            async with self._pool.connection() as connection:
                end()
                try:
                    yield connection
                except LOST as problem:
                    self._preparing.give_up(describe(problem))
                    raise
                except errors.FeatureNotSupported as problem:
                    if is_changed(problem):
                        # What it has prepared no longer fits the schema: its successor prepares anew.
                        await connection.close()
                    raise

    @asynccontextmanager
    async def asking(self, tenant_id: int) -> AsyncIterator[Connection]:
        """Lend a connection for one statement that names its tenant itself, if the tenant is still served here."""
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
        """Read as a tenant: all that is asked in the block travels together, in one round trip.

        A pipeline is one transaction without a `begin`, and the binding ends with it. Answers are read after
        the block: to read one inside it would be a round trip of its own. A statement that takes more than the
        seconds, or than the deadline, ends it with OverdueError: those after it are not answered.
        """
        milliseconds = self.milliseconds if seconds is None else str(max(1, int(seconds * 1000)))
        async with self.statement() as connection, connection.pipeline():
            if one_snapshot:
                await connection.execute(QUERIES["hold_snapshot"])
            await self._known.bind(connection, tenant_id, milliseconds)
            yield connection

    @asynccontextmanager
    async def listing(self, tenant_id: int) -> AsyncIterator[Connection]:
        """Read as a tenant what is known of its scopes wherever their rows are: those in object storage, too."""
        async with self.reading(tenant_id) as connection:
            await show_cold(connection)
            yield connection

    @asynccontextmanager
    async def transaction(self, tenant_id: int | None, *, pipelined: bool = True) -> AsyncIterator[Connection]:
        """Write as a tenant; leaving the block without an error means that the write is durable."""
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
                    reached = await connection.execute(QUERIES["position"]) if self._known.log else None
            finally:
                connection.remove_notice_handler(watch.notice)
            if (commits := COMMITS.get()) is not None:
                commits.any = True
            if watch.doubtful or ending.statusmessage != "COMMIT":
                raise UnavailableError("The write was not confirmed by every standby; try again.")
            if reached is not None:
                await self._known.note_position(reached)

    @asynccontextmanager
    async def snapshot(self, tenant_id: int) -> AsyncIterator[Connection]:
        """Read as a tenant, as long as it takes: all that is read is of one moment."""
        async with self.statement() as connection:
            await connection.execute(QUERIES["begin_snapshot"])
            await self._known.bind(connection, tenant_id, LOAD_MILLISECONDS)
            yield connection
            await connection.execute(QUERIES["commit"])


async def show_cold(connection: Connection) -> None:
    """Let a list, which reads no rows of scopes, show those that are not hot; until the transaction ends."""
    await connection.execute(QUERIES["show_cold"])


async def commit_at_once(connection: AsyncConnection[Any]) -> None:
    """Make the commit part of the last statement's round trip: a caller that is stopped in between would hold locks."""
    await connection.set_autocommit(True)


class CommitWatch:
    """Notice a commit that was answered although a standby never confirmed it."""

    def __init__(self) -> None:
        self.doubtful = False

    def notice(self, diagnostic: errors.Diagnostic) -> None:
        """Remember the warning of a cancelled wait for replication."""
        if diagnostic.sqlstate == "01000" and "synchronous replication" in (diagnostic.message_primary or ""):
            self.doubtful = True


@asynccontextmanager
async def unpipelined() -> AsyncIterator[None]:
    """Replace a pipeline where COPY needs the connection to itself."""
    yield


async def fetch_vector_types(dsn: str) -> tuple[TypeInfo, TypeInfo, TypeInfo]:
    """Look up the pgvector types once, for all later connections."""
    try:
        async with await AsyncConnection.connect(dsn, autocommit=True, **CONNECTION_TIMEOUTS) as connection:
            vector = await TypeInfo.fetch(connection, "vector")
            halfvec = await TypeInfo.fetch(connection, "halfvec")
            sparsevec = await TypeInfo.fetch(connection, "sparsevec")
    except psycopg.OperationalError as problem:
        raise SetupError(f"PostgreSQL does not answer at RECOLLECT_DATABASE_URL ({type(problem).__name__}).") from None
    if vector is None or halfvec is None or sparsevec is None:
        raise SetupError("This database has no pgvector 0.8: run `recollect migrate` first.")
    return vector, halfvec, sparsevec


async def read_answered(read: Callable[[], Awaitable[Answer]]) -> Answer | None:
    """Read an answer of a pipeline that was ended early; None if it ended before this was answered."""
    try:
        return await read()
    except psycopg.ProgrammingError:
        return None
