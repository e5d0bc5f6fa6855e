"""Know where the rows of a scope are: here, about to leave, or in an object; and move that from one to the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import uuid4

from psycopg.sql import SQL
from psycopg.types.json import Jsonb

from recollect.core.conversations.retention import RetentionRules
from recollect.core.imports.sections import ERASED_FIRST, KEPT_HOT
from recollect.core.service.numbers import tenant_of
from recollect.errors import UnavailableError
from recollect.models.outside import ColdStanding, FoundScope, Tier
from recollect.store.cold.storage import ColdStorage
from recollect.store.database.pool import Connection, Database, load_queries
from recollect.store.imports.erasures import list_tables
from recollect.store.service import jobs

QUERIES = load_queries(__file__)
PAGE = 1000
WAKE = "wake"
NEEDING_ROWS = ("embed", "enrich", "fade", "fold", "reflect", "rederive", "sync_state")
"""Jobs of a scope that must be done before it leaves."""
UNLISTED = frozenset(ERASED_FIRST)
"""Tables that an object has no section of: their rows are in others, or found again."""


@dataclass(frozen=True, slots=True)
class ScopeMark:
    """What a scope was when it was looked at: if it is still so, nobody has asked for it since."""

    tier: Tier
    since: datetime | None
    change_number: int


@dataclass(frozen=True, slots=True)
class ColdObject:
    """An object of a scope: its name, its size, its hash, and how many rows it holds by table."""

    scope_id: int
    name: str
    bytes: int = 0
    sha256: str = ""
    counts: Mapping[str, int] | None = None


async def find(database: Database, tenant_id: int, agent: str | None, user: str | None) -> list[FoundScope]:
    """Find scopes of a tenant by their names, wherever their rows are."""
    async with database.listing(tenant_id) as connection:
        found = await connection.execute(QUERIES["find"], {"agent": agent, "user": user})
    return [
        FoundScope(row["id"], row["agent"], row["user"], row["memory_count"], Tier(row["tier"]), row["tier_since"])
        for row in await found.fetchall()
    ]


async def mark(database: Database, tenant_id: int, scopes: Sequence[int]) -> list[int]:
    """ScopeMark hot scopes: they leave unless somebody asks for them; return those that were hot."""
    async with database.transaction(tenant_id) as connection:
        await connection.execute(QUERIES["begin_moving"])
        found = await connection.execute(QUERIES["mark"], {"scopes": list(scopes)})
        return [row["id"] for row in await found.fetchall()]


async def read_mark(connection: Connection, scope_id: int, *, lock: bool = False) -> ScopeMark | None:
    """Look at a scope, and keep others from changing it if asked."""
    found = await connection.execute(QUERIES["lock" if lock else "read_mark"], {"scope_id": scope_id})
    row = await found.fetchone()
    return ScopeMark(Tier(row["tier"]), row["tier_since"], row["change_number"]) if row else None


async def begin_moving(connection: Connection) -> None:
    """Let a transaction move a scope."""
    await connection.execute(QUERIES["begin_moving"])


async def begin_object(database: Database, scope_id: int) -> ColdObject:
    """Name an object that is about to be written, so that it is removed if nothing comes of it."""
    made = ColdObject(scope_id, f"{tenant_of(scope_id)}/{scope_id}/{uuid4()}")
    async with database.transaction(tenant_of(scope_id)) as connection:
        await connection.execute(QUERIES["begin_object"], {"scope_id": scope_id, "name": made.name})
    return made


async def leave(database: Database, written: ColdObject, seen: ScopeMark) -> bool:
    """Delete the rows of a scope whose object is stored, unless anything happened since; tell whether it is cold."""
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
                # The object holds all rows that there are: nobody has written since. What it does not list is small.
                if name not in KEPT_HOT and (name in UNLISTED or name in (written.counts or {})):
                    await connection.execute(SQL(QUERIES["delete"]).format(table=table), {"scope_id": scope_id})
            await become(connection, scope_id, Tier.COLD)
    return True


async def is_busy(connection: Connection, scope_id: int) -> bool:
    """Tell whether something is to be done in a scope that needs its rows."""
    locks = [f"{task}:{scope_id}" for task in NEEDING_ROWS]
    row = await (await connection.execute(QUERIES["is_busy"], {"scope_id": scope_id, "locks": locks})).fetchone()
    return bool(row and row["busy"])


async def become(connection: Connection, scope_id: int, tier: Tier) -> None:
    """Note where the rows of a scope are from now on, and let mirrors follow."""
    await connection.execute(QUERIES["become"], {"scope_id": scope_id, "tier": tier.value})
    await connection.execute(QUERIES["remirror"], {"scope_id": scope_id})


async def read_held(connection: Connection, scope_id: int) -> ColdObject | None:
    """Read which object a cold scope comes back from."""
    row = await (await connection.execute(QUERIES["held"], {"scope_id": scope_id})).fetchone()
    return ColdObject(scope_id, **row) if row else None


def require_object(held: ColdObject | None) -> ColdObject:
    """Return the object of a cold scope; one that has come back meanwhile is to be asked for again."""
    if held is None:
        raise UnavailableError("The scope has come back from object storage meanwhile; try again.")
    return held


async def release(connection: Connection, held: ColdObject, state: str = "held") -> bool:
    """Note that an object is of no use any more; tell whether it was in this state before."""
    parameters = {"scope_id": held.scope_id, "name": held.name, "state": state}
    return await (await connection.execute(QUERIES["release_object"], parameters)).fetchone() is not None


async def give_up(database: Database, written: ColdObject) -> bool:
    """Note that nothing comes of an object; False if something did."""
    async with database.transaction(tenant_of(written.scope_id)) as connection:
        return await release(connection, written, "writing")


async def remove_unneeded(database: Database, storage: ColdStorage, scopes: Sequence[int]) -> int:
    """Remove the objects of scopes of one tenant that are of no use any more; return how many."""
    objects = await list_unneeded(database, scopes)
    for each in objects:
        await remove(database, storage, each)
    return len(objects)


async def list_unneeded(database: Database, scopes: Sequence[int]) -> list[ColdObject]:
    """List the objects of scopes of one tenant that are of no use any more."""
    if not scopes:
        return []
    async with database.reading(tenant_of(scopes[0])) as connection:
        found = await connection.execute(QUERIES["unneeded"], {"scopes": list(scopes)})
    return [ColdObject(row["scope_id"], row["name"]) for row in await found.fetchall()]


async def remove(database: Database, storage: ColdStorage, unneeded: ColdObject) -> None:
    """Remove an object, and then what is known of it."""
    await storage.remove(unneeded.name)
    parameters = {"scope_id": unneeded.scope_id, "name": unneeded.name}
    async with database.transaction(tenant_of(unneeded.scope_id)) as connection:
        await connection.execute(QUERIES["forget_object"], parameters)


async def list_to_remove(database: Database, seconds: float) -> list[ColdObject]:
    """List objects of no use over all tenants, with those of attempts that were broken off so many seconds ago."""
    async with database.transaction(None) as connection:
        found = await connection.execute(QUERIES["to_remove"], {"seconds": seconds, "limit": PAGE})
        return [ColdObject(row["scope_id"], row["name"]) for row in await found.fetchall()]


async def mark_due(database: Database, days: float) -> int:
    """ScopeMark scopes of all tenants that nobody touched for so many days; return how many."""
    total, marked = 0, PAGE
    while marked == PAGE:
        async with database.transaction(None) as connection:
            row = await (await connection.execute(QUERIES["mark_due"], {"days": days, "limit": PAGE})).fetchone()
        marked = row["marked"] if row else 0
        total += marked
    return total


async def defer_moves(database: Database, task: str, seconds: float, rules: RetentionRules) -> int:
    """Queue a job for every scope that was marked long enough, or in which a rule has something to do."""
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
    """Queue a job that brings a scope back."""
    async with database.transaction(tenant_of(scope_id)) as connection:
        await jobs.defer(connection, WAKE, f"{WAKE}:{scope_id}", {"scope_id": scope_id})


async def read_standing(database: Database) -> ColdStanding:
    """Count cold scopes over all tenants."""
    async with database.reading(None) as connection:
        found = await connection.execute(QUERIES["standing"])
    row = await found.fetchone()
    return ColdStanding(**row) if row else ColdStanding()
