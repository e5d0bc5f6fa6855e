"""Rules of revisions: the next version of a memory, and whether it differs."""

from __future__ import annotations

from dataclasses import fields, replace
from uuid import UUID

from recollect.core.memories.checks import check_new_memory
from recollect.core.text.keywords import file_under
from recollect.errors import ConflictError, InvalidInputError
from recollect.models.memories import ImportanceFrom, Memory, MemoryUpdate, NewMemory

CARRIED = ("content", "importance", "speaker", "occurred_at", "expires_at", "embedding_text", "metadata", "pinned")
"""The fields that a revision changes individually."""
SAID = ("content", "speaker", "occurred_at")
"""The fields that derived memories depend on."""
CLOSENESS = 1e-4
"""Importances that differ less are equal: they are stored with fewer digits than given."""
WAITS = "This memory is waiting to be derived again. Update it later, or forget it."
OF_ITEM = "This memory belongs to an item. Update the item instead."


def revise(memory: Memory, revision: MemoryUpdate) -> NewMemory:
    """Return the next version of a memory; evidence and keywords stay unless the update changes them."""
    named = {name: getattr(revision, name) for name in CARRIED if getattr(revision, name) is not None}
    if (
        revision.importance is None
        and rated_by_rules(memory)
        and named.get("content", memory.content) != memory.content
    ):
        # The rules rate the new content.
        named["importance"] = None
    new = NewMemory(
        kind=memory.kind,
        triple=memory.triple,
        idle=memory.idle,
        keywords=memory.keywords if revision.keywords is None else revision.keywords,
        evidence=memory.evidence,
        embedding=revision.embedding,
        importance_from=memory.importance_from if revision.importance is None else ImportanceFrom.CALLER,
        topic=revision.topic or "",
        related_topics=revision.related_topics or (),
        **{name: getattr(memory, name) for name in CARRIED} | named,
    )
    check_revision(new, revision)
    return new


def rated_by_rules(memory: Memory) -> bool:
    """Return whether only the rules rated the importance of a memory."""
    return memory.importance_from is ImportanceFrom.RULE


def check_revision(new: NewMemory, revision: MemoryUpdate) -> None:
    """Refuse an update that makes an invalid memory."""
    if not named_fields(revision):
        raise InvalidInputError("nothing to update: set at least one field")
    if revision.related_topics and not revision.topic:
        raise InvalidInputError("related_topics requires topic")
    # A message without text, for example with only an image, may stay without text.
    blank = revision.content is None and not new.content.strip()
    check_new_memory(replace(new, content="-") if blank else new)


def named_fields(revision: MemoryUpdate) -> list[str]:
    """List the fields that an update changes."""
    return [field.name for field in fields(MemoryUpdate) if getattr(revision, field.name) is not None]


def is_changed(memory: Memory, new: NewMemory, revision: MemoryUpdate) -> bool:
    """Return whether a version differs from the previous one; a named topic or vector is a change."""
    if revision.topic or revision.embedding is not None:
        return True
    if revision.keywords is not None and tuple(file_under(revision.keywords)) != memory.keywords:
        return True
    if new.importance is not None and abs(new.importance - memory.importance) > CLOSENESS:
        return True
    return any(getattr(new, name) != getattr(memory, name) for name in CARRIED if name != "importance")


def content_changed(memory: Memory, new: NewMemory) -> bool:
    """Return whether derived memories must be derived again."""
    return any(getattr(new, name) != getattr(memory, name) for name in SAID)


def embedding_text_changed(memory: Memory, new: NewMemory) -> bool:
    """Return whether a version needs a new vector."""
    embedded = ("content", "speaker", "embedding_text")
    return new.embedding is not None or any(getattr(new, name) != getattr(memory, name) for name in embedded)


def check_current(asked: UUID, current: UUID | None) -> None:
    """Refuse to revise an earlier or contested version, and name the current one."""
    if asked != current:
        now = f"the current one is {current}" if current else "no version of it is current"
        raise ConflictError(f"This is not the current version of the memory: {now}.")
