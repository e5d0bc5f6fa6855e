"""Let memories fade from the indexes of recall in chunks, list what has faded, and restore it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from psycopg import AsyncCursor
from psycopg.rows import DictRow

from recollect.core.agents.profiles import to_profile
from recollect.core.memories.fading import FadingMemory, Policy, complete_rules, judge
from recollect.core.service.numbers import tenant_of
from recollect.models.memories import Faded, FadingRules, Grounds, Judgement, Kind
from recollect.store.database.pool import Connection, Database, load_queries
from recollect.store.service import jobs
from recollect.store.service.jobs import Lease, hold_lease
from recollect.store.service.scopes import BEGINNING

QUERIES = load_queries(__file__)
CHUNK = 500
"""How many memories one step looks at: writers of the scope wait at most until they have faded."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A pass over the memories of a scope: by which policy, for which job, and whether it is a dry run."""

    scope_id: int
    policy: Policy | None
    """None where nothing fades but what expires."""
    dry_run: bool = False
    lease: Lease | None = None


@dataclass(frozen=True, slots=True)
class FadingStep:
    """What one step decided, and where the next one begins; None at the end."""

    judgements: list[Judgement]
    next_cursor: UUID | None


async def fade_chunk(database: Database, walk: Walk, cursor: UUID) -> FadingStep:
    """Judge the next memories after a cursor, and let those fade that may, in one transaction if there are any."""
    async with database.reading(tenant_of(walk.scope_id)) as connection:
        bounds = {"scope_id": walk.scope_id, "cursor": cursor, "limit": CHUNK, "ids": None}
        found = await connection.execute(QUERIES["standings"], bounds | {"expired": walk.policy is None})
    judgements = await read_judgements(found, walk.policy)
    next_cursor = judgements[-1].id if len(judgements) == CHUNK else None
    fading = [each.id for each in judgements if each.fades]
    if fading and not walk.dry_run:
        decided = {each.id: each for each in await fade_now(database, walk, fading)}
        # What was recalled meanwhile is judged again, and what is gone needs no judgement.
        judgements = [decided.get(each.id, each) for each in judgements if not each.fades or each.id in decided]
    return FadingStep(judgements, next_cursor)


async def fade_now(database: Database, walk: Walk, ids: Sequence[UUID]) -> list[Judgement]:
    """Judge memories again while their scope is locked, and let those fade that still may."""
    async with database.transaction(tenant_of(walk.scope_id)) as connection:
        await connection.execute(QUERIES["lock"], {"scope_id": walk.scope_id})
        if walk.lease is not None:
            await hold_lease(connection, walk.lease)
        judgements = await read_judgements(await ask_standings(connection, walk.scope_id, ids), walk.policy)
        fading = [each for each in judgements if each.fades]
        chosen = {
            "ids": [each.id for each in fading],
            "scores": [each.score for each in fading],
            "grounds": [each.grounds.value for each in fading],
            "reasons": [each.reason for each in fading],
        }
        if fading:
            await connection.execute(QUERIES["fade"], {"scope_id": walk.scope_id, **chosen})
    return judgements


async def ask_standings(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> AsyncCursor[DictRow]:
    """Ask for what decides about memories; what does not take part in recall has no answer."""
    bounds = {"scope_id": scope_id, "cursor": BEGINNING, "limit": len(ids), "ids": list(ids), "expired": False}
    return await connection.execute(QUERIES["standings"], bounds)


async def read_judgements(found: AsyncCursor[DictRow], policy: Policy | None) -> list[Judgement]:
    """Read what decides about memories, and judge each."""
    return [to_judgement(row, policy) for row in await found.fetchall()]


def to_judgement(row: DictRow, policy: Policy | None) -> Judgement:
    """Judge a row of `standings`."""
    kind = Kind(row["kind"])
    remembered = FadingMemory(
        kind=kind,
        importance=row["importance"],
        created_at=row["created_at"],
        last_accessed_at=row["last_accessed_at"],
        access_count=row["access_count"],
        expires_at=row["expires_at"],
        held=row["held"],
    )
    verdict = judge(remembered, row["now"], policy)
    return Judgement(row["id"], kind, verdict.forget, verdict.score, verdict.grounds, verdict.reason)


async def fetch_rules(database: Database, scope_id: int, usual_days: float) -> FadingRules:
    """Find the rules of fading for a scope: of its agent's profile, or the defaults."""
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["profile"], {"scope_id": scope_id})
    row = await found.fetchone()
    return complete_rules(FadingRules(), to_profile(row["profile"] if row else None), usual_days)


async def list_faded(database: Database, scope_id: int, cursor: UUID, limit: int) -> list[Faded]:
    """List what has faded in a scope after a cursor, the oldest memory first."""
    bounds = {"scope_id": scope_id, "cursor": cursor, "limit": limit}
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["list"], bounds)
    return [
        Faded(row["id"], Kind(row["kind"]), row["faded_at"], row["score"], Grounds(row["grounds"]), row["reason"])
        for row in await found.fetchall()
    ]


async def revive(database: Database, scope_id: int, ids: Sequence[UUID]) -> list[UUID]:
    """Restore faded memories, and return which; those that still wait for a vector get it from a job."""
    async with database.transaction(tenant_of(scope_id)) as connection:
        await connection.execute(QUERIES["lock"], {"scope_id": scope_id})
        found = await connection.execute(QUERIES["revive"], {"scope_id": scope_id, "ids": list(ids)})
        row = await found.fetchone()
        if row is None:
            return []
        if row["waiting"]:
            await jobs.defer(connection, "embed", f"embed:{scope_id}", {"scope_id": scope_id})
        revived: list[UUID] = row["revived"]
        return revived


async def count_hot(database: Database, scope_id: int) -> int:
    """Count the memories of a scope that take part in recall."""
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["count_hot"], {"scope_id": scope_id})
    row = await found.fetchone()
    return row["memory_count"] if row else 0
