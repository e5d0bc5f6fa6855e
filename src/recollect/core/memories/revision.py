"""Revisions: what becomes of a memory that is revised, and whether that is anything new."""

from __future__ import annotations

from dataclasses import fields, replace
from uuid import UUID

from recollect.core.memories.checks import check_new_memory
from recollect.core.text.keywords import file_under
from recollect.errors import ConflictError, InvalidInputError
from recollect.models.memories import ImportanceFrom, Memory, NewMemory, Revision

CARRIED = ("content", "importance", "speaker", "occurred_at", "expires_at", "embedding_text", "metadata", "pinned")
"""The fields that a revision changes one by one."""
SAID = ("content", "speaker", "occurred_at")
"""What others were derived from."""
CLOSENESS = 1e-4
"""Two importances that differ less are the same: they are stored with fewer digits than they are given with."""
WAITS = "This memory waits to be derived again: revise it afterwards, or forget it."
OF_ITEM = "This memory is the text of an item: put the item again."


def revise(memory: Memory, revision: Revision) -> NewMemory:
    """Make the next version of a memory; evidence and keywords are carried over unless others are named."""
    named = {name: getattr(revision, name) for name in CARRIED if getattr(revision, name) is not None}
    if (
        revision.importance is None
        and rated_by_rules(memory)
        and named.get("content", memory.content) != memory.content
    ):
        # The rules rate the new words.
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
    """Tell whether nobody but the rules said how important a memory is."""
    return memory.importance_from is ImportanceFrom.RULE


def check_revision(new: NewMemory, revision: Revision) -> None:
    """Refuse what could not be remembered either."""
    if all(getattr(revision, field.name) is None for field in fields(Revision)):
        raise InvalidInputError("a revision must name what it changes")
    if revision.related_topics and not revision.topic:
        raise InvalidInputError("related_topics need a topic")
    # A message without text, such as one that only shows an image, may stay so.
    blank = revision.content is None and not new.content.strip()
    check_new_memory(replace(new, content="-") if blank else new)


def is_changed(memory: Memory, new: NewMemory, revision: Revision) -> bool:
    """Tell whether a version differs from the one before it; to name a topic or a vector is a change."""
    if revision.topic or revision.embedding is not None:
        return True
    if revision.keywords is not None and tuple(file_under(revision.keywords)) != memory.keywords:
        return True
    if new.importance is not None and abs(new.importance - memory.importance) > CLOSENESS:
        return True
    return any(getattr(new, name) != getattr(memory, name) for name in CARRIED if name != "importance")


def says_other(memory: Memory, new: NewMemory) -> bool:
    """Tell whether what was derived from a memory has to be derived again."""
    return any(getattr(new, name) != getattr(memory, name) for name in SAID)


def sounds_other(memory: Memory, new: NewMemory) -> bool:
    """Tell whether a version needs a vector of its own."""
    embedded = ("content", "speaker", "embedding_text")
    return new.embedding is not None or any(getattr(new, name) != getattr(memory, name) for name in embedded)


def check_current(asked: UUID, current: UUID | None) -> None:
    """Refuse to revise an earlier or a contested version, and name the current one."""
    if asked != current:
        now = f"the current one is {current}" if current else "no version of it is current"
        raise ConflictError(f"This is not the current version of the memory: {now}.")
