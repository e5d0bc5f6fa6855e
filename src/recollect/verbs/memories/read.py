"""Read memories one by one or in pages, pin them, and forget them with all that was derived from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from recollect.core.memories.checks import MOST_MEMORIES
from recollect.core.recall.checks import check_filter
from recollect.core.text.checks import LONGEST_CUE, MOST_HITS, check_limit, check_text
from recollect.core.text.terms import analyse, hash_term
from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.memories import EvidenceWalk, Memory, MemoryOrder, Page
from recollect.models.recall import Filter
from recollect.models.service import Scope
from recollect.store.memories import evidence, memories
from recollect.store.memories.memories import RowQuery
from recollect.store.service import scopes
from recollect.verbs.parts import Parts

UNKNOWN_MEMORY = "There is no such memory in this scope."
DEEPEST_WALK = 6
END = UUID(int=2**128 - 1)


async def get(parts: Parts, scope: Scope, memory_id: UUID) -> Memory:
    """Fetch one memory, in any of its versions; a foreign id is as unknown as a made-up one."""
    found = await memories.fetch_one(parts.database, scope, memory_id)
    if found is None:
        raise NotFoundError(UNKNOWN_MEMORY)
    return found


async def get_many(parts: Parts, scope: Scope, ids: Sequence[UUID]) -> list[Memory]:
    """Fetch memories in the order in which they are named, in any of their versions; unknown ones are left out."""
    if not 1 <= len(ids) <= MOST_HITS:
        raise InvalidInputError(f"ids must hold 1 to {MOST_HITS} items")
    found = await memories.fetch_every(parts.database, scope, ids)
    return [found[each] for each in dict.fromkeys(ids) if each in found]


async def walk_evidence(parts: Parts, scope: Scope, memory_id: UUID, depth: int, limit: int) -> EvidenceWalk:
    """Follow evidence from a memory both ways, up to a depth and a number of memories each way."""
    check_limit(limit)
    if not 1 <= depth <= DEEPEST_WALK:
        raise InvalidInputError(f"depth must be between 1 and {DEEPEST_WALK}")
    found = await evidence.walk(parts.database, scope, memory_id, depth, limit)
    if found is None:
        raise NotFoundError(UNKNOWN_MEMORY)
    return found


@dataclass(frozen=True, slots=True)
class Browsing:
    """Which memories are listed, and in which order."""

    only: Filter
    order: MemoryOrder | str = MemoryOrder.OLDEST
    words: str = ""
    """Only memories that have all of these words."""


async def browse(parts: Parts, scope: Scope, cursor: UUID | None, limit: int, wanted: Browsing) -> Page:
    """Fetch one page of what a filter allows, in the order of storing or its reverse."""
    check_limit(limit)
    check_filter(wanted.only)
    check_text("words", wanted.words, LONGEST_CUE)
    if wanted.order not in tuple(MemoryOrder):
        raise InvalidInputError(f"order must be one of {', '.join(MemoryOrder)}")
    backwards = wanted.order == MemoryOrder.NEWEST
    start = cursor or (END if backwards else scopes.BEGINNING)
    query = RowQuery(None, wanted.only, start, limit + 1, expired=True, backwards=backwards)
    if wanted.words:
        # Words are folded as the scope stores them, which its place says.
        place = await scopes.locate(parts.database, scope)
        query = replace(query, terms=hash_words(place.scope_id or 0, wanted.words))
    rows = await memories.page(parts.database, scope, query)
    return Page(tuple(rows[:limit]), rows[limit - 1].id if len(rows) > limit else None)


def hash_words(scope_id: int, words: str) -> list[int]:
    """Give the hashes of the terms that words are searched by, in a scope."""
    terms = dict.fromkeys(analyse(words))
    if not terms:
        raise InvalidInputError("words must hold a word that memories are found by")
    return [hash_term(scope_id, term) for term in terms]


async def pin(parts: Parts, scope: Scope, ids: Sequence[UUID], *, pinned: bool) -> list[UUID]:
    """Pin memories, or unpin them; return those that exist, whether or not they were pinned before."""
    if not 1 <= len(ids) <= MOST_MEMORIES:
        raise InvalidInputError(f"ids must hold 1 to {MOST_MEMORIES} items")
    return await memories.pin(parts.database, scope, ids, pinned=pinned)


async def forget(parts: Parts, scope: Scope, ids: Sequence[UUID], only: Filter, *, dry_run: bool = False) -> list[UUID]:
    """Delete memories, or all that a filter admits, and what was derived from them; return all deleted ids."""
    check_filter(only)
    if bool(ids) == bool(only.named):
        raise InvalidInputError("forget needs either ids or a filter")
    if len(ids) > MOST_MEMORIES:
        raise InvalidInputError(f"ids must hold at most {MOST_MEMORIES} items")
    gone = dict[UUID, None]()
    # Past versions go, too: one that only the newest had replaced would come back.
    wanted = RowQuery(ids or None, only, limit=None if ids else MOST_MEMORIES, expired=True, every=not only.past)
    cursor: UUID | None = scopes.BEGINNING
    while cursor is not None:
        found, cursor = await memories.forget(parts.database, scope, replace(wanted, cursor=cursor), dry_run=dry_run)
        gone |= dict.fromkeys(found)
    return [*gone]
