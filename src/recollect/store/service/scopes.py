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
from recollect.core.service.rights import OUT_OF_BOUNDS
from recollect.core.service.secrets import tenant_of_secret
from recollect.core.text.variants import NEWEST, check_version, choose_version
from recollect.errors import ForbiddenError, UnauthenticatedError, WakingError
from recollect.models.agents import Profile
from recollect.models.outside import Tier
from recollect.models.service import Bounds, Caller, Counted, EmbeddingSpace, Limits, Right, Scope
from recollect.store.database.pool import Connection, Database, load_queries

QUERIES = load_queries(__file__)
Answer = TypeVar("Answer")
BEGINNING = UUID(int=0)
UNKNOWN_KEY = "This API key is unknown or revoked."


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a scope for reading: no id means that nothing was remembered there yet."""

    scope_id: int | None
    memory_count: int
    approximate_space: int | None
    space: EmbeddingSpace | None
    profile: Profile
    has_keywords: bool = True
    """Whether anything was ever filed under keywords; so for the names of entities, for topics, and for evidence."""
    has_names: bool = True
    has_topics: bool = True
    has_evidence: bool = True
    text_version: int = NEWEST
    """By which version its texts are folded; of a scope that is not there yet, by which they will be."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What a write adds to its scope's counters."""

    memories: int = 0
    events: int = 0
    thoughts: int = 0
    chats: int = 0
    terms: int = 0
    unreflected: int = 0
    """How many wait for a reflection."""
    importance: float = 0.0
    """Their importance, which triggers a reflection in the end."""


@dataclass(frozen=True, slots=True)
class Opening:
    """A scope locked for one write: its number, its size, and the moment of the write."""

    scope_id: int
    memory_count: int
    term_count: int
    written_at: datetime
    unreflected_importance: float
    unreflected_memories: int
    written_before: int = 0
    """How many memories were written at the same moment, by writes before it in the same transaction."""


@dataclass(frozen=True, slots=True)
class Authorized:
    """The caller, the scope, and its place."""

    caller: Caller
    scope: Scope
    place: Place


def find_tenant(secret: str) -> int:
    """Read whose key a secret says it is; it is looked up there, so a false word is of no use."""
    tenant_id = tenant_of_secret(secret)
    if tenant_id is None:
        # Mistyped, or cut off: no key looks like this, so none is asked for.
        raise UnauthenticatedError(UNKNOWN_KEY)
    return tenant_id


async def authorize(database: Database, secret: str, door: str, agent: str, user: str) -> Authorized:
    """Authenticate a secret and locate a scope of its tenant, by the key's own names where none are given."""
    tenant_id, shown = find_tenant(secret), hashlib.sha256(secret.encode()).hexdigest()
    async with database.asking(tenant_id) as connection:
        asked = {"hash": shown, "agent": agent, "user": user, "lock_timeout": database.milliseconds}
        answer = await connection.execute(QUERIES["authorize"], asked)
    row = await answer.fetchone()
    if row is None:
        raise UnauthenticatedError(UNKNOWN_KEY)
    if row["agent"] is None:
        raise ForbiddenError(OUT_OF_BOUNDS)
    rights = frozenset(Right(right) for right in row["rights"])
    bounds = Bounds(row["bound_agent"], row["bound_user"])
    origin, counted = f"{door}:{row['name']}", read_counted(row)
    caller = Caller(row["tenant_id"], rights, origin, row["trust"], bounds, row["key_id"], counted)
    return Authorized(caller, Scope(caller.tenant_id, row["agent"], row["user"]), to_place(row))


def read_counted(row: DictRow) -> tuple[Counted, ...]:
    """Read the limits of a key and of its tenant, if there are any."""
    named = (("key", row["counted_as"], row["key_limits"]), ("tenant", row["tenant_id"], row["tenant_limits"]))
    return tuple(Counted(f"{kind} {name}", to_limits(found)) for kind, name, found in named if found is not None)


def to_limits(found: Sequence[float | None]) -> Limits:
    """Turn the numbers of a row into limits: but for the rate, all are whole."""
    rate, *whole = found
    return Limits(rate, *(None if each is None else int(each) for each in whole))


async def locate(database: Database, scope: Scope) -> Place:
    """Locate a scope for a caller who is already known."""
    async with database.reading(scope.tenant_id) as connection:
        asked = await ask_place(connection, scope.agent, scope.user)
    return await read_place(asked)


async def ask_place(connection: Connection, agent: str, user: str) -> AsyncCursor[DictRow]:
    """Send the query for the place of a scope."""
    return await connection.execute(QUERIES["locate"], {"agent": agent, "user": user})


async def read_place(asked: AsyncCursor[DictRow]) -> Place:
    """Read the answer to `ask_place`; what the caller folds from now on is folded as the scope stores it."""
    row = await asked.fetchone()
    place = to_place(row) if row else Place(None, 0, None, None, Profile())
    choose_version(place.text_version)
    return place


async def read_text_version(database: Database, scope_id: int) -> int:
    """Read by which version a scope's texts are folded."""
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["text_version"], {"scope_id": scope_id})
    row = await found.fetchone()
    return row["text_version"] if row else NEWEST


async def list_users(database: Database, scope: Scope, limit: int) -> list[str]:
    """List users of whom the scope's agent has memories; empty for memories without a user."""
    async with database.listing(scope.tenant_id) as connection:
        rows = await connection.execute(QUERIES["users"], {"agent": scope.agent, "limit": limit})
    return [row["user"] for row in await rows.fetchall()]


def to_place(row: DictRow) -> Place:
    """Turn a row into a place."""
    space = None
    if row["space_id"] is not None:
        space = EmbeddingSpace(row["space_id"], row["model"], row["dimensions"], "active", row["precision"])
    profile = to_profile(row["profile"])
    held = {name: bool(row[name]) for name in ("has_keywords", "has_names", "has_topics", "has_evidence")}
    size, version = row["memory_count"] or 0, row["text_version"] or NEWEST
    return Place(row["scope_id"], size, row["approximate_space"], space, profile, text_version=version, **held)


async def ask_opening(connection: Connection, scope: Scope) -> AsyncCursor[DictRow]:
    """Send the request to lock a scope for writing, making it if it is new."""
    asked = names(scope) | {"bucket": bucket_of(scope.agent, scope.user)}
    return await connection.execute(QUERIES["open_for_writing"], asked)


async def read_opening(opened: AsyncCursor[DictRow]) -> Opening:
    """Read the answer to `ask_opening`; refuse a write that folded its texts otherwise than the scope."""
    row = await opened.fetchone()
    if row is None:
        raise UnauthenticatedError("No such tenant.")
    check_version(row["text_version"])
    return Opening(
        row["id"],
        row["memory_count"],
        row["term_count"],
        row["last_written_at"],
        row["unreflected_importance"],
        row["unreflected_memories"],
    )


async def lock_scope(connection: Connection, scope: Scope) -> AsyncCursor[DictRow]:
    """Keep other writes out of a scope until the transaction ends; the answer is empty if there is no such scope."""
    return await connection.execute(QUERIES["lock"], names(scope))


async def open_scope(database: Database, scope: Scope) -> int:
    """Return a scope's number, making the scope if it is new."""
    async with database.transaction(scope.tenant_id) as connection:
        return (await read_opening(await ask_opening(connection, scope))).scope_id


async def close_writing(connection: Connection, scope_id: int, counts: Counts, written_at: datetime) -> None:
    """Count what was written to a scope, in the transaction of the write."""
    parameters = {"scope_id": scope_id, "written_at": written_at, **asdict(counts)}
    await connection.execute(QUERIES["close_writing"], parameters)


def grow(opening: Opening, counts: Counts) -> Opening:
    """Return a scope as the next write of the same transaction finds it."""
    return replace(
        opening,
        memory_count=opening.memory_count + counts.memories,
        term_count=opening.term_count + counts.terms,
        written_before=opening.written_before + counts.memories,
    )


async def set_unreflected(connection: Connection, scope_id: int, importance: float, memories: int) -> None:
    """Set what has gathered since the last reflection, for imports that know it."""
    parameters = {"scope_id": scope_id, "importance": importance, "memories": memories}
    await connection.execute(QUERIES["set_unreflected"], parameters)


async def defer_reflection(
    connection: Connection, scope_id: int, memories: int, now: datetime | None = None
) -> AsyncCursor[DictRow]:
    """Queue a reflection and start gathering again; if one is waiting already, go on gathering."""
    moment = now.astimezone(UTC).isoformat() if now else None
    parameters = {"scope_id": scope_id, "lock": f"reflect:{scope_id}", "memories": memories, "now": moment}
    return await connection.execute(QUERIES["defer_reflection"], parameters)


async def touch(database: Database, scope_id: int) -> Tier:
    """Keep a scope from leaving for object storage; return where its rows are now."""
    async with database.transaction(tenant_of(scope_id)) as connection:
        await connection.execute(QUERIES["begin_moving"])
        row = await (await connection.execute(QUERIES["touch"], {"scope_id": scope_id})).fetchone()
    return Tier(row["tier"]) if row else Tier.HOT


async def keep_hot(database: Database, call: Callable[[], Awaitable[Answer]]) -> Answer:
    """Do something in scopes that are known by number; one that is about to leave for object storage stays."""
    while True:
        try:
            return await call()
        except WakingError as met:
            if await touch(database, met.scope_id) is not Tier.HOT:
                raise


def names(scope: Scope) -> dict[str, str]:
    """Return the parameters by which every query names its scope."""
    return {"agent": scope.agent, "user": scope.user}
