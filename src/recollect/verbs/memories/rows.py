"""The rows of one write: analyzed before the scope is locked, and decided under the lock."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from itertools import islice
from types import MappingProxyType
from typing import TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.core.agents.reflection import waits_for_reflection
from recollect.core.conversations.appends import EmbeddedWithContext, OpenConversation
from recollect.core.memories.checks import check_new_memories, count_characters
from recollect.core.memories.ids import RANDOM_BYTES, memory_id
from recollect.core.memories.importance import complete, read_importance
from recollect.core.memories.vectors import unit_vectors
from recollect.core.recall.features import detect_traits
from recollect.core.text.keywords import counts_for_keywords, file_under, is_idle, keywords_of
from recollect.core.text.names import normalize_name
from recollect.core.text.terms import (
    analyse,
    average_length,
    draw_number,
    embedded_text,
    fingerprint_term,
    indexed_text,
    term_weights,
)
from recollect.errors import ConflictError, InvalidInputError
from recollect.llm.embedder import serves
from recollect.models.memories import IfNew, Kind, MemoryProgress, NewMemory, Receipt
from recollect.models.service import Caller, EmbeddingSpace, Scope
from recollect.store.database.pool import Connection
from recollect.store.memories import embeddings, memories
from recollect.store.memories.columns import Row
from recollect.store.service import jobs, scopes
from recollect.verbs.dependencies import Dependencies, run_in_thread_if_heavy

HEAVY_MEMORIES, HEAVY_CHARACTERS = 50, 10_000
"""Larger calls are handled in a thread, so that the event loop stays free."""
MAX_DEPTH = 32_767
MAX_TERMS = 16_000
"""Maximum number of terms in a sparse vector; the rest of a longer text is found only by its vector."""

NO_CONTEXT = EmbeddedWithContext()
NOTHING_MET: Mapping[int, memories.Source | int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class LinkedRows:
    """The rows of messages with their positions, and the context of their vectors."""

    rows: Sequence[Row]
    heard: EmbeddedWithContext = NO_CONTEXT


@dataclass(frozen=True, slots=True)
class BatchState:
    """The state after earlier writes of the same transaction: conversations and rows."""

    conversations: dict[str, OpenConversation] = field(default_factory=dict[str, OpenConversation])
    rows: list[Row] = field(default_factory=list[Row])
    """The rows of earlier writes."""


ExtraWrite: TypeAlias = Callable[[Connection, int, Sequence[Row], BatchState], Awaitable[LinkedRows]]
ExtraQuery: TypeAlias = Callable[[Connection], Awaitable[ExtraWrite]]
"""Queries rows to write in addition to memories in the first round trip; the second stores them first."""


@dataclass(frozen=True, slots=True)
class PreparedMemory:
    """A memory with all data that is computed before a connection is taken."""

    memory: NewMemory
    keywords: tuple[str, ...]
    counts: dict[int, int]
    """How often each term occurs, by its fingerprint."""
    draw: int
    """Its random number for a sample; only for a memory that the caller gave."""
    tells: int
    """How a memory's wording classifies it."""
    named: str
    """Its speaker in the form used to compare names."""


@dataclass(frozen=True, slots=True)
class Write:
    """A write: its caller, scope, memories and key."""

    caller: Caller
    scope: Scope
    prepared: list[PreparedMemory]
    vectors: NDArray[np.float32] | None
    key: str
    fingerprint: bytes
    also_ask: ExtraQuery | None = None
    if_new: IfNew = ""
    known: Mapping[int, Receipt | int] = field(default_factory=dict[int, Receipt | int])
    """Known memories that the caller named, by position; a number is an earlier position."""

    @property
    def heavy(self) -> bool:
        """Return whether it is so large that a thread should handle it."""
        return is_heavy([item.memory for item in self.prepared])

    @property
    def size(self) -> int:
        """Return the number of memories to store."""
        return len(self.prepared)


def check_and_prepare(new: Sequence[NewMemory]) -> list[PreparedMemory]:
    """Check all memories of one call, and analyze them."""
    check_new_memories(new)
    return prepare_all(new)


async def prepare_in_time(new: Sequence[NewMemory]) -> list[PreparedMemory]:
    """Analyze memories, in a thread if they are many or long."""
    return await run_in_thread_if_heavy(is_heavy(new), prepare_all, new)


def is_heavy(new: Sequence[NewMemory]) -> bool:
    """Return whether memories should be handled in a thread because of their number or length."""
    return len(new) > HEAVY_MEMORIES or sum(map(count_characters, new)) > HEAVY_CHARACTERS


def prepare_all(new: Sequence[NewMemory]) -> list[PreparedMemory]:
    """Analyze memories."""
    return [prepare(memory) for memory in new]


def prepare(memory: NewMemory) -> PreparedMemory:
    """Analyze one memory; its keywords come first, so that they are found in texts of any length."""
    memory = complete(memory, idle=is_idle_text(memory))
    keywords = file_under(memory.keywords) or keywords_of(memory.triple, memory.kind)
    terms = [term for keyword in keywords for term in analyse(keyword)]
    counts = Counter(terms + analyse(indexed_text(memory.speaker, memory.content)))
    kept = islice(counts.items(), MAX_TERMS)
    moment = memory.occurred_at.astimezone(UTC).isoformat() if memory.occurred_at else ""
    draw = draw_number(memory.speaker, memory.content, moment)
    by_fingerprint = {fingerprint_term(term): count for term, count in kept}
    return PreparedMemory(
        memory, keywords, by_fingerprint, draw, int(detect_traits(memory.content)), normalize_name(memory.speaker)
    )


def is_idle_text(memory: NewMemory) -> bool:
    """Return whether a memory states that something does nothing."""
    return is_idle(memory.triple) if memory.idle is None else memory.idle


async def embed_missing(
    parts: Dependencies, new: Sequence[NewMemory], before: Sequence[str] = ()
) -> NDArray[np.float32] | None:
    """Embed memories without a vector, before a connection is taken; `before` are the previous messages."""
    if parts.embedder is None:
        return None
    pairs = zip(new, before or [""] * len(new), strict=True)
    texts = [embedded_text(memory, said) for memory, said in pairs if needs_vector(memory)]
    return await parts.embed_in_time(texts) if texts else None


def needs_vector(memory: NewMemory) -> bool:
    """Return whether a memory needs a vector of the embedder: an empty one does not."""
    return memory.embedding is None and bool(memory.content or memory.embedding_text)


def replay(claim: memories.Claim, asked: bytes) -> list[Receipt]:
    """Return the first receipts for a repeated key; raise an error if the request differs."""
    if claim.fingerprint != asked:
        raise ConflictError("This Idempotency-Key was already used for a different request.")
    pairs = zip(claim.memory_ids, claim.embedded, strict=True)
    return [
        Receipt(identity, progress_of(embedded), known=place in claim.known)
        for place, (identity, embedded) in enumerate(pairs)
    ]


def merge_receipts(stored: Sequence[Receipt], known: Mapping[int, Receipt | int]) -> list[Receipt]:
    """Merge the receipts of stored and of known memories by position."""
    left, merged = iter(stored), list[Receipt]()
    for place in range(len(stored) + len(known)):
        found = known.get(place)
        again = replace(merged[found], known=True) if isinstance(found, int) else found
        merged.append(again or next(left))
    return merged


def progress_of(embedded: bool) -> MemoryProgress:  # noqa: FBT001 - the one fact it translates
    """Return the progress in the receipt of a memory."""
    return MemoryProgress.EMBEDDED if embedded else MemoryProgress.STORED


def count(prepared: Sequence[PreparedMemory]) -> scopes.Counts:
    """Count the additions of a write to its scope."""
    kinds = Counter(item.memory.kind for item in prepared)
    unreflected = [read_importance(item.memory.importance) for item in prepared if waits_for_reflection(item.memory)]
    return scopes.Counts(
        memories=len(prepared),
        events=kinds[Kind.EVENT],
        thoughts=kinds[Kind.THOUGHT],
        chats=kinds[Kind.CHAT],
        terms=sum(sum(item.counts.values()) for item in prepared),
        unreflected=len(unreflected),
        importance=sum(unreflected),
    )


def assign(
    write: Write,
    opening: scopes.LockedScope,
    sources: dict[UUID | int, memories.Source],
    first: int = 0,
    met: Mapping[int, memories.Source | int] = NOTHING_MET,
) -> list[Row]:
    """Assign each memory an ID, time, trust, depth and weights; later ones may name it as a source by position.

    Known memories get no row: their position refers to the memory with the same text.
    """
    # Including this write: the first memories must not be weighted by the prior length alone.
    added = count([item for place, item in enumerate(write.prepared) if place not in met])
    average = average_length(opening.term_count + added.terms, opening.memory_count + added.memories)
    entropy = os.urandom(RANDOM_BYTES * len(write.prepared))
    rows: list[Row] = []
    for position, item in enumerate(write.prepared):
        if position in met:
            same = met[position]
            sources[first + position] = sources[first + same] if isinstance(same, int) else same
            continue
        named = [find_source(sources, source) for source in item.memory.evidence]
        chance = entropy[position * RANDOM_BYTES : (position + 1) * RANDOM_BYTES]
        row = Row(
            id=memory_id(opening.written_at, opening.written_before + position, chance),
            memory=item.memory,
            keywords=item.keywords,
            counted=counts_for_keywords(item.memory.kind, item.memory.triple),
            idle=is_idle_text(item.memory),
            depth=find_depth(item.memory.kind, named),
            occurred_at=item.memory.occurred_at or opening.written_at,
            trust=min([write.caller.trust, *(source.trust for source in named)]),
            evidence=tuple(source.id for source in named),
            weights=term_weights(item.counts, average),
            draw=item.draw,
            tells=item.tells,
            named=item.named,
        )
        sources[first + position] = memories.Source(row.id, row.trust, row.depth)
        rows.append(row)
    return rows


def find_depth(kind: Kind, sources: Sequence[memories.Source]) -> int:
    """Return the depth: for a thought the greatest depth of its sources plus 1, else 0."""
    deepest = max((source.depth for source in sources), default=0)
    return min(deepest + 1, MAX_DEPTH) if kind is Kind.THOUGHT else 0


def find_source(sources: dict[UUID | int, memories.Source], name: UUID | int) -> memories.Source:
    """Return a source; raise an error if it is not in this scope, or comes later."""
    if name not in sources:
        raise InvalidInputError(
            "evidence must be memories of the same scope, or positions of earlier memories in this request"
        )
    return sources[name]


def pair_vectors(parts: Dependencies, write: Write, space: EmbeddingSpace | None) -> list[NDArray[np.float32] | None]:
    """Pair each memory with its vector for the active space; the caller's vector has precedence."""
    given = [item.memory.embedding for item in write.prepared if item.memory.embedding is not None]
    if given and space is None:
        raise InvalidInputError("embedding is not supported: no embedding space is active")
    theirs = iter(unit_vectors(given, space.dimensions) if given and space else ())
    ours = iter(write.vectors if write.vectors is not None and serves(parts.embedder, space) else ())
    nothing: Iterator[NDArray[np.float32]] = iter(())
    chosen = (
        theirs if item.memory.embedding is not None else ours if needs_vector(item.memory) else nothing
        for item in write.prepared
    )
    return [next(vectors, None) for vectors in chosen]


async def store_vectors(
    connection: Connection,
    scope_id: int,
    space: EmbeddingSpace | None,
    rows: Sequence[Row],
    vectors: list[NDArray[np.float32] | None],
    context: EmbeddedWithContext = NO_CONTEXT,
) -> None:
    """Write the existing vectors; queue a job for the rest, and for messages to embed again with context."""
    if space is None:
        return
    known = {row.id: vector for row, vector in zip(rows, vectors, strict=True) if vector is not None}
    if known:
        await embeddings.store_vectors(connection, space, scope_id, list(known), np.stack(list(known.values())))
    made = [row.id for row in rows if needs_vector(row.memory)]
    if with_context := [identity for identity in made if identity in known and identity in context.done]:
        await embeddings.note_with_context(connection, space, scope_id, with_context)
    waiting = [identity for identity in made if identity not in known or identity in context.again]
    if waiting:
        await embeddings.add_pending(connection, scope_id, waiting)
        await jobs.defer(connection, "embed", f"embed:{scope_id}", {"scope_id": scope_id})
