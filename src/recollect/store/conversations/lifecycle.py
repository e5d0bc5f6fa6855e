"""Change the state of conversations, and update the state of their memories, a chunk at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from recollect.core.agents.profiles import to_profile
from recollect.core.conversations.retention import ConversationAge, RetentionRules, find_due, move, rules_for
from recollect.core.memories.erasure import decide
from recollect.core.service.erasures import ErasureLog
from recollect.core.service.numbers import tenant_of
from recollect.models.conversations import ConversationState, DueConversation, ListedReceipt
from recollect.models.memories import JSON
from recollect.models.service import Scope
from recollect.store.database.erasures import log_erasure
from recollect.store.database.pool import Connection, Database, load_queries
from recollect.store.service import jobs
from recollect.store.service.scopes import lock_scope, names

QUERIES = load_queries(__file__)
CHUNK = 500
"""Maximum number of messages per transaction: writers of the scope wait that long, and no longer."""
PAGE = 1000
VISIBLE = (ConversationState.ACTIVE, ConversationState.ARCHIVED)


@dataclass(frozen=True, slots=True)
class MovedChunk:
    """A chunk that was handled: its conversation, its number of messages, and whether it was the last."""

    conversation: str
    messages: int
    last: bool


@dataclass(frozen=True, slots=True)
class StateChange:
    """A requested state of a conversation, and its new name and metadata; None keeps each."""

    wanted: ConversationState | None
    asked_by: str
    idle_since: datetime | None = None
    """Set if the change applies only if nobody has used the conversation since then."""
    receipt: UUID | None = None
    """Set if a purge that already has a receipt is repeated."""
    name: str | None = None
    metadata: Mapping[str, JSON] | None = None


async def change(database: Database, scope: Scope, conversation: str, wanted: StateChange) -> int | None:
    """Change a conversation, and queue a job for its memories if its state changes.

    Returns the number of the scope; None if the conversation does not exist, or is to be described but is deleted.
    """
    named = {**names(scope), "conversation": conversation}
    async with database.transaction(scope.tenant_id) as connection:
        # The scope is locked first, as in every write: no append or derived memory can come in between.
        await lock_scope(connection, scope)
        found = await (await connection.execute(QUERIES["find"], named)).fetchone()
        if found is None:
            return None
        scope_id: int = found["scope_id"]
        used = wanted.idle_since is not None and found["idle_since"] != wanted.idle_since
        place = {"scope_id": scope_id, "conversation": conversation}
        if wanted.wanted and not used and move(ConversationState(found["state"]), wanted.wanted):
            await connection.execute(QUERIES["change"], {**place, "state": wanted.wanted.value})
            await defer_sync(connection, scope_id)
            if wanted.wanted is ConversationState.PURGING:
                await begin_purge(connection, database.erasures, place, wanted)
        if wanted.name is None and wanted.metadata is None:
            return scope_id
        metadata = None if wanted.metadata is None else Jsonb(dict(wanted.metadata))
        described = await connection.execute(QUERIES["describe"], {**place, "name": wanted.name, "metadata": metadata})
        return scope_id if await described.fetchone() else None


async def begin_purge(
    connection: Connection, log: ErasureLog | None, place: Mapping[str, object], wanted: StateChange
) -> None:
    """Store the receipt of a purge, and log the purge outside the database if there is such a log."""
    named = {**place, "asked_by": wanted.asked_by, "receipt": wanted.receipt}
    begun = await connection.execute(QUERIES["begin_receipt"], named)
    row = await begun.fetchone() if log is not None else None
    if log is not None and row is not None:
        await log_erasure(connection, log, row["scope_id"], receipt=row["id"], conversation=row["conversation_id"])


async def defer_sync(connection: Connection, scope_id: int) -> None:
    """Queue a job that updates a scope's memories to the states of their conversations."""
    await jobs.defer(connection, "sync_state", f"sync_state:{scope_id}", {"scope_id": scope_id})


async def sync_chunk(
    database: Database, scope_id: int, conversation: str | None = None, *, rederive: bool = False
) -> MovedChunk | None:
    """Update the next messages of a conversation, or of any in the scope, to its state.

    Each step is one transaction and continues after the last committed one. None if all is done.
    """
    async with database.transaction(tenant_of(scope_id)) as connection:
        place = {"scope_id": scope_id, "conversation": conversation}
        await connection.execute(QUERIES["lock"], place)
        found = await (await connection.execute(QUERIES["unsynced"], place)).fetchone()
        if found is None:
            return None
        state = ConversationState(found["state"])
        place["conversation"] = found["id"]
        bounds = {**place, "after": found["synced_number"], "limit": CHUNK}
        rows = await (await connection.execute(QUERIES["chunk"], bounds)).fetchall()
        ids = [row["id"] for row in rows]
        last = len(rows) < CHUNK
        number = rows[-1]["number"] if rows else found["synced_number"]
        found_earlier = await connection.execute(QUERIES["earlier"], {**bounds, "last": number})
        earlier = [row["id"] for row in await found_earlier.fetchall()]
        if state is ConversationState.PURGING:
            await erase(connection, place, [*ids, *earlier])
        else:
            await move_memories(connection, scope_id, state, ids, earlier)
        if state is ConversationState.PURGING and last:
            await connection.execute(QUERIES["close_purge"], place)
            await connection.execute(QUERIES["await_mirrors"], place)
        else:
            await connection.execute(QUERIES["advance"], {**place, "number": number, "last": last})
        if last and state in VISIBLE:
            # No incomplete part of it was enriched.
            await jobs.defer_enrichment(connection, scope_id)
        if last and rederive:
            await defer_rederiving(connection, scope_id)
        return MovedChunk(found["id"], len(rows), last)


async def count_unsynced(database: Database, scope_id: int) -> int:
    """Count a scope's messages that are not yet updated to the state of their conversation."""
    async with database.reading(tenant_of(scope_id)) as connection:
        found = await connection.execute(QUERIES["count_unsynced"], {"scope_id": scope_id})
    return sum([row["waiting"] for row in await found.fetchall()])


async def move_memories(
    connection: Connection, scope_id: int, state: ConversationState, ids: Sequence[UUID], earlier: Sequence[UUID]
) -> None:
    """Set the state of messages' memories, their earlier versions and the memories derived from them."""
    parameters = {"scope_id": scope_id, "ids": [*ids, *earlier]}
    if state is ConversationState.DELETED:
        await connection.execute(QUERIES["hide"], parameters)
        return
    if earlier:
        # They are visible again, and stay out of the indexes.
        await connection.execute(QUERIES["restore"], {"scope_id": scope_id, "ids": list(earlier)})
    parameters["ids"] = list(ids)
    asked = ["restore"] if state is ConversationState.ACTIVE else []
    if state is ConversationState.ARCHIVED:
        await connection.execute(QUERIES["withhold"], parameters)
    # A restore also shows memories hidden with a deleted conversation, even if it is archived before the restore ends.
    for query in [*asked, "restore_derived"]:
        row = await (await connection.execute(QUERIES[query], parameters)).fetchone()
        if row is not None and row["waiting"]:
            await jobs.defer(connection, "embed", f"embed:{scope_id}", {"scope_id": scope_id})


async def erase(connection: Connection, place: Mapping[str, object], ids: Sequence[UUID]) -> None:
    """Erase messages and memories derived only from them; blank memories that have other evidence, too."""
    await connection.execute(QUERIES["erase"], {**place, **await find_purge_effects(connection, place, ids)})


async def find_purge_effects(
    connection: Connection, place: Mapping[str, object], ids: Sequence[UUID]
) -> dict[str, list[UUID]]:
    """Find the memories that a purge of messages erases or must derive again, and the lost evidence."""
    found = await connection.execute(QUERIES["derived"], {**place, "ids": list(ids)})
    evidence: dict[UUID, set[UUID]] = {}
    purged = set(ids)
    for row in await found.fetchall():
        evidence.setdefault(row["memory_id"], set()).add(row["source_id"])
        if row["purged"]:
            purged.add(row["source_id"])
    erasure = decide(purged, evidence)
    return {"gone": [*ids, *erasure.gone], "to_rederive": list(erasure.to_rederive), "lost": list(erasure.lost)}


async def count_affected(
    database: Database, scope: Scope, conversation: str, wanted: ConversationState
) -> dict[str, int] | None:
    """Count by type what a purge would remove or a deletion would hide; None without a conversation."""
    async with database.snapshot(scope.tenant_id) as connection:
        named = {**names(scope), "conversation": conversation}
        found = await (await connection.execute(QUERIES["find"], named)).fetchone()
        if found is None:
            return None
        place = {"scope_id": found["scope_id"], "conversation": conversation}
        ids = [row["id"] for row in await (await connection.execute(QUERIES["every_message"], place)).fetchall()]
        if wanted is ConversationState.PURGING:
            chosen = {**place, **await find_purge_effects(connection, place, ids)}
            row = await (await connection.execute(QUERIES["foresee_purge"], chosen)).fetchone()
            return dict(row["removed"]) if row else {}
        counted = await connection.execute(QUERIES["foresee_deletion"], {**place, "ids": ids})
        return {row["what"]: row["memories"] for row in await counted.fetchall()}


async def defer_rederiving(connection: Connection, scope_id: int) -> None:
    """Queue a job that derives memories again that lost some of their evidence, if there are any."""
    row = await (await connection.execute(QUERIES["has_to_rederive"], {"scope_id": scope_id})).fetchone()
    if row is not None and row["present"]:
        await jobs.defer(connection, "rederive", f"rederive:{scope_id}", {"scope_id": scope_id})


async def page_receipts(
    database: Database, tenant_id: int, scope: Scope | None, conversation: str, before: tuple[str, UUID], limit: int
) -> list[ListedReceipt]:
    """Fetch receipts of a scope or one conversation, or of the whole tenant, from before a position in their order."""
    named = {"agent": None, "user": None} if scope is None else {**names(scope), "conversation": conversation}
    parameters = {**named, "before": before[0], "before_id": before[1], "limit": limit}
    query = QUERIES["receipts_of_tenant" if scope is None else "receipts_of_scope"]
    async with database.listing(tenant_id) as connection:
        found = await connection.execute(query, parameters)
    return [ListedReceipt(**row) for row in await found.fetchall()]


async def list_due(
    database: Database, usual: RetentionRules, after: tuple[int, str] = (0, "")
) -> list[tuple[int, DueConversation]]:
    """List conversations of all tenants whose state is due to change, with their scopes, after a position."""
    bounds = {**asdict(usual), "after_scope": after[0], "after_id": after[1], "limit": PAGE}
    async with database.reading(None) as connection:
        found = await connection.execute(QUERIES["due"], bounds)
    return [(row["scope_id"], due) for row in await found.fetchall() if (due := to_due(row, usual))]


def to_due(row: DictRow, usual: RetentionRules) -> DueConversation | None:
    """Convert a row to a conversation that is due; None if it is not due."""
    standing = ConversationAge(ConversationState(row["state"]), row["idle_since"], row["changed_at"])
    becomes = find_due(standing, rules_for(to_profile(row["profile"]), usual), row["now"])
    if becomes is None:
        return None
    return DueConversation(
        row["agent"], row["user"], row["id"], standing.state, becomes, row["last_number"], row["idle_since"]
    )
