"""Find out who asks and where their scope lies, in one round trip, and open scopes for writing."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

from psycopg import AsyncCursor
from psycopg.rows import DictRow

from recollect.errors import UnauthenticatedError
from recollect.models import Caller, EmbeddingSpace, Right, Scope
from recollect.store.db import Connection, Database
from recollect.store.sql import load_queries

QUERIES = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a scope lies for reading: no id means that nothing was remembered there yet."""

    scope_id: int | None
    memory_count: int
    approximate_space: int | None
    space: EmbeddingSpace | None


@dataclass(frozen=True, slots=True)
class Opening:
    """A scope locked for one write: its number, its size, and the moment the write counts as."""

    scope_id: int
    memory_count: int
    term_count: int
    written_at: datetime


async def admit(database: Database, secret: str, door: str, agent: str, user: str) -> tuple[Caller, Place]:
    """Authenticate a secret and locate a scope of its tenant."""
    shown = hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()
    async with database.statement() as connection:
        asked = {"hash": shown, "agent": agent, "user": user, "patience": database.milliseconds}
        answer = await connection.execute(QUERIES["admit"], asked)
        row = await answer.fetchone()
    if row is None:
        raise UnauthenticatedError("This API key is unknown or revoked.")
    rights = frozenset(Right(right) for right in row["rights"])
    return Caller(row["tenant_id"], rights, f"{door}:{row['name']}", row["trust"]), to_place(row)


async def locate(database: Database, scope: Scope) -> Place:
    """Locate a scope for a caller who is already known."""
    async with database.reading(scope.tenant_id) as connection:
        located = await ask_place(connection, scope.agent, scope.user)
    return await read_place(located)


async def ask_place(connection: Connection, agent: str, user: str) -> AsyncCursor[DictRow]:
    """Send the question where a scope lies."""
    return await connection.execute(QUERIES["locate"], {"agent": agent, "user": user})


async def read_place(located: AsyncCursor[DictRow]) -> Place:
    """Read the answer to `ask_place`."""
    row = await located.fetchone()
    return to_place(row) if row else Place(None, 0, None, None)


def to_place(row: DictRow) -> Place:
    """Turn a row into a place."""
    space = None
    if row["space_id"] is not None:
        space = EmbeddingSpace(row["space_id"], row["model"], row["dimensions"], "active")
    return Place(row["scope_id"], row["memory_count"] or 0, row["approximate_space"], space)


async def ask_opening(connection: Connection, scope: Scope) -> AsyncCursor[DictRow]:
    """Send the request to lock a scope for writing, making it if it is new."""
    return await connection.execute(QUERIES["open_for_writing"], {"agent": scope.agent, "user": scope.user})


async def read_opening(opened: AsyncCursor[DictRow]) -> Opening:
    """Read the answer to `ask_opening`."""
    row = await opened.fetchone()
    if row is None:
        raise UnauthenticatedError("No such tenant.")
    return Opening(row["id"], row["memory_count"], row["term_count"], row["last_written_at"])


async def close_writing(connection: Connection, scope_id: int, memories: int, terms: int, written_at: datetime) -> None:
    """Count what was written to a scope, in the transaction of the write."""
    counts = {"scope_id": scope_id, "memories": memories, "terms": terms, "written_at": written_at}
    await connection.execute(QUERIES["close_writing"], counts)


async def list_tenants(database: Database) -> list[int]:
    """List all tenants by number, for work that walks them one by one."""
    async with database.reading(None) as connection:
        rows = await (await connection.execute(QUERIES["tenants"])).fetchall()
        return [row["id"] for row in rows]
