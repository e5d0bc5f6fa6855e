"""Track and change where the rows of a scope are: in the database, marked to leave, or in an object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import uuid4

from psycopg.sql import SQL
from psycopg.types.json import Jsonb

from recollect.core.conversations.retention import RetentionRules
from recollect.core.imports.sections import ERASED_FIRST, RECENTLY_USED
from recollect.core.service.numbers import tenant_of
from recollect.errors import UnavailableError
from recollect.models.outside import ColdStats, ScopeLocation, StorageTier
from recollect.store.cold.storage import ColdStorage
from recollect.store.database.pool import Connection, Database, load_queries
from recollect.store.imports.erasures import list_tables
from recollect.store.service import jobs

QUERIES = load_queries(__file__)
PAGE = 1000
WAKE = "wake"
NEEDING_ROWS = ("embed", "enrich", "fade", "fold", "reflect", "rederive", "sync_state")
"""Jobs of a scope that must finish before its rows leave the database."""
UNLISTED = frozenset(ERASED_FIRST)
"""Tables without a section in an object: their rows are in other tables, or are built again."""


@dataclass(frozen=True, slots=True)
class ScopeVersion:
    """The state of a scope when it was read; an equal state later means that nobody used it since."""

    tier: StorageTier
    since: datetime | None
    change_number: int


@dataclass(frozen=True, slots=True)
class ColdObject:
    """An object of a scope: name, size, hash, and number of rows by table."""

    scope_id: int
    name: str
    bytes: int = 0
    sha256: str = ""
    counts: Mapping[str, int] | None = None


async def find_scopes(database: Database, tenant_id: int, agent: str | None, user: str | None) -> list[ScopeLocation]:
    """Find scopes of a tenant by their names, in any storage tier."""
    async with database.listing(tenant_id) as connection:
        found = await connection.execute(QUERIES["find"], {"agent": agent, "user": user})
    return [
        ScopeLocation(
            row["id"], row["agent"], row["user"], row["memory_count"], StorageTier(row["tier"]), row["tier_since"]
        )
        for row in await found.fetchall()
    ]


async def mark(database: Database, tenant_id: int, scopes: Sequence[int]) -> list[int]:
    """Mark hot scopes: they leave unless somebody asks for them; return those that were hot."""
    async with database.transaction(tenant_id) as connection:
        await connection.execute(QUERIES["begin_moving"])
        found = await connection.execute(QUERIES["mark"], {"scopes": list(scopes)})
        return [row["id"] for row in await found.fetchall()]


async def read_mark(connection: Connection, scope_id: int, *, lock: bool = False) -> ScopeVersion | None:
    """Read the state of a scope, and lock it if requested."""
    found = await connection.execute(QUERIES["lock" if lock else "read_mark"], {"scope_id": scope_id})
    row = await found.fetchone()
    return ScopeVersion(StorageTier(row["tier"]), row["tier_since"], row["change_number"]) if row else None


async def begin_moving(connection: Connection) -> None:
    """Allow a transaction to move a scope."""
    await connection.execute(QUERIES["begin_moving"])


async def begin_object(database: Database, scope_id: int) -> ColdObject:
    """Record the name of an object before it is written, so that a failed attempt is removed."""
    made = ColdObject(scope_id, f"{tenant_of(scope_id)}/{scope_id}/{uuid4()}")
    async with database.transaction(tenant_of(scope_id)) as connection:
        await connection.execute(QUERIES["begin_object"], {"scope_id": scope_id, "name": made.name})
    return made


async def delete_archived_rows(database: Database, written: ColdObject, seen: ScopeVersion) -> bool:
    """Delete the rows of a scope whose object is stored; return whether the scope is cold now.

    Returns False if the scope was used since it was read.
    """
    scope_id = written.scope_id
    async with database.transaction(tenant_of(scope_id), pipelined=False) as connection:
        await begin_moving(connection)
        if await read_mark(connection, scope_id, lock=True) != seen or await is_busy(connection, scope_id):
            return False
        parameters = asdict(written) | {"counts": Jsonb(written.counts)}
        if await (await connection.execute(QUERIES["hold_object"], parameters)).fetchone() is None:
            return False
        tables = await list_tables(connection)
        async with connection.pipeline():
            for name, table in tables:
                # The object has all rows: nothing was written since. Rows that it does not list are few.
                if name not in RECENTLY_USED and (name in UNLISTED or name in (written.counts or {})):
                    await connection.execute(SQL(QUERIES["delete"]).format(table=table), {"scope_id": scope_id})
            await set_tier(connection, scope_id, StorageTier.COLD)
    return True


async def is_busy(connection: Connection, scope_id: int) -> bool:
    """Return whether a scope has pending work that needs its rows."""
    locks = [f"{task}:{scope_id}" for task in NEEDING_ROWS]
    row = await (await connection.execute(QUERIES["is_busy"], {"scope_id": scope_id, "locks": locks})).fetchone()
    return bool(row and row["busy"])


async def set_tier(connection: Connection, scope_id: int, tier: StorageTier) -> None:
    """Store where the rows of a scope are from now on, and have mirrors follow."""
    await connection.execute(QUERIES["become"], {"scope_id": scope_id, "tier": tier.value})
    await connection.execute(QUERIES["remirror"], {"scope_id": scope_id})


async def read_held(connection: Connection, scope_id: int) -> ColdObject | None:
    """Read the object from which a cold scope is restored."""
    row = await (await connection.execute(QUERIES["held"], {"scope_id": scope_id})).fetchone()
    return ColdObject(scope_id, **row) if row else None


def require_object(held: ColdObject | None) -> ColdObject:
    """Return the object of a cold scope; raise UnavailableError if the scope was restored."""
    if held is None:
        raise UnavailableError("The scope was restored from object storage in the meantime. Try again.")
    return held


async def release(connection: Connection, held: ColdObject, state: str = "held") -> bool:
    """Mark an object as unneeded; return whether it was in the given state before."""
    parameters = {"scope_id": held.scope_id, "name": held.name, "state": state}
    return await (await connection.execute(QUERIES["release_object"], parameters)).fetchone() is not None


async def give_up(database: Database, written: ColdObject) -> bool:
    """Mark an object as unneeded if it is still being written; return whether it was."""
    async with database.transaction(tenant_of(written.scope_id)) as connection:
        return await release(connection, written, "writing")


async def remove_unneeded(database: Database, storage: ColdStorage, scopes: Sequence[int]) -> int:
    """Remove the unneeded objects of scopes of one tenant; return how many."""
    objects = await list_unneeded(database, scopes)
    for each in objects:
        await remove(database, storage, each)
    return len(objects)


async def list_unneeded(database: Database, scopes: Sequence[int]) -> list[ColdObject]:
    """List the unneeded objects of scopes of one tenant."""
    if not scopes:
        return []
    async with database.reading(tenant_of(scopes[0])) as connection:
        found = await connection.execute(QUERIES["unneeded"], {"scopes": list(scopes)})
    return [ColdObject(row["scope_id"], row["name"]) for row in await found.fetchall()]


async def remove(database: Database, storage: ColdStorage, unneeded: ColdObject) -> None:
    """Remove an object, and then its row."""
    await storage.remove(unneeded.name)
    parameters = {"scope_id": unneeded.scope_id, "name": unneeded.name}
    async with database.transaction(tenant_of(unneeded.scope_id)) as connection:
        await connection.execute(QUERIES["forget_object"], parameters)


async def list_to_remove(database: Database, seconds: float) -> list[ColdObject]:
    """List unneeded objects of all tenants, including failed attempts older than the given seconds."""
    async with database.transaction(None) as connection:
        found = await connection.execute(QUERIES["to_remove"], {"seconds": seconds, "limit": PAGE})
        return [ColdObject(row["scope_id"], row["name"]) for row in await found.fetchall()]


async def mark_due(database: Database, days: float) -> int:
    """Mark scopes of all tenants that were not used for this number of days; return their number."""
    total, marked = 0, PAGE
    while marked == PAGE:
        async with database.transaction(None) as connection:
            row = await (await connection.execute(QUERIES["mark_due"], {"days": days, "limit": PAGE})).fetchone()
        marked = row["marked"] if row else 0
        total += marked
    return total


async def defer_moves(database: Database, task: str, seconds: float, rules: RetentionRules) -> int:
    """Queue a job for each scope that was marked long enough, or that a retention rule applies to."""
    days = ("archive_after_days", "delete_after_days", "purge_after_days", "recall_days")
    asked = {"task": task, "seconds": seconds, "limit": PAGE, **{name: getattr(rules, name) for name in days}}
    deferred, after = 0, 0
    while True:
        async with database.transaction(None) as connection:
            row = await (await connection.execute(QUERIES["defer_moves"], asked | {"after": after})).fetchone()
        if row is None or not row["scopes"]:
            return deferred
        deferred, after = deferred + (row["jobs"] or 0), row["last"]


async def defer_waking(database: Database, scope_id: int) -> None:
    """Queue a job that restores a scope."""
    async with database.transaction(tenant_of(scope_id)) as connection:
        await jobs.defer(connection, WAKE, f"{WAKE}:{scope_id}", {"scope_id": scope_id})


async def count_cold_scopes(database: Database) -> ColdStats:
    """Count cold scopes over all tenants."""
    async with database.reading(None) as connection:
        found = await connection.execute(QUERIES["standing"])
    row = await found.fetchone()
    return ColdStats(**row) if row else ColdStats()
