"""Hold the connections and run transactions: bound to one tenant, pipelined, durable when acknowledged."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, LiteralString, Self, TypeAlias, TypeVar, cast
from uuid import UUID

import psycopg
from pgvector.psycopg.halfvec import register_halfvec_info
from pgvector.psycopg.sparsevec import register_sparsevec_info
from pgvector.psycopg.vector import register_vector_info
from psycopg import AsyncConnection, AsyncCursor, AsyncPipeline, errors, waiting
from psycopg.abc import PQGen
from psycopg.rows import DictRow, dict_row
from psycopg.sql import SQL, Composable
from psycopg.types import TypeInfo
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from recollect.errors import (
    ConflictError,
    InvalidInputError,
    OverdueError,
    SchemaError,
    SetupError,
    UnavailableError,
    WakingError,
)
from recollect.store.database.pipeline import HeldPipeline
from recollect.store.database.prepared import LOST, NamedStatements, Preparing, is_changed

HEADING = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
Connection: TypeAlias = AsyncConnection[DictRow]
Cursor: TypeAlias = AsyncCursor[DictRow]
Answer = TypeVar("Answer")
LOAD_MILLISECONDS = "600000"
"""A bulk load has no deadline; this is how long one of its steps may take."""
UNAVAILABLE = (
    psycopg.OperationalError,
    PoolTimeout,
    errors.IdleInTransactionSessionTimeout,
    errors.ReadOnlySqlTransaction,
)
UNKNOWN = (errors.UndefinedTable, errors.UndefinedFunction, errors.UndefinedColumn, errors.UndefinedObject)
OF_SPACE = re.compile(r"\b(vectors|rank_newest|rank_whole|rank_near)_\d+\b")
"""Names of a dropped embedding space, which a concurrent reader may still use between two round trips."""
TAKEN = {
    "messages_by_external_id": "The conversation has a message with this external_id already.",
    "beliefs_said_once": "Another fact says the same for a common time: read the facts, then state or end that one.",
    "beliefs_one_at_a_time": "The fact was changed at this moment by somebody else: read it again, then try again.",
}
COLD = "RC001"
"""What the database answers who meets a scope that is not hot; the detail is its number."""
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


class Database:
    """A pool of connections of the service's role."""

    def __init__(
        self,
        pool: AsyncConnectionPool[GivenUpConnection],
        deadline_seconds: float,
        preparing: Preparing,
        key_id: UUID | None = None,
    ) -> None:
        self._pool = pool
        self._preparing = preparing
        self._key_id = str(key_id or "")
        self.deadline_seconds = deadline_seconds
        self.milliseconds = str(int(deadline_seconds * 1000))

    @classmethod
    async def open(cls, dsn: str, pool_size: int, deadline_seconds: float, *, prepared: bool = True) -> Database:
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
        return cls(pool, deadline_seconds, preparing)

    def used_by(self, key_id: UUID) -> Self:
        """Return the same connections for a caller whose key the change log names."""
        return type(self)(self._pool, self.deadline_seconds, self._preparing, key_id)

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
            async with self._pool.connection() as connection:
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
    async def reading(
        self, tenant_id: int | None, *, one_snapshot: bool = False, seconds: float | None = None
    ) -> AsyncIterator[Connection]:
        """Read as a tenant: all that is asked in the block travels together, in one round trip.

        A pipeline is one transaction without a `begin`, and the binding ends with it. Answers are read after
        the block: to read one inside it would be a round trip of its own. A statement that takes more than the
        seconds, or than the deadline, ends it with OverdueError: those after it are not answered.
        """
        milliseconds = None if seconds is None else str(max(1, int(seconds * 1000)))
        async with self.statement() as connection, connection.pipeline():
            if one_snapshot:
                await connection.execute(QUERIES["hold_snapshot"])
            await self._bind(connection, tenant_id, milliseconds)
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
                    await self._bind(connection, tenant_id, None if pipelined else LOAD_MILLISECONDS)
                    yield connection
                    ending = await connection.execute(QUERIES["commit"])
            finally:
                connection.remove_notice_handler(watch.notice)
            if watch.doubtful or ending.statusmessage != "COMMIT":
                raise UnavailableError("The write was not confirmed by every standby; try again.")

    @asynccontextmanager
    async def snapshot(self, tenant_id: int) -> AsyncIterator[Connection]:
        """Read as a tenant, as long as it takes: all that is read is of one moment."""
        async with self.statement() as connection:
            await connection.execute(QUERIES["begin_snapshot"])
            await self._bind(connection, tenant_id, LOAD_MILLISECONDS)
            yield connection
            await connection.execute(QUERIES["commit"])

    async def _bind(self, connection: Connection, tenant_id: int | None, milliseconds: str | None = None) -> None:
        tenant = "" if tenant_id is None else str(tenant_id)
        limit = milliseconds or self.milliseconds
        await connection.execute(QUERIES["bind"], {"tenant": tenant, "key_id": self._key_id, "milliseconds": limit})


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


@contextmanager
def translated_errors() -> Iterator[None]:
    """Turn the driver's errors into ours, without their texts, which may quote content."""
    try:
        with MeetingCold():
            yield
    except UNAVAILABLE as problem:
        kind = OverdueError if is_overdue(problem) else UnavailableError
        raise kind(f"The database is not available ({describe(problem)}); try again.") from None
    except (*LOST, errors.FeatureNotSupported) as problem:
        if isinstance(problem, LOST) or is_changed(problem):
            raise UnavailableError(f"A prepared statement was lost ({describe(problem)}); try again.") from None
        raise
    except UNKNOWN as problem:
        if OF_SPACE.search(problem.diag.message_primary or ""):
            raise UnavailableError(f"The embedding space was dropped ({describe(problem)}); try again.") from None
        raise SchemaError(
            f"The schema of the database does not fit this program ({describe(problem)}): run `recollect migrate`, or "
            "update the program if the schema is newer."
        ) from None
    except (errors.UniqueViolation, errors.ExclusionViolation) as problem:
        raise ConflictError(TAKEN.get(problem.diag.constraint_name or "", "This is stored already.")) from None
    except psycopg.DataError as problem:
        raise InvalidInputError(f"The database cannot store this value ({describe(problem)}).") from None


class MeetingCold:
    """Turn the error of who meets a scope that is not hot into ours; it may come from a later one of the pipeline."""

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _kind: object, problem: BaseException | None, _trace: object) -> None:
        """Raise our error in its place."""
        for each in (problem, problem.__context__) if problem else ():
            if isinstance(each, psycopg.Error) and each.sqlstate == COLD:
                raise WakingError(scope_id=int(each.diag.message_detail or 0)) from None


def is_overdue(problem: Exception) -> bool:
    """Tell whether a time limit ended a statement: the error may come from a later one of the pipeline."""
    return isinstance(problem, errors.QueryCanceled) or isinstance(problem.__context__, errors.QueryCanceled)


async def read_answered(read: Callable[[], Awaitable[Answer]]) -> Answer | None:
    """Read an answer of a pipeline that was ended early; None if it ended before this was answered."""
    try:
        return await read()
    except psycopg.ProgrammingError:
        return None


def describe(problem: Exception) -> str:
    """Name an error by class and code only."""
    state: Any = getattr(problem, "sqlstate", None)
    return f"{type(problem).__name__} {state}" if state else type(problem).__name__
