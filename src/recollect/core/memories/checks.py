"""Refuse invalid memories before they reach the database."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.core.text.checks import MAX_CUE_LENGTH, check_json, check_line, check_moment, check_text
from recollect.core.topics.paths import check_filing
from recollect.errors import InvalidInputError
from recollect.models.memories import NewMemory

MAX_MEMORIES = 1_000
MAX_CONTENT_LENGTH = 32_000
MAX_CHARACTERS = 250_000
MAX_PART_LENGTH = 500
MAX_KEYWORDS = 64
MAX_EVIDENCE = 256
MAX_METADATA_BYTES = 16_384
MAX_METADATA_DEPTH = 8
MAX_DIMENSIONS = 4_096


def check_new_memories(memories: Sequence[NewMemory]) -> None:
    """Check the memories of one call."""
    if not 1 <= len(memories) <= MAX_MEMORIES:
        raise InvalidInputError(f"memories must have 1 to {MAX_MEMORIES} items")
    if sum(map(count_characters, memories)) > MAX_CHARACTERS:
        raise InvalidInputError(f"memories must hold at most {MAX_CHARACTERS} characters together")
    for memory in memories:
        check_new_memory(memory)


def count_characters(memory: NewMemory) -> int:
    """Count the characters of a memory that are analyzed or embedded."""
    triple = memory.triple
    texts = (memory.content, memory.embedding_text, triple.subject, triple.predicate, triple.object, *memory.keywords)
    return sum(map(len, texts))


def check_importance(importance: float | None) -> None:
    """Check an importance, if one is given."""
    if importance is not None and not 1 <= importance <= 10:
        raise InvalidInputError("importance must be between 1 and 10")


def check_new_memory(memory: NewMemory) -> None:
    """Check one memory; its embedding is checked later, against the active space."""
    check_text("content", memory.content, MAX_CONTENT_LENGTH)
    if not memory.content.strip():
        raise InvalidInputError("content must not be blank")
    check_line("speaker", memory.speaker)
    for field in ("subject", "predicate", "object"):
        check_line(field, getattr(memory.triple, field), MAX_PART_LENGTH)
    check_text("embedding_text", memory.embedding_text, MAX_CUE_LENGTH)
    check_importance(memory.importance)
    if len(memory.keywords) > MAX_KEYWORDS:
        raise InvalidInputError(f"keywords must hold at most {MAX_KEYWORDS} items")
    for keyword in memory.keywords:
        check_line("keywords", keyword, MAX_PART_LENGTH)
    if len(memory.evidence) > MAX_EVIDENCE:
        raise InvalidInputError(f"evidence must hold at most {MAX_EVIDENCE} items")
    if memory.occurred_at is not None:
        check_moment("occurred_at", memory.occurred_at)
    check_expiry(memory)
    check_filing(memory.topic, memory.related_topics, memory.reach)
    check_metadata(memory.metadata)


def check_expiry(memory: NewMemory) -> None:
    """Refuse a memory that expires before it happened."""
    if memory.expires_at is None:
        return
    check_moment("expires_at", memory.expires_at)
    if memory.occurred_at is not None and memory.expires_at <= memory.occurred_at:
        raise InvalidInputError("expires_at must be after occurred_at")


def check_metadata(metadata: object) -> None:
    """Check that metadata is a JSON object within the limits."""
    check_json("metadata", metadata, MAX_METADATA_BYTES, MAX_METADATA_DEPTH)
