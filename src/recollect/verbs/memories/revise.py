"""Revise: add a version of a memory in place of the current one; what was derived from that is derived again."""

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
    is_changed,
    says_other,
    sounds_other,
)
from recollect.core.memories.revision import revise as make_version
from recollect.errors import ConflictError, NotFoundError
from recollect.models.conversations import NewMessage, PartType
from recollect.models.memories import Memory, MemoryProgress, NewMemory, Revised, Revision
from recollect.models.service import Caller, EmbeddingSpace, Scope
from recollect.store.conversations import conversations
from recollect.store.database.pool import Connection
from recollect.store.knowledge import facts
from recollect.store.memories import memories, versions
from recollect.store.memories.columns import MessagePlace, Row
from recollect.store.memories.versions import Standing, Succession
from recollect.store.service import scopes
from recollect.store.topics import topics
from recollect.verbs.memories.rows import (
    NO_CONTEXT,
    Write,
    assign,
    count,
    embed_missing,
    is_heavy,
    place_vectors,
    prepare,
    progress_of,
    store_vectors,
)
from recollect.verbs.parts import Parts, spare_loop

UNKNOWN = "There is no such memory in this scope."
PAST, ARCHIVED, TO_REDERIVE = "past", "archived", "to_rederive"


@dataclass(frozen=True, slots=True)
class PlannedRevision:
    """A revision that is ready to be written."""

    before: Standing
    memory: Memory
    new: NewMemory
    write: Write
    message: Mapping[str, object] | None
    """What its conversation shows, if it is a message of one."""


async def revise(parts: Parts, caller: Caller, scope: Scope, asked: UUID, revision: Revision) -> Revised:
    """Add a version to a memory; a writer who is trusted less than the current version only contests it."""
    before = await versions.fetch_standing(parts.database, scope, asked)
    if before is not None and (repeated := await find_repeated(parts, scope, before, revision)):
        return repeated
    memory = check_revisable(asked, before)
    assert before is not None  # noqa: S101 - checked above
    new = make_version(memory, revision)
    prepared = await spare_loop(is_heavy([new]), prepare, new)
    # A version that sounds the same has the vector of the one before it.
    vectors = await embed_missing(parts, [new]) if sounds_other(memory, new) else None
    write = Write(caller, scope, [prepared], vectors, "", b"")
    plan = PlannedRevision(before, memory, new, write, to_message(parts, before, new))
    async with parts.database.transaction(scope.tenant_id) as connection:
        return await perform(parts, connection, plan)


async def find_repeated(parts: Parts, scope: Scope, before: Standing, revision: Revision) -> Revised | None:
    """Find what a revision would make, if it is current already: it was asked for twice, or changes nothing."""
    if before.memory is None or before.current_id is None:
        return None
    new, now, named = make_version(before.memory, revision), before, revision
    if before.current_id != before.memory.id:
        now = await versions.fetch_standing(parts.database, scope, before.current_id) or before
        # Where it is filed was part of what made the current version.
        named = replace(revision, topic=None, embedding=None)
    if now.memory is None or is_changed(now.memory, new, named):
        return None
    found = await memories.fetch_one(parts.database, scope, now.memory.id)
    progress = found.progress if found else None
    return Revised(now.memory.id, progress or MemoryProgress.STORED, now.version, changed=False)


def check_revisable(asked: UUID, found: Standing | None) -> Memory:
    """Refuse what cannot be revised, and say why."""
    if found is not None and found.withheld == TO_REDERIVE:
        raise ConflictError(WAITS)
    if found is None or found.memory is None:
        raise NotFoundError(UNKNOWN)
    check_current(asked, found.current_id)
    if found.item:
        raise ConflictError(OF_ITEM)
    return found.memory


def to_message(parts: Parts, before: Standing, new: NewMemory) -> dict[str, object] | None:
    """Count what a message costs by now; parts that are text give way to the new content."""
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


async def perform(parts: Parts, connection: Connection, plan: PlannedRevision) -> Revised:
    """Lock the scope, check that nobody came before, and write the version."""
    scope, asked = plan.write.scope, plan.memory.id
    opened = await scopes.ask_opening(connection, scope)
    placed = await scopes.ask_place(connection, scope.agent, scope.user)
    held = await versions.ask_standing(connection, scope, asked)
    named = await memories.ask_sources(connection, scope, [plan.new])
    opening, place = await scopes.read_opening(opened), await scopes.read_place(placed)
    standing = await versions.read_standing(held)
    check_revisable(asked, standing)
    assert standing is not None  # noqa: S101 - checked above
    plan = replace(plan, before=standing)
    sources = await memories.read_sources(named)
    [row] = assign(plan.write, opening, sources)
    row = replace(row, place=place_of(plan.before))
    contested = plan.write.caller.trust < plan.memory.trust
    new = Succession(opening.scope_id, asked, row.id, opening.written_at, contested)
    outdated = await follow(connection, scope, plan, new)
    version = await store(connection, plan, new, row)
    progress = await give_vector(parts, connection, plan, new, place.space, row)
    await withhold(connection, plan, new)
    await versions.log(connection, new)
    if not contested:
        await derive_again(connection, plan, new, outdated)
    return Revised(row.id, progress, version, contested=contested, outdated=tuple(outdated))


def place_of(before: Standing) -> MessagePlace | None:
    """Let a version of a message stand where the one before it does."""
    if before.number is None or before.role is None:
        return None
    return MessagePlace(before.conversation, before.role, before.number)


async def follow(connection: Connection, scope: Scope, plan: PlannedRevision, new: Succession) -> dict[UUID, bool]:
    """Close the version before, and what was derived from it; return that, and whether segments say it."""
    if new.contested:
        await versions.begin(connection, new.scope_id, new.elder)
        return {}
    outdated: dict[UUID, bool] = {}
    if says_other(plan.memory, plan.new):
        outdated = await versions.list_derived(connection, scope, new.scope_id, new.elder)
    await versions.close(connection, new.scope_id, [new.elder, *outdated], new.moment)
    return outdated


async def store(connection: Connection, plan: PlannedRevision, new: Succession, row: Row) -> int:
    """Write the memory of a version, its place among the others, and what it is filed under; return its number."""
    await memories.store(connection, new.scope_id, plan.write.caller.origin, new.moment, [row])
    # What is said once more is not perceived once more: it does not add to what waits for a reflection.
    counts = replace(count(plan.write.prepared), unreflected=0, importance=0.0)
    await scopes.close_writing(connection, new.scope_id, counts, new.moment)
    version = await versions.add(connection, new)
    if plan.message is not None:
        await versions.store_message(connection, new, plan.message)
    await versions.inherit_links(connection, new, topics=not plan.new.topic)
    await topics.file_new(connection, new.scope_id, [(row.id, plan.new)])
    return version


async def give_vector(
    parts: Parts, connection: Connection, plan: PlannedRevision, new: Succession, space: EmbeddingSpace | None, row: Row
) -> MemoryProgress:
    """Store the vector of a version, or that of the one before it."""
    if space is None:
        return MemoryProgress.STORED
    if not sounds_other(plan.memory, plan.new):
        waiting = await facts.inherit_vectors(connection, new.scope_id, [(new.heir, new.elder)])
        return progress_of(new.heir not in waiting)
    vectors = place_vectors(parts, plan.write, space)
    # A message is embedded with the words before it, which a job looks up.
    context = replace(NO_CONTEXT, again=frozenset([row.id] if plan.before.role is not None else []))
    await store_vectors(connection, new.scope_id, space, [row], vectors, context)
    return progress_of(vectors[0] is not None)


async def withhold(connection: Connection, plan: PlannedRevision, new: Succession) -> None:
    """Keep a version out of the indexes where the one before it was: it is archived, over, or only contested."""
    if new.contested:
        await versions.withhold(connection, new, PAST)
    elif plan.before.withheld in {ARCHIVED, PAST}:
        await versions.withhold(connection, new, plan.before.withheld)


async def derive_again(
    connection: Connection, plan: PlannedRevision, new: Succession, outdated: Mapping[UUID, bool]
) -> None:
    """Let segments say again what they said, and await the other derived memories in new words."""
    if plan.before.number is not None and says_other(plan.memory, plan.new):
        await versions.read_segment_again(connection, new.scope_id, plan.before.conversation, plan.before.number)
    if learned := [each for each, said in outdated.items() if said]:
        await versions.say_again(connection, new.scope_id, learned)
    if worded := [each for each, said in outdated.items() if not said]:
        heirs = dict(zip(worded, make_ids(new, len(worded)), strict=True))
        former = await versions.list_former(connection, new)
        await versions.await_heirs(connection, new, former, heirs)


def make_ids(new: Succession, number: int) -> Sequence[UUID]:
    """Make ids that come after that of the new version, in their order."""
    return [memory_id(new.moment, place, os.urandom(RANDOM_BYTES)) for place in range(1, number + 1)]


async def list_versions(parts: Parts, scope: Scope, asked: UUID) -> list[Memory]:
    """Fetch every version of a memory, oldest first; it is named by the id of any of them."""
    found = await versions.fetch_versions(parts.database, scope, asked)
    if not found:
        raise NotFoundError(UNKNOWN)
    return found
