"""Remember: check, analyse, embed if the model answers in time, then write everything in one transaction."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.core.checks import check_idempotency_key, check_new_memories, unit_vectors
from recollect.core.identity import RANDOM_BYTES, fingerprint, memory_id
from recollect.core.terms import (
    analyse,
    average_length,
    fingerprint_term,
    indexed_text,
    normalise_keyword,
    weigh,
)
from recollect.errors import ConflictError, InvalidInputError
from recollect.llm.embedder import serves
from recollect.models import Caller, EmbeddingSpace, MemoryState, NewMemory, Receipt, Scope
from recollect.store import jobs, memories, scopes, spaces
from recollect.store.db import Connection
from recollect.verbs.parts import Parts

HEAVY_CHARACTERS = 20_000
"""Longer calls are analysed in a thread, so that the event loop stays free."""
MOST_TERMS = 16_000
"""A sparse vector holds no more; what a longer text says after that is found by its vector only."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """One memory with all that can be worked out before a connection is taken."""

    memory: NewMemory
    keywords: tuple[str, ...]
    counts: dict[int, int]
    """How often each term occurs, by its fingerprint."""


@dataclass(frozen=True, slots=True)
class Write:
    """One call's work: who, where, what, and under which key."""

    caller: Caller
    scope: Scope
    prepared: list[Prepared]
    vectors: NDArray[np.float32] | None
    key: str
    fingerprint: bytes


async def remember(
    parts: Parts, caller: Caller, scope: Scope, new: Sequence[NewMemory], key: str = ""
) -> list[Receipt]:
    """Store memories and return their receipts once they are durable; the same key stores them once."""
    check_new_memories(new)
    check_idempotency_key(key)
    size = sum(len(memory.content) for memory in new)
    prepared = await asyncio.to_thread(prepare_all, new) if size > HEAVY_CHARACTERS else prepare_all(new)
    vectors = await embed_missing(parts, new)
    write = Write(caller, scope, prepared, vectors, key, fingerprint(new) if key else b"")
    async with parts.database.transaction(scope.tenant_id) as connection:
        return await perform(parts, connection, write)


def prepare_all(new: Sequence[NewMemory]) -> list[Prepared]:
    """Analyse memories."""
    return [prepare(memory) for memory in new]


def prepare(memory: NewMemory) -> Prepared:
    """Analyse one memory; its keywords come first, so that no text is too long for them to be found."""
    keywords = tuple(dict.fromkeys(filter(None, map(normalise_keyword, memory.keywords))))
    terms = [term for keyword in keywords for term in analyse(keyword)]
    counts = Counter(terms + analyse(indexed_text(memory.speaker, memory.content)))
    kept = islice(counts.items(), MOST_TERMS)
    return Prepared(memory, keywords, {fingerprint_term(term): count for term, count in kept})


async def embed_missing(parts: Parts, new: Sequence[NewMemory]) -> NDArray[np.float32] | None:
    """Embed the memories that came without a vector, before any connection is taken."""
    texts = [indexed_text(memory.speaker, memory.content) for memory in new if memory.embedding is None]
    return await parts.embed_in_time(texts) if texts else None


async def perform(parts: Parts, connection: Connection, write: Write) -> list[Receipt]:
    """Write in two round trips: open the scope and claim the key, then store everything."""
    sources = list(dict.fromkeys(source for item in write.prepared for source in item.memory.evidence))
    opened = await scopes.ask_opening(connection, write.scope)
    located = await scopes.ask_place(connection, write.scope.agent, write.scope.user)
    trusted = await memories.ask_source_trust(connection, write.scope, sources) if sources else None
    claimed = await memories.ask_claim(connection, write.scope, write.key, write.fingerprint) if write.key else None
    opening = await scopes.read_opening(opened)
    space = (await scopes.read_place(located)).space
    trust = {row["id"]: row["trust"] for row in await trusted.fetchall()} if trusted else {}
    if claimed is not None:
        claim = await memories.read_claim(claimed)
        if not claim.fresh:
            return replay(claim, write.fingerprint)
    rows = assign(write, opening, trust)
    embedded = place_vectors(parts, write, space)
    await memories.store(connection, opening.scope_id, write.caller.origin, opening.written_at, rows)
    terms = sum(sum(item.counts.values()) for item in write.prepared)
    await scopes.close_writing(connection, opening.scope_id, len(rows), terms, opening.written_at)
    ids = [row.id for row in rows]
    await store_vectors(connection, opening.scope_id, space, ids, embedded)
    if write.key:
        done = [row is not None for row in embedded]
        await memories.settle_claim(connection, opening.scope_id, write.key, ids, done)
    return [Receipt(row.id, state_of(vector is not None)) for row, vector in zip(rows, embedded, strict=True)]


def replay(claim: memories.Claim, asked: bytes) -> list[Receipt]:
    """Answer a repeated key as the first time, or refuse another body."""
    if claim.fingerprint != asked:
        raise ConflictError("This Idempotency-Key was used before with another body.")
    pairs = zip(claim.memory_ids, claim.embedded, strict=True)
    return [Receipt(identity, state_of(embedded)) for identity, embedded in pairs]


def state_of(embedded: bool) -> MemoryState:  # noqa: FBT001 - the one fact it translates
    """Name the state a memory is acknowledged in."""
    return MemoryState.EMBEDDED if embedded else MemoryState.STORED


def assign(write: Write, opening: scopes.Opening, trust: dict[UUID, int]) -> list[memories.Row]:
    """Give every memory its id, time, trust and weights; what is derived is trusted as its least source."""
    average = average_length(opening.term_count, opening.memory_count)
    entropy = os.urandom(RANDOM_BYTES * len(write.prepared))
    return [
        memories.Row(
            id=memory_id(
                opening.written_at, position, entropy[position * RANDOM_BYTES : (position + 1) * RANDOM_BYTES]
            ),
            memory=item.memory,
            keywords=item.keywords,
            occurred_at=item.memory.occurred_at or opening.written_at,
            trust=min([write.caller.trust, *(trust_of(trust, source) for source in item.memory.evidence)]),
            weights=weigh(item.counts, average),
        )
        for position, item in enumerate(write.prepared)
    ]


def trust_of(trust: dict[UUID, int], source: UUID) -> int:
    """Look a source's trust up; evidence that is not in this scope is no evidence."""
    if source not in trust:
        raise InvalidInputError("evidence must name memories of the same scope")
    return trust[source]


def place_vectors(parts: Parts, write: Write, space: EmbeddingSpace | None) -> list[NDArray[np.float32] | None]:
    """Pair every memory with the vector it has for the active space, its caller's before the embedder's."""
    given = [item.memory.embedding for item in write.prepared if item.memory.embedding is not None]
    if given and space is None:
        raise InvalidInputError("embedding is not accepted: no embedding space is active")
    theirs = iter(unit_vectors(given, space.dimensions) if given and space else ())
    ours = iter(write.vectors if write.vectors is not None and serves(parts.embedder, space) else ())
    return [next(ours if item.memory.embedding is None else theirs, None) for item in write.prepared]


async def store_vectors(
    connection: Connection,
    scope_id: int,
    space: EmbeddingSpace | None,
    ids: list[UUID],
    vectors: list[NDArray[np.float32] | None],
) -> None:
    """Write the vectors there are, and put the rest off to a job."""
    if space is None:
        return
    known = {identity: row for identity, row in zip(ids, vectors, strict=True) if row is not None}
    if known:
        await spaces.store_vectors(connection, space.id, scope_id, list(known), np.stack(list(known.values())))
    waiting = [identity for identity in ids if identity not in known]
    if waiting:
        await spaces.add_pending(connection, scope_id, waiting)
        await jobs.defer(connection, "embed", f"embed:{scope_id}", {"scope_id": scope_id})
