"""Read memories one by one or in pages, and forget them with all memories derived from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from recollect.core.memories.checks import MAX_MEMORIES, MAX_PART_LENGTH
from recollect.core.recall.checks import check_filter
from recollect.core.text.checks import MAX_CUE_LENGTH, MAX_HITS, check_limit, check_line, check_text
from recollect.core.text.keywords import normalise_keyword
from recollect.core.text.terms import analyse, hash_term
from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.filters import NO_FILTER, Filter
from recollect.models.memories import EvidenceWalk, Memory, MemoryOrder, MemoryPage
from recollect.models.service import Scope
from recollect.store.memories import evidence, memories, versions
from recollect.store.memories.memories import RowQuery
from recollect.store.service import scopes
from recollect.verbs.dependencies import Dependencies

UNKNOWN_MEMORY = "No such memory in this scope."
MAX_EVIDENCE_DEPTH = 6
END = UUID(int=2**128 - 1)


async def get(parts: Dependencies, scope: Scope, memory_id: UUID) -> Memory:
    """Fetch one memory, in any version; an ID of another scope is unknown."""
    found = await memories.fetch_one(parts.database, scope, memory_id)
    if found is None:
        raise NotFoundError(UNKNOWN_MEMORY)
    return found


async def walk_evidence(parts: Dependencies, scope: Scope, memory_id: UUID, depth: int, limit: int) -> EvidenceWalk:
    """Follow evidence from a memory both ways, up to a depth and a number of memories each way; list its versions."""
    check_limit(limit)
    if not 1 <= depth <= MAX_EVIDENCE_DEPTH:
        raise InvalidInputError(f"depth must be between 1 and {MAX_EVIDENCE_DEPTH}")
    known = await versions.fetch_versions(parts.database, scope, memory_id)
    if not known:
        raise NotFoundError(UNKNOWN_MEMORY)
    found = await evidence.walk(parts.database, scope, memory_id, depth, limit)
    return replace(found or EvidenceWalk((), (), whole=True), versions=tuple(known))


@dataclass(frozen=True, slots=True)
class ListQuery:
    """Which memories to list, and in which order."""

    only: Filter = NO_FILTER
    ids: Sequence[UUID] | None = None
    """Exactly these memories, in this order and in any version."""
    words: str = ""
    """Only memories that contain all of these words."""
    keyword: str = ""
    """Only memories in recall that are filed under this keyword."""
    order: MemoryOrder | str = MemoryOrder.OLDEST
    limit: int = 50
    cursor: UUID | None = None


async def list_memories(parts: Dependencies, scope: Scope, wanted: ListQuery) -> MemoryPage:
    """Fetch memories by ID, or one page of those that a filter allows, in the order of storing or its reverse."""
    if wanted.ids is not None:
        return await list_by_id(parts, scope, wanted.ids, wanted)
    limit = wanted.limit
    check_limit(limit)
    check_filter(wanted.only)
    check_text("words", wanted.words, MAX_CUE_LENGTH)
    if wanted.order not in tuple(MemoryOrder):
        raise InvalidInputError(f"order must be one of {', '.join(MemoryOrder)}")
    backwards = wanted.order == MemoryOrder.NEWEST
    start = wanted.cursor or (END if backwards else scopes.BEGINNING)
    query = RowQuery(None, wanted.only, start, limit + 1, expired=True, backwards=backwards)
    if wanted.keyword:
        check_line("keyword", wanted.keyword, MAX_PART_LENGTH)
        query = replace(query, keyword=normalise_keyword(wanted.keyword))
    if wanted.words:
        # Words are normalized with the rules of the scope, which its location has.
        place = await scopes.locate(parts.database, scope)
        query = replace(query, terms=hash_words(place.scope_id or 0, wanted.words))
    rows = await memories.page(parts.database, scope, query)
    return MemoryPage(tuple(rows[:limit]), rows[limit - 1].id if len(rows) > limit else None)


async def list_by_id(parts: Dependencies, scope: Scope, ids: Sequence[UUID], wanted: ListQuery) -> MemoryPage:
    """Fetch memories in the given order, in any version; unknown ones are omitted."""
    if len(ids) > MAX_HITS:
        raise InvalidInputError(f"ids must hold at most {MAX_HITS} items")
    if wanted.only.named or wanted.words or wanted.keyword or wanted.cursor:
        raise InvalidInputError("ids cannot be combined with a filter, words, a keyword or a cursor")
    found = await memories.fetch_every(parts.database, scope, ids)
    return MemoryPage(tuple(found[each] for each in dict.fromkeys(ids) if each in found), None)


def hash_words(scope_id: int, words: str) -> list[int]:
    """Return the hashes of a text's search terms in a scope."""
    terms = dict.fromkeys(analyse(words))
    if not terms:
        raise InvalidInputError("words must contain at least one searchable word")
    return [hash_term(scope_id, term) for term in terms]


async def forget(
    parts: Dependencies, scope: Scope, ids: Sequence[UUID], only: Filter, *, dry_run: bool = False
) -> list[UUID]:
    """Delete memories, or all that a filter allows, and memories derived from them; return all deleted IDs."""
    check_filter(only)
    if bool(ids) == bool(only.named):
        raise InvalidInputError("forget requires ids or a filter")
    if len(ids) > MAX_MEMORIES:
        raise InvalidInputError(f"ids must hold at most {MAX_MEMORIES} items")
    gone = dict[UUID, None]()
    # Past versions are deleted, too: one that only the newest had replaced would be current again.
    wanted = RowQuery(ids or None, only, limit=None if ids else MAX_MEMORIES, expired=True, every=not only.past)
    cursor: UUID | None = scopes.BEGINNING
    while cursor is not None:
        found, cursor = await memories.forget(parts.database, scope, replace(wanted, cursor=cursor), dry_run=dry_run)
        gone |= dict.fromkeys(found)
    return [*gone]
