"""Associate: find memories that share keywords with perceived triples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from recollect.core.agents.reflection import read_as_original, read_triple
from recollect.core.memories.checks import MAX_PART_LENGTH
from recollect.core.recall.checks import check_filter
from recollect.core.text.checks import check_line
from recollect.errors import InvalidInputError
from recollect.models.agents import Association
from recollect.models.filters import Filter
from recollect.models.memories import Kind, Memory, Triple
from recollect.models.service import Scope
from recollect.store.memories import keywords, memories
from recollect.verbs.dependencies import Dependencies

MAX_TRIPLES = 100
MAX_LIMIT = 1_000
MAX_MEMORIES = 10_000
"""Maximum number of events in one answer, and of thoughts, over all its triples."""


async def associate(
    parts: Dependencies, scope: Scope, triples: Sequence[Triple], limit: int, *, original: bool, only: Filter
) -> list[Association]:
    """Return for each triple the events and thoughts that share its keywords; nothing counts as accessed.

    With `original`, the limit does not count, and the newest come first.
    """
    check_triples(triples, limit)
    check_filter(only)
    most = MAX_MEMORIES // len(triples) if original else limit
    asked = [read_as_original(triple) if original else read_triple(triple) for triple in triples]
    ranked = await keywords.associate(parts.database, scope, asked, most, newest=original, only=only)
    ids = sorted({memory_id for listed in ranked.values() for memory_id in listed})
    found = await memories.fetch(parts.database, scope, ids, only) if ids else {}
    return [
        Association(
            triple,
            pick(found, ranked.get((position, Kind.EVENT), [])),
            pick(found, ranked.get((position, Kind.THOUGHT), [])),
        )
        for position, triple in enumerate(triples)
    ]


def pick(found: Mapping[UUID, Memory], ids: Sequence[UUID]) -> tuple[Memory, ...]:
    """Return memories in the given order, without forgotten ones."""
    return tuple(found[memory_id] for memory_id in ids if memory_id in found)


def check_triples(triples: Sequence[Triple], limit: int) -> None:
    """Refuse invalid triples, and more than fit in one answer."""
    if not 1 <= len(triples) <= MAX_TRIPLES:
        raise InvalidInputError(f"triples must hold 1 to {MAX_TRIPLES} items")
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInputError(f"limit must be between 1 and {MAX_LIMIT}")
    if len(triples) * limit > MAX_MEMORIES:
        raise InvalidInputError(f"limit times the number of triples must be at most {MAX_MEMORIES}")
    for triple in triples:
        for field, value in (("subject", triple.subject), ("predicate", triple.predicate), ("object", triple.object)):
            check_line(field, value, MAX_PART_LENGTH)
