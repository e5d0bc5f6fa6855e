"""Read a Dify database of any version from one read-only snapshot; mark imported questions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC
from uuid import UUID

import psycopg
from psycopg import AsyncConnection, IsolationLevel, errors, sql
from psycopg.rows import DictRow, dict_row

from recollect.core.conversations.appends import MAX_MESSAGE_LENGTH
from recollect.core.conversations.threads import NIL
from recollect.core.imports.dify import DifyConversation, DifyNode, DifyRow, File
from recollect.errors import SetupError, UnavailableError
from recollect.models.imports import DifyImport
from recollect.models.service import Scope
from recollect.store.database.errors import describe_database_error
from recollect.store.database.pool import CONNECTION_TIMEOUTS, Database, load_queries
from recollect.store.service.scopes import lock_scope, names

QUERIES = load_queries(__file__)
NEEDED = {
    "conversations": {"id", "app_id", "mode", "name", "inputs", "from_source", "from_end_user_id", "from_account_id"},
    "messages": {"id", "conversation_id", "query", "answer", "answer_tokens", "created_at"},
}
OPTIONAL = ("message_files", "end_users", "upload_files")
AT_ONCE = 200
"""Maximum number of conversations to fetch from the server at a time."""
NULL_COLUMN = sql.SQL("null")
Snapshot = AsyncConnection[DictRow]


@dataclass(frozen=True, slots=True)
class Totals:
    """The number of Dify's conversations, turns and files to import."""

    conversations: int
    turns: int
    files: int


@dataclass(frozen=True, slots=True)
class DifyDatabase:
    """A snapshot of a Dify database, and the columns that its version has."""

    snapshot: Snapshot
    columns: Mapping[str, frozenset[str]]

    async def count(self, wanted: DifyImport) -> Totals:
        """Count the requested conversations, turns and files."""
        with asked():
            found = await (await self.snapshot.execute(QUERIES["count"], build_import_parameters(wanted))).fetchone()
            files = None
            if self.columns["message_files"]:
                files = await (
                    await self.snapshot.execute(QUERIES["count_files"], build_import_parameters(wanted))
                ).fetchone()
        assert found is not None  # noqa: S101 - counts always return their row
        return Totals(found["conversations"], found["turns"], files["files"] if files else 0)

    async def conversations(self, wanted: DifyImport) -> AsyncIterator[list[DifyConversation]]:
        """Read conversations, oldest first, in batches."""
        ends = {"id", "session_id"} <= self.columns["end_users"]
        query = sql.SQL(QUERIES["conversations"]).format(
            is_deleted=self._column("conversations", "conversations", "is_deleted"),
            invoke_from=self._column("conversations", "conversations", "invoke_from"),
            session=sql.SQL(QUERIES["session"]) if ends else NULL_COLUMN,
        )
        async with self.snapshot.cursor(name="conversations") as cursor:
            with asked():
                await cursor.execute(query, build_import_parameters(wanted))
            while True:
                with asked():
                    rows = await cursor.fetchmany(AT_ONCE)
                if not rows:
                    return
                yield [DifyConversation(**row) for row in rows]

    async def outlines(self, conversation: str) -> list[DifyNode]:
        """Read how the messages of a conversation follow each other, oldest first."""
        # Without such a column, every row is older than branches.
        stated = sql.SQL("turn.parent_message_id::text")
        parent = stated if "parent_message_id" in self.columns["messages"] else sql.Literal(NIL)
        query = sql.SQL(QUERIES["outlines"]).format(parent_message_id=parent)
        with asked():
            found = await self.snapshot.execute(query, {"conversation": conversation})
            return [DifyNode(**row) for row in await found.fetchall()]

    async def exchanges(self, ids: Sequence[str]) -> dict[str, DifyRow]:
        """Read questions and answers by ID, except those that cannot be stored."""
        query = sql.SQL(QUERIES["exchanges"]).format(
            status=self._column("messages", "turn", "status"), error=self._column("messages", "turn", "error")
        )
        with asked():
            found = await self.snapshot.execute(query, {"ids": [*map(UUID, ids)], "longest": MAX_MESSAGE_LENGTH})
            return {row["id"]: DifyRow(**row) for row in await found.fetchall()}

    async def files(self, ids: Sequence[str]) -> dict[str, list[File]]:
        """Read the files of messages, in their original order."""
        read: dict[str, list[File]] = {}
        if not self.columns["message_files"]:
            return read
        query = sql.SQL(QUERIES["files"]).format(
            transfer_method=self._column("message_files", "file", "transfer_method"),
            belongs_to=self._column("message_files", "file", "belongs_to"),
            name=sql.SQL(QUERIES["name"]) if {"id", "name"} <= self.columns["upload_files"] else NULL_COLUMN,
        )
        with asked():
            found = await self.snapshot.execute(query, {"ids": [*map(UUID, ids)]})
            for row in await found.fetchall():
                read.setdefault(row["message"], []).append(File(**row))
        return read

    def _column(self, table: str, called: str, column: str) -> sql.Composable:
        """Return the name of a column, or null if this version lacks it."""
        return sql.Identifier(called, column) if column in self.columns[table] else NULL_COLUMN


@asynccontextmanager
async def open_source(dsn: str) -> AsyncIterator[DifyDatabase]:
    """Open a read-only snapshot of a Dify database."""
    try:
        snapshot = await Snapshot.connect(dsn, row_factory=dict_row, client_encoding="utf8", **CONNECTION_TIMEOUTS)
    except (psycopg.OperationalError, psycopg.ProgrammingError) as problem:
        raise SetupError(
            f"Dify's PostgreSQL does not answer at this DSN ({type(problem).__name__}): "
            "give postgresql://user@host:port/database, and the password in PGPASSWORD."
        ) from None
    async with snapshot:
        await snapshot.set_isolation_level(IsolationLevel.REPEATABLE_READ)
        await snapshot.set_read_only(True)
        yield DifyDatabase(snapshot, await read_columns(snapshot))


async def read_columns(snapshot: Snapshot) -> Mapping[str, frozenset[str]]:
    """Find which columns this version of Dify has and this role may read."""
    tables = [*NEEDED, *OPTIONAL]
    with asked():
        found = await (await snapshot.execute(QUERIES["columns"], {"tables": tables})).fetchall()
    columns = {table: frozenset(row["column_name"] for row in found if row["table_name"] == table) for table in tables}
    missing = [f"{table}.{name}" for table, needed in NEEDED.items() for name in sorted(needed - columns[table])]
    if missing:
        raise SetupError(
            "This is not a Dify database, or this role may not read it. It lacks " + ", ".join(missing[:4]) + "."
        )
    return columns


def build_import_parameters(wanted: DifyImport) -> dict[str, object]:
    """Return the parameters that select the requested data; Dify's times have no zone and mean UTC."""
    since = wanted.since.astimezone(UTC).replace(tzinfo=None) if wanted.since else None
    return {"app": wanted.app, "since": since}


@contextmanager
def asked() -> Iterator[None]:
    """Raise an error with a remedy if Dify's database does not answer."""
    try:
        yield
    except errors.InsufficientPrivilege:
        raise SetupError(
            "This role may not read Dify's tables: grant it select on conversations, messages, message_files, "
            "end_users and upload_files."
        ) from None
    except psycopg.Error as problem:
        raise UnavailableError(
            f"Dify's database did not respond ({describe_database_error(problem)}). Run the import again to resume."
        ) from None


async def mark_answered(database: Database, scope: Scope, conversation: str, ids: Sequence[UUID]) -> None:
    """Mark questions as answered."""
    parameters = {**names(scope), "conversation": conversation, "ids": list(ids)}
    async with database.transaction(scope.tenant_id) as connection:
        await lock_scope(connection, scope)
        await connection.execute(QUERIES["answered"], parameters)
