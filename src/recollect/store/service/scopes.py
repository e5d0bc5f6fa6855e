"""Authenticate callers and locate scopes, in one round trip, and open scopes for writing."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TypeVar
from uuid import UUID

from psycopg import AsyncCursor
from psycopg.rows import DictRow

from recollect.core.agents.profiles import to_profile
from recollect.core.service.numbers import bucket_of, tenant_of
from recollect.core.service.permissions import KEY_BINDING_MISMATCH
from recollect.core.service.secrets import tenant_of_secret
from recollect.errors import ForbiddenError, ScopeRestoringError, UnauthenticatedError
from recollect.models.agents import Profile
from recollect.models.outside import StorageTier
from recollect.models.service import Caller, CountedLimits, EmbeddingSpace, KeyBinding, Limits, Right, Scope
from recollect.store.database.pool import Connection, Database, load_queries

QUERIES = load_queries(__file__)
Answer = TypeVar("Answer")
BEGINNING = UUID(int=0)
UNKNOWN_KEY = "This API key is unknown or revoked."


@dataclass(frozen=True, slots=True)
class ScopeHandle:
    """The location of a scope for reading: without an ID nothing was stored there yet."""

    scope_id: int | None
    memory_count: int
    approximate_space: int | None
    space: EmbeddingSpace | None
    profile: Profile
    has_keywords: bool = True
    """Whether anything was ever filed under keywords; likewise for names of entities, topics and evidence."""
    has_names: bool = True
    has_topics: bool = True
    has_evidence: bool = True


@dataclass(frozen=True, slots=True)
class Counts:
    """What a write adds to its scope's counters."""

    memories: int = 0
    events: int = 0
    thoughts: int = 0
    chats: int = 0
    terms: int = 0
    unreflected: int = 0
    """How many memories wait for a reflection."""
    importance: float = 0.0
    """Their importance, which triggers a reflection when it is high enough."""


@dataclass(frozen=True, slots=True)
class LockedScope:
    """A scope locked for one write: its number, its size, and the time of the write."""

    scope_id: int
    memory_count: int
    term_count: int
    written_at: datetime
    unreflected_importance: float
    unreflected_memories: int
    written_before: int = 0
    """Number of memories that earlier writes of the same transaction stored with the same time."""


@dataclass(frozen=True, slots=True)
class AuthorizedScope:
    """The caller, the scope, and its location."""

    caller: Caller
    scope: Scope
    place: ScopeHandle


def find_tenant(secret: str) -> int:
    """Read the tenant in a secret; the key is looked up there, so a wrong number is of no use."""
    tenant_id = tenant_of_secret(secret)
    if tenant_id is None:
        # Mistyped, or cut off: no key has this form, so no key is looked up.
        raise UnauthenticatedError(UNKNOWN_KEY)
    return tenant_id


async def authorize(database: Database, secret: str, door: str, agent: str, user: str) -> AuthorizedScope:
    """Authenticate a secret and locate a scope of its tenant; the default names are those of the key."""
    tenant_id, shown = find_tenant(secret), hashlib.sha256(secret.encode()).hexdigest()
    async with database.asking(tenant_id) as connection:
        asked = {"hash": shown, "agent": agent, "user": user, "lock_timeout": database.milliseconds}
        answer = await connection.execute(QUERIES["authorize"], asked)
    row = await answer.fetchone()
    if row is None:
        raise UnauthenticatedError(UNKNOWN_KEY)
    if row["agent"] is None:
        raise ForbiddenError(KEY_BINDING_MISMATCH)
    rights = frozenset(Right(right) for right in row["rights"])
    bounds = KeyBinding(row["bound_agent"], row["bound_user"])
    origin, counted = f"{door}:{row['name']}", read_counted(row)
    caller = Caller(row["tenant_id"], rights, origin, row["trust"], bounds, row["key_id"], counted)
    return AuthorizedScope(caller, Scope(caller.tenant_id, row["agent"], row["user"]), to_place(row))


def read_counted(row: DictRow) -> tuple[CountedLimits, ...]:
    """Read the limits of a key and of its tenant, if there are any."""
    named = (("key", row["counted_as"], row["key_limits"]), ("tenant", row["tenant_id"], row["tenant_limits"]))
    return tuple(CountedLimits(f"{kind} {name}", to_limits(found)) for kind, name, found in named if found is not None)


def to_limits(found: Sequence[float | None]) -> Limits:
    """Convert the numbers of a row to limits; all but the rate are integers."""
    rate, *whole = found
    return Limits(rate, *(None if each is None else int(each) for each in whole))


async def locate(database: Database, scope: Scope) -> ScopeHandle:
    """Locate a scope for an authenticated caller."""
    async with database.reading(scope.tenant_id) as connection:
        asked = await ask_place(connection, scope.agent, scope.user)
    return await read_place(asked)


async def ask_place(connection: Connection, agent: str, user: str) -> AsyncCursor[DictRow]:
    """Query the location of a scope."""
    return await connection.execute(QUERIES["locate"], {"agent": agent, "user": user})


async def read_place(asked: AsyncCursor[DictRow]) -> ScopeHandle:
    """Read the result of `ask_place`."""
    row = await asked.fetchone()
    return to_place(row) if row else ScopeHandle(None, 0, None, None, Profile())


async def list_users(database: Database, scope: Scope, limit: int) -> list[str]:
    """List users with memories of the scope's agent; an empty name for memories without a user."""
    async with database.listing(scope.tenant_id) as connection:
        rows = await connection.execute(QUERIES["users"], {"agent": scope.agent, "limit": limit})
    return [row["user"] for row in await rows.fetchall()]


def to_place(row: DictRow) -> ScopeHandle:
    """Convert a row to a location."""
    space = None
    if row["space_id"] is not None:
        space = EmbeddingSpace(row["space_id"], row["model"], row["dimensions"], "active", row["precision"])
    profile = to_profile(row["profile"])
    held = {name: bool(row[name]) for name in ("has_keywords", "has_names", "has_topics", "has_evidence")}
    return ScopeHandle(row["scope_id"], row["memory_count"] or 0, row["approximate_space"], space, profile, **held)


async def ask_opening(connection: Connection, scope: Scope) -> AsyncCursor[DictRow]:
    """Send the request to lock a scope for writing, creating it if it is new."""
    asked = names(scope) | {"bucket": bucket_of(scope.agent, scope.user)}
    return await connection.execute(QUERIES["open_for_writing"], asked)


async def read_opening(opened: AsyncCursor[DictRow]) -> LockedScope:
    """Read the result of `ask_opening`."""
    row = await opened.fetchone()
    if row is None:
        raise UnauthenticatedError("No such tenant.")
    return LockedScope(
        row["id"],
        row["memory_count"],
        row["term_count"],
        row["last_written_at"],
        row["unreflected_importance"],
        row["unreflected_memories"],
    )


async def lock_scope(connection: Connection, scope: Scope) -> AsyncCursor[DictRow]:
    """Lock a scope against other writes until the transaction ends; the result is empty for an unknown scope."""
    return await connection.execute(QUERIES["lock"], names(scope))


async def open_scope(database: Database, scope: Scope) -> int:
    """Return a scope's number, creating the scope if it is new."""
    async with database.transaction(scope.tenant_id) as connection:
        return (await read_opening(await ask_opening(connection, scope))).scope_id


async def close_writing(connection: Connection, scope_id: int, counts: Counts, written_at: datetime) -> None:
    """Update the counters of a scope, in the transaction of the write."""
    parameters = {"scope_id": scope_id, "written_at": written_at, **asdict(counts)}
    await connection.execute(QUERIES["close_writing"], parameters)


def grow(opening: LockedScope, counts: Counts) -> LockedScope:
    """Return a scope as the next write of the same transaction finds it."""
    return replace(
        opening,
        memory_count=opening.memory_count + counts.memories,
        term_count=opening.term_count + counts.terms,
        written_before=opening.written_before + counts.memories,
    )


async def reset_reflection_backlog(connection: Connection, scope_id: int, importance: float, memories: int) -> None:
    """Set the backlog since the last reflection, for imports that know it."""
    parameters = {"scope_id": scope_id, "importance": importance, "memories": memories}
    await connection.execute(QUERIES["reset_reflection_backlog"], parameters)


async def defer_reflection(
    connection: Connection, scope_id: int, memories: int, now: datetime | None = None
) -> AsyncCursor[DictRow]:
    """Queue a reflection and reset the backlog; if one is waiting already, keep the backlog."""
    moment = now.astimezone(UTC).isoformat() if now else None
    parameters = {"scope_id": scope_id, "lock": f"reflect:{scope_id}", "memories": memories, "now": moment}
    return await connection.execute(QUERIES["defer_reflection"], parameters)


async def touch(database: Database, scope_id: int) -> StorageTier:
    """Prevent a scope from moving to object storage; return where its rows are now."""
    async with database.transaction(tenant_of(scope_id)) as connection:
        await connection.execute(QUERIES["begin_moving"])
        row = await (await connection.execute(QUERIES["touch"], {"scope_id": scope_id})).fetchone()
    return StorageTier(row["tier"]) if row else StorageTier.HOT


async def prevent_archiving(database: Database, call: Callable[[], Awaitable[Answer]]) -> Answer:
    """Run a call in scopes known by number; a scope marked for object storage stays."""
    while True:
        try:
            return await call()
        except ScopeRestoringError as met:
            if await touch(database, met.scope_id) is not StorageTier.HOT:
                raise


def names(scope: Scope) -> dict[str, str]:
    """Return the parameters that name a scope in every query."""
    return {"agent": scope.agent, "user": scope.user}
