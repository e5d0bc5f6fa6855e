"""Read and write the data of reflections: newest memories, backlog, jobs and results."""

from __future__ import annotations

from datetime import datetime

from recollect.core.agents.reflection import ReflectionBacklog
from recollect.core.agents.scoring import STREAM_KINDS
from recollect.core.memories.ids import fingerprint
from recollect.core.service.numbers import tenant_of
from recollect.errors import NotFoundError
from recollect.models.agents import Reflection
from recollect.models.filters import Filter
from recollect.models.memories import Kind, Memory, MemoryProgress, Receipt
from recollect.models.service import Scope
from recollect.store.database.pool import Database, load_queries
from recollect.store.memories import memories
from recollect.store.service import scopes
from recollect.store.service.jobs import write_id
from recollect.store.service.scopes import names

QUERIES = load_queries(__file__)
MAX_THOUGHTS = 500


async def fetch_newest(database: Database, scope: Scope, limit: int) -> list[Memory]:
    """Fetch the most recently accessed memories of the stream, newest first, without idle ones."""
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["newest"], {**names(scope), "kinds": [*STREAM_KINDS], "limit": limit})
    ids = [row["id"] for row in await found.fetchall()]
    whole = await memories.fetch(database, scope, ids) if ids else {}
    return [whole[memory_id] for memory_id in ids if memory_id in whole]


async def fetch_thoughts(database: Database, scope: Scope) -> list[Memory]:
    """Fetch the newest thoughts, to check whether a new one repeats them."""
    wanted = memories.RowQuery(only=Filter(kinds=(Kind.THOUGHT,)), limit=MAX_THOUGHTS, newest=True)
    async with database.reading(scope.tenant_id) as connection:
        found = await memories.query_memories(connection, scope, wanted)
    return [*(await memories.read_memory_rows(found)).values()]


async def read_gathered(database: Database, scope: Scope) -> ReflectionBacklog:
    """Read how much a scope has gathered since its last reflection."""
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["gathered"], names(scope))
    row = await found.fetchone()
    return ReflectionBacklog(row["importance"], row["memories"]) if row else ReflectionBacklog(0.0, 0)


async def mark_reflected(database: Database, scope: Scope, gathered: ReflectionBacklog) -> None:
    """Subtract the gathered memories that a reflection has read; later ones still count."""
    async with database.transaction(scope.tenant_id) as connection:
        parameters = {**names(scope), "importance": gathered.importance, "memories": gathered.memories}
        await connection.execute(QUERIES["mark_reflected"], parameters)


async def defer(database: Database, scope: Scope, now: datetime | None) -> str:
    """Queue a reflection at a given time, or find the one that waits; return the job's ID."""
    async with database.transaction(scope.tenant_id) as connection:
        held = await (await connection.execute(QUERIES["hold"], names(scope))).fetchone()
        if held is None:
            raise NotFoundError("Nothing to reflect on in this scope yet.")
        deferred = await scopes.defer_reflection(connection, held["id"], held["unreflected_memories"], now)
        row = await deferred.fetchone()
    assert row is not None  # noqa: S101 - one waits, or one was created
    return write_id(database, row["id"])


def key_of(job_id: str) -> str:
    """Return the idempotency key of a job's reflection."""
    return f"reflect-job-{job_id}"


async def find_written(database: Database, scope: Scope, key: str) -> Reflection | None:
    """Find the thoughts stored under an idempotency key; None if there are none.

    Questions without a stored thought are not returned.
    """
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["written"], {**names(scope), "key": key})
    row = await found.fetchone()
    if row is None:
        return None
    states = [MemoryProgress.EMBEDDED if embedded else MemoryProgress.STORED for embedded in row["embedded"]]
    receipts = [Receipt(memory_id, state) for memory_id, state in zip(row["memory_ids"], states, strict=True)]
    thoughts = await memories.fetch(database, scope, row["memory_ids"])
    asked = (thoughts[each.id].metadata.get("question") for each in receipts if each.id in thoughts)
    return Reflection(tuple(dict.fromkeys(str(question) for question in asked if question)), tuple(receipts))


async def record_no_reflection(database: Database, scope: Scope, key: str) -> None:
    """Record under an idempotency key that there was nothing to reflect on."""
    async with database.transaction(scope.tenant_id) as connection:
        claimed = {**names(scope), "key": key, "fingerprint": fingerprint([])}
        await connection.execute(memories.QUERIES["claim_key"], claimed)


async def find_scope(database: Database, scope_id: int) -> Scope | None:
    """Find a scope by its number."""
    tenant_id = tenant_of(scope_id)
    async with database.reading(tenant_id) as connection:
        found = await connection.execute(QUERIES["names"], {"scope_id": scope_id})
    row = await found.fetchone()
    return Scope(tenant_id, row["agent"], row["user"]) if row else None
