"""Refuse what cannot be stored or asked, before the database sees it."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.core.text.checks import LONGEST_CUE, check_json, check_line, check_moment, check_text
from recollect.core.topics.paths import check_filing
from recollect.errors import InvalidInputError
from recollect.models.memories import NewMemory

MOST_MEMORIES = 1_000
LONGEST_CONTENT = 32_000
MOST_CHARACTERS = 250_000
LONGEST_PART = 500
MOST_KEYWORDS = 64
MOST_EVIDENCE = 256
LARGEST_METADATA = 16_384
DEEPEST_METADATA = 8
MOST_DIMENSIONS = 4_096


def check_new_memories(memories: Sequence[NewMemory]) -> None:
    """Check everything one call wants remembered."""
    if not 1 <= len(memories) <= MOST_MEMORIES:
        raise InvalidInputError(f"memories must hold 1 to {MOST_MEMORIES} items")
    if sum(map(count_characters, memories)) > MOST_CHARACTERS:
        raise InvalidInputError(f"memories must hold at most {MOST_CHARACTERS} characters together")
    for memory in memories:
        check_new_memory(memory)


def count_characters(memory: NewMemory) -> int:
    """Count all characters of a memory that will be analysed or embedded."""
    triple = memory.triple
    texts = (memory.content, memory.embedding_text, triple.subject, triple.predicate, triple.object, *memory.keywords)
    return sum(map(len, texts))


def check_importance(importance: float | None) -> None:
    """Check an importance, if one is given."""
    if importance is not None and not 1 <= importance <= 10:
        raise InvalidInputError("importance must be between 1 and 10")


def check_new_memory(memory: NewMemory) -> None:
    """Check one memory; embeddings are checked against the active space where it is known."""
    check_text("content", memory.content, LONGEST_CONTENT)
    if not memory.content.strip():
        raise InvalidInputError("content must not be blank")
    check_line("speaker", memory.speaker)
    for field in ("subject", "predicate", "object"):
        check_line(field, getattr(memory.triple, field), LONGEST_PART)
    check_text("embedding_text", memory.embedding_text, LONGEST_CUE)
    check_importance(memory.importance)
    if len(memory.keywords) > MOST_KEYWORDS:
        raise InvalidInputError(f"keywords must hold at most {MOST_KEYWORDS} items")
    for keyword in memory.keywords:
        check_line("keywords", keyword, LONGEST_PART)
    if len(memory.evidence) > MOST_EVIDENCE:
        raise InvalidInputError(f"evidence must hold at most {MOST_EVIDENCE} items")
    if memory.occurred_at is not None:
        check_moment("occurred_at", memory.occurred_at)
    check_expiry(memory)
    check_filing(memory.topic, memory.related_topics, memory.reach)
    check_metadata(memory.metadata)


def check_expiry(memory: NewMemory) -> None:
    """Refuse a memory that would have expired before it happened."""
    if memory.expires_at is None:
        return
    check_moment("expires_at", memory.expires_at)
    if memory.occurred_at is not None and memory.expires_at <= memory.occurred_at:
        raise InvalidInputError("expires_at must be after occurred_at")


def check_metadata(metadata: object) -> None:
    """Accept a JSON object of the size that metadata may have."""
    check_json("metadata", metadata, LARGEST_METADATA, DEEPEST_METADATA)
