"""Remove faded memories from the indexes of recall in chunks, explain faded memories, and restore them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from psycopg import AsyncCursor
from psycopg.rows import DictRow

from recollect.core.agents.profiles import to_profile
from recollect.core.memories.fading import FadingMemory, Policy, complete_rules, judge
from recollect.core.service.numbers import tenant_of
from recollect.models.memories import FadeDecision, FadeReason, FadingRules, Kind
from recollect.store.database.pool import Connection, Database, load_queries
from recollect.store.service import jobs
from recollect.store.service.jobs import Lease, check_lease
from recollect.store.service.scopes import BEGINNING

QUERIES = load_queries(__file__)
CHUNK = 500
"""Number of memories per step: writers of the scope wait at most until they have faded."""


@dataclass(frozen=True, slots=True)
class FadePass:
    """A pass over the memories of a scope: its policy, its job, and whether it is a dry run."""

    scope_id: int
    policy: Policy | None
    """None if only expired memories fade."""
    dry_run: bool = False
    lease: Lease | None = None
    ids: Sequence[UUID] = ()
    """Only these memories, also those that have faded; all if empty."""


@dataclass(frozen=True, slots=True)
class FadingStep:
    """The decisions of one step, and the cursor of the next; None at the end."""

    judgements: list[FadeDecision]
    next_cursor: UUID | None


async def fade_chunk(database: Database, walk: FadePass, cursor: UUID) -> FadingStep:
    """Judge the next memories after a cursor, and fade those that may fade, in one transaction."""
    async with database.reading(tenant_of(walk.scope_id)) as connection:
        if walk.ids:
            found = await query_fade_state(connection, walk.scope_id, walk.ids)
        else:
            bounds = {"scope_id": walk.scope_id, "cursor": cursor, "limit": CHUNK, "ids": None}
            found = await connection.execute(QUERIES["standings"], bounds | {"expired": walk.policy is None})
        judgements = await read_judgements(found, walk.policy)
        next_cursor = judgements[-1].id if len(judgements) == CHUNK and not walk.ids else None
        faded = await read_faded(connection, walk) if walk.ids else []
    fading = [each.id for each in judgements if each.fades]
    if fading and not walk.dry_run:
        decided = {each.id: each for each in await fade_now(database, walk, fading)}
        # Memories that were recalled since then are judged again; deleted ones are not.
        judgements = [decided.get(each.id, each) for each in judgements if not each.fades or each.id in decided]
    return FadingStep([*judgements, *faded], next_cursor)


async def fade_now(database: Database, walk: FadePass, ids: Sequence[UUID]) -> list[FadeDecision]:
    """Judge memories again while their scope is locked, and fade those that still may fade."""
    async with database.transaction(tenant_of(walk.scope_id)) as connection:
        await connection.execute(QUERIES["lock"], {"scope_id": walk.scope_id})
        if walk.lease is not None:
            await check_lease(connection, walk.lease)
        judgements = await read_judgements(await query_fade_state(connection, walk.scope_id, ids), walk.policy)
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


async def query_fade_state(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> AsyncCursor[DictRow]:
    """Query the data that decides about fading; memories outside recall have no row."""
    bounds = {"scope_id": scope_id, "cursor": BEGINNING, "limit": len(ids), "ids": list(ids), "expired": False}
    return await connection.execute(QUERIES["standings"], bounds)


async def read_judgements(found: AsyncCursor[DictRow], policy: Policy | None) -> list[FadeDecision]:
    """Read the data that decides about fading, and judge each memory."""
    return [to_judgement(row, policy) for row in await found.fetchall()]


def to_judgement(row: DictRow, policy: Policy | None) -> FadeDecision:
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
    return FadeDecision(row["id"], kind, verdict.forget, verdict.score, verdict.grounds, verdict.reason)


async def fetch_rules(database: Database, scope_id: int, usual_days: float) -> FadingRules:
    """Find the rules of fading for a scope: of its agent's profile, or the defaults."""
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["profile"], {"scope_id": scope_id})
    row = await found.fetchone()
    return complete_rules(FadingRules(), to_profile(row["profile"] if row else None), usual_days)


async def read_faded(connection: Connection, walk: FadePass) -> list[FadeDecision]:
    """Read the decisions about memories that have faded."""
    found = await connection.execute(QUERIES["faded"], {"scope_id": walk.scope_id, "ids": list(walk.ids)})
    return [
        FadeDecision(
            row["id"],
            Kind(row["kind"]),
            fades=True,
            score=row["score"],
            grounds=FadeReason(row["grounds"]),
            reason=row["reason"],
            faded_at=row["faded_at"],
        )
        for row in await found.fetchall()
    ]


async def restore_faded(database: Database, scope_id: int, ids: Sequence[UUID]) -> list[UUID]:
    """Restore faded memories, and return their IDs; a job creates missing vectors."""
    async with database.transaction(tenant_of(scope_id)) as connection:
        await connection.execute(QUERIES["lock"], {"scope_id": scope_id})
        found = await connection.execute(QUERIES["revive"], {"scope_id": scope_id, "ids": list(ids)})
        row = await found.fetchone()
        if row is None:
            return []
        if row["waiting"]:
            await jobs.defer(connection, "embed", f"embed:{scope_id}", {"scope_id": scope_id})
        restored: list[UUID] = row["revived"]
        return restored


async def count_hot(database: Database, scope_id: int) -> int:
    """Count the memories of a scope that take part in recall."""
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["count_hot"], {"scope_id": scope_id})
    row = await found.fetchone()
    return row["memory_count"] if row else 0
