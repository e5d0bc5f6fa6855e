"""Revise: add a version of a memory in place of the current one, and derive dependent memories again."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from recollect.core.conversations.messages import count_images, count_tokens
from recollect.core.memories.ids import RANDOM_BYTES, memory_id
from recollect.core.memories.revision import (
    OF_ITEM,
    WAITS,
    check_current,
    content_changed,
    embedding_text_changed,
    is_changed,
    named_fields,
)
from recollect.core.memories.revision import revise as make_version
from recollect.errors import ConflictError, NotFoundError
from recollect.models.conversations import NewMessage, PartType
from recollect.models.memories import Memory, MemoryProgress, MemoryUpdate, NewMemory, UpdateResult
from recollect.models.service import Caller, EmbeddingSpace, Scope
from recollect.store.conversations import conversations
from recollect.store.database.pool import Connection
from recollect.store.knowledge import facts
from recollect.store.memories import memories, versions
from recollect.store.memories.columns import MessagePlace, Row
from recollect.store.memories.versions import VersionChange, VersionState
from recollect.store.service import scopes
from recollect.store.topics import topics
from recollect.verbs.dependencies import Dependencies, run_in_thread_if_heavy
from recollect.verbs.memories.rows import (
    NO_CONTEXT,
    Write,
    assign,
    count,
    embed_missing,
    is_heavy,
    pair_vectors,
    prepare,
    progress_of,
    store_vectors,
)

UNKNOWN = "No such memory in this scope."
PAST, ARCHIVED, TO_REDERIVE = "past", "archived", "to_rederive"


@dataclass(frozen=True, slots=True)
class PlannedRevision:
    """A revision that is ready to be written."""

    before: VersionState
    memory: Memory
    new: NewMemory
    write: Write
    message: Mapping[str, object] | None
    """The content in its conversation, if it is a message."""


async def update_memory(
    parts: Dependencies, caller: Caller, scope: Scope, asked: UUID, revision: MemoryUpdate
) -> UpdateResult:
    """Add a version to a memory; a writer with less trust than the current version only contests it.

    To pin or unpin a memory adds none.
    """
    before = await versions.fetch_standing(parts.database, scope, asked)
    if revision.pinned is not None and named_fields(revision) == ["pinned"]:
        return await pin(parts, scope, asked, before, pinned=revision.pinned)
    if before is not None and (repeated := await find_repeated(parts, scope, before, revision)):
        return repeated
    memory = check_revisable(asked, before)
    assert before is not None  # noqa: S101 - checked above
    new = make_version(memory, revision)
    prepared = await run_in_thread_if_heavy(is_heavy([new]), prepare, new)
    # A version with the same text to embed has the vector of the previous one.
    vectors = await embed_missing(parts, [new]) if embedding_text_changed(memory, new) else None
    write = Write(caller, scope, [prepared], vectors, "", b"")
    plan = PlannedRevision(before, memory, new, write, to_message(parts, before, new))
    async with parts.database.transaction(scope.tenant_id) as connection:
        return await write_revision(parts, connection, plan)


async def pin(
    parts: Dependencies, scope: Scope, asked: UUID, before: VersionState | None, *, pinned: bool
) -> UpdateResult:
    """Pin or unpin a memory."""
    changed = None if before is None else await versions.pin(parts.database, scope, asked, pinned=pinned)
    if before is None or changed is None:
        raise NotFoundError(UNKNOWN)
    found = await memories.fetch_one(parts.database, scope, asked)
    progress = found.progress if found else None
    return UpdateResult(asked, progress or MemoryProgress.STORED, before.version, changed=changed)


async def find_repeated(
    parts: Dependencies, scope: Scope, before: VersionState, revision: MemoryUpdate
) -> UpdateResult | None:
    """Find the result of a revision that is current already: it is repeated, or changes nothing."""
    if before.memory is None or before.current_id is None:
        return None
    new, now, named = make_version(before.memory, revision), before, revision
    if before.current_id != before.memory.id:
        now = await versions.fetch_standing(parts.database, scope, before.current_id) or before
        # Its topic was part of the revision that created the current version.
        named = replace(revision, topic=None, embedding=None)
    if now.memory is None or is_changed(now.memory, new, named):
        return None
    found = await memories.fetch_one(parts.database, scope, now.memory.id)
    progress = found.progress if found else None
    return UpdateResult(now.memory.id, progress or MemoryProgress.STORED, now.version, changed=False)


def check_revisable(asked: UUID, found: VersionState | None) -> Memory:
    """Return the memory to revise; raise an error if it cannot be revised."""
    if found is not None and found.withheld == TO_REDERIVE:
        raise ConflictError(WAITS)
    if found is None or found.memory is None:
        raise NotFoundError(UNKNOWN)
    check_current(asked, found.current_id)
    if found.item:
        raise ConflictError(OF_ITEM)
    return found.memory


def to_message(parts: Dependencies, before: VersionState, new: NewMemory) -> dict[str, object] | None:
    """Count the tokens of a message again; text parts are replaced by the new content."""
    if before.number is None:
        return None
    moment = new.occurred_at.isoformat() if new.occurred_at else None
    if before.role is None:
        # An event in the journal of its scope.
        return {"occurred_at": moment, "tokens": {}, "images": 0, "parts": []}
    held = [conversations.to_part(part) for part in before.parts]
    kept = [part for part in held if part.type is not PartType.TEXT]
    files = tuple(map(conversations.to_attachment, before.attachments))
    message = NewMessage(before.role, new.content, new.speaker, tuple(kept), files)
    tokens = {each.name: count_tokens(message, each.count, each.frame, each.naming) for each in parts.tokenizers}
    shown = [conversations.trim(part) for part in kept]
    return {"occurred_at": moment, "tokens": tokens, "images": count_images(message), "parts": shown}


async def write_revision(parts: Dependencies, connection: Connection, plan: PlannedRevision) -> UpdateResult:
    """Lock the scope, check that nobody has revised it, and write the version."""
    scope, asked = plan.write.scope, plan.memory.id
    opened = await scopes.ask_opening(connection, scope)
    placed = await scopes.ask_place(connection, scope.agent, scope.user)
    held = await versions.query_state(connection, scope, asked)
    named = await memories.ask_sources(connection, scope, [plan.new])
    opening, place = await scopes.read_opening(opened), await scopes.read_place(placed)
    standing = await versions.read_version_state(held)
    check_revisable(asked, standing)
    assert standing is not None  # noqa: S101 - checked above
    plan = replace(plan, before=standing)
    sources = await memories.read_sources(named)
    [row] = assign(plan.write, opening, sources)
    row = replace(row, place=place_of(plan.before))
    contested = plan.write.caller.trust < plan.memory.trust
    new = VersionChange(opening.scope_id, asked, row.id, opening.written_at, contested)
    outdated = await supersede_version(connection, scope, plan, new)
    version = await store_new_version(connection, plan, new, row)
    progress = await store_version_vector(parts, connection, plan, new, place.space, row)
    await exclude_from_recall(connection, plan, new)
    await versions.log(connection, new)
    if not contested:
        await derive_again(connection, plan, new, outdated)
    return UpdateResult(row.id, progress, version, contested=contested, outdated=tuple(outdated))


def place_of(before: VersionState) -> MessagePlace | None:
    """Return the position of a message's new version: that of the previous one."""
    if before.number is None or before.role is None:
        return None
    return MessagePlace(before.conversation, before.role, before.number)


async def supersede_version(
    connection: Connection, scope: Scope, plan: PlannedRevision, new: VersionChange
) -> dict[UUID, bool]:
    """Close the previous version, and memories derived from it; return these, and whether segments wrote them."""
    if new.contested:
        await versions.begin(connection, new.scope_id, new.elder)
        return {}
    outdated: dict[UUID, bool] = {}
    if content_changed(plan.memory, plan.new):
        outdated = await versions.list_derived(connection, scope, new.scope_id, new.elder)
    await versions.supersede_versions(connection, new.scope_id, [new.elder, *outdated], new.moment)
    return outdated


async def store_new_version(connection: Connection, plan: PlannedRevision, new: VersionChange, row: Row) -> int:
    """Write the memory of a version, its position among the others, and its topics; return its number."""
    await memories.store_memories(connection, new.scope_id, plan.write.caller.origin, new.moment, [row])
    # A revision is not a new perception: it does not add to the backlog of a reflection.
    counts = replace(count(plan.write.prepared), unreflected=0, importance=0.0)
    await scopes.close_writing(connection, new.scope_id, counts, new.moment)
    version = await versions.insert_version(connection, new)
    if plan.message is not None:
        await versions.store_message(connection, new, plan.message)
    await versions.inherit_links(connection, new, topics=not plan.new.topic)
    await topics.file_new(connection, new.scope_id, [(row.id, plan.new)])
    return version


async def store_version_vector(
    parts: Dependencies,
    connection: Connection,
    plan: PlannedRevision,
    new: VersionChange,
    space: EmbeddingSpace | None,
    row: Row,
) -> MemoryProgress:
    """Store the vector of a version, or copy that of the previous one."""
    if space is None:
        return MemoryProgress.STORED
    if not embedding_text_changed(plan.memory, plan.new):
        waiting = await facts.inherit_vectors(connection, new.scope_id, [(new.heir, new.elder)])
        return progress_of(new.heir not in waiting)
    vectors = pair_vectors(parts, plan.write, space)
    # A message is embedded with the previous message, which a job looks up.
    context = replace(NO_CONTEXT, again=frozenset([row.id] if plan.before.role is not None else []))
    await store_vectors(connection, new.scope_id, space, [row], vectors, context)
    return progress_of(vectors[0] is not None)


async def exclude_from_recall(connection: Connection, plan: PlannedRevision, new: VersionChange) -> None:
    """Exclude a version from the indexes if the previous one was excluded: it is archived, past or contested."""
    if new.contested:
        await versions.exclude_from_recall(connection, new, PAST)
    elif plan.before.withheld in {ARCHIVED, PAST}:
        await versions.exclude_from_recall(connection, new, plan.before.withheld)


async def derive_again(
    connection: Connection, plan: PlannedRevision, new: VersionChange, outdated: Mapping[UUID, bool]
) -> None:
    """Queue new extractions for segments, and new texts for the other derived memories."""
    if plan.before.number is not None and content_changed(plan.memory, plan.new):
        await versions.read_segment_again(connection, new.scope_id, plan.before.conversation, plan.before.number)
    if learned := [each for each, said in outdated.items() if said]:
        await versions.rederive_segments(connection, new.scope_id, learned)
    if worded := [each for each, said in outdated.items() if not said]:
        heirs = dict(zip(worded, make_ids(new, len(worded)), strict=True))
        former = await versions.list_former(connection, new)
        await versions.supersede_derived(connection, new, former, heirs)


def make_ids(new: VersionChange, number: int) -> Sequence[UUID]:
    """Create IDs that follow that of the new version, in order."""
    return [memory_id(new.moment, place, os.urandom(RANDOM_BYTES)) for place in range(1, number + 1)]
