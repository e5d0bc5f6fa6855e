"""Associate: return what perceived triples remind of, by the keywords they share with memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from recollect.core.agents.reflection import read_as_original, read_triple
from recollect.core.memories.checks import LONGEST_PART
from recollect.core.recall.checks import check_filter
from recollect.core.text.checks import check_line
from recollect.core.text.keywords import normalise_keyword
from recollect.errors import InvalidInputError
from recollect.models.agents import Association
from recollect.models.memories import Kind, Memory, Triple
from recollect.models.recall import Filter
from recollect.models.service import Scope
from recollect.store.memories import keywords, memories
from recollect.verbs.parts import Parts

MOST_TRIPLES = 100
MOST_PER_LIST = 1_000
MOST_MEMORIES = 10_000
"""The most that one answer holds: so many events and as many thoughts, over all its triples."""


async def associate(
    parts: Parts, scope: Scope, triples: Sequence[Triple], limit: int, *, original: bool, only: Filter
) -> list[Association]:
    """Give back, for each triple, the events and the thoughts it reminds of; nothing counts as accessed.

    In the manner of the original, limit does not count, and what is newest comes first.
    """
    check_triples(triples, limit)
    check_filter(only)
    most = MOST_MEMORIES // len(triples) if original else limit
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
    """Put memories in order; those forgotten meanwhile are left out."""
    return tuple(found[memory_id] for memory_id in ids if memory_id in found)


async def last_chat(parts: Parts, scope: Scope, name: str, only: Filter) -> Memory | None:
    """Give back the newest chat filed under a name."""
    check_line("name", name, LONGEST_PART)
    check_filter(only)
    chat = await keywords.find_last_chat(parts.database, scope, normalise_keyword(name), only)
    return (await memories.fetch(parts.database, scope, [chat], only)).get(chat) if chat else None


def check_triples(triples: Sequence[Triple], limit: int) -> None:
    """Refuse what one answer cannot hold, and invalid triples."""
    if not 1 <= len(triples) <= MOST_TRIPLES:
        raise InvalidInputError(f"triples must hold 1 to {MOST_TRIPLES} items")
    if not 1 <= limit <= MOST_PER_LIST:
        raise InvalidInputError(f"limit must be between 1 and {MOST_PER_LIST}")
    if len(triples) * limit > MOST_MEMORIES:
        raise InvalidInputError(f"limit times the number of triples must be at most {MOST_MEMORIES}")
    for triple in triples:
        for field, value in (("subject", triple.subject), ("predicate", triple.predicate), ("object", triple.object)):
            check_line(field, value, LONGEST_PART)
