"""The rows of one write: what is analysed before the scope is locked, and what is decided under the lock."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from recollect.core.recall.features import tell
from recollect.core.text.keywords import file_under, is_idle, keywords_of, strengthens
from recollect.core.text.names import normalise_name
from recollect.core.text.terms import (
    analyse,
    average_length,
    draw_number,
    embedded_text,
    fingerprint_term,
    indexed_text,
    weigh,
)
from recollect.errors import ConflictError, InvalidInputError
from recollect.llm.embedder import serves
from recollect.models.memories import IfNew, Kind, MemoryProgress, NewMemory, Receipt
from recollect.models.service import Caller, EmbeddingSpace, Scope
from recollect.store.database.pool import Connection
from recollect.store.memories import embeddings, memories
from recollect.store.memories.columns import Row
from recollect.store.service import jobs, scopes
from recollect.verbs.parts import Parts, spare_loop

HEAVY_MEMORIES, HEAVY_CHARACTERS = 50, 10_000
"""Larger calls are handled in a thread, so that the event loop stays free."""
DEEPEST = 32_767
MOST_TERMS = 16_000
"""A sparse vector holds no more; the rest of a longer text is found by its vector only."""

NO_CONTEXT = EmbeddedWithContext()
NOTHING_MET: Mapping[int, memories.Source | int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class StoredBeside:
    """What storing something beside memories tells of them: where they stand, and what their vectors know of."""

    rows: Sequence[Row]
    heard: EmbeddedWithContext = NO_CONTEXT


@dataclass(frozen=True, slots=True)
class Together:
    """What a write knows of those before it in the same transaction: conversations as these leave them, and rows."""

    conversations: dict[str, OpenConversation] = field(default_factory=dict[str, OpenConversation])
    rows: list[Row] = field(default_factory=list[Row])
    """What those before it store."""


AlsoStore: TypeAlias = Callable[[Connection, int, Sequence[Row], Together], Awaitable[StoredBeside]]
AlsoAsk: TypeAlias = Callable[[Connection], Awaitable[AlsoStore]]
"""What is written beside the memories: asked for in the first round trip, stored in the second, before them."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """One memory with all that can be computed before a connection is taken."""

    memory: NewMemory
    keywords: tuple[str, ...]
    counts: dict[int, int]
    """How often each term occurs, by its fingerprint."""
    draw: int
    """By which it is drawn for a sample: of what the caller gave alone."""
    tells: int
    """What it is like by its wording."""
    named: str
    """Its speaker in the form names are compared by."""


@dataclass(frozen=True, slots=True)
class Write:
    """One write: who, where, what, and under which key."""

    caller: Caller
    scope: Scope
    prepared: list[Prepared]
    vectors: NDArray[np.float32] | None
    key: str
    fingerprint: bytes
    also_ask: AlsoAsk | None = None
    if_new: IfNew = ""

    @property
    def heavy(self) -> bool:
        """Tell whether it is so large that it should be handled in a thread."""
        return is_heavy([item.memory for item in self.prepared])

    @property
    def size(self) -> int:
        """Return how many memories it stores."""
        return len(self.prepared)


def check_and_prepare(new: Sequence[NewMemory]) -> list[Prepared]:
    """Check everything one call wants remembered, and analyse it."""
    check_new_memories(new)
    return prepare_all(new)


async def prepare_in_time(new: Sequence[NewMemory]) -> list[Prepared]:
    """Analyse memories, in a thread where they are many or long."""
    return await spare_loop(is_heavy(new), prepare_all, new)


def is_heavy(new: Sequence[NewMemory]) -> bool:
    """Tell whether memories are so many or so long that they should be handled in a thread."""
    return len(new) > HEAVY_MEMORIES or sum(map(count_characters, new)) > HEAVY_CHARACTERS


def prepare_all(new: Sequence[NewMemory]) -> list[Prepared]:
    """Analyse memories."""
    return [prepare(memory) for memory in new]


def prepare(memory: NewMemory) -> Prepared:
    """Analyse one memory; its keywords come first, so that they are found however long the text is."""
    memory = complete(memory, idle=says_idle(memory))
    keywords = file_under(memory.keywords) or keywords_of(memory.triple, memory.kind)
    terms = [term for keyword in keywords for term in analyse(keyword)]
    counts = Counter(terms + analyse(indexed_text(memory.speaker, memory.content)))
    kept = islice(counts.items(), MOST_TERMS)
    moment = memory.occurred_at.astimezone(UTC).isoformat() if memory.occurred_at else ""
    draw = draw_number(memory.speaker, memory.content, moment)
    by_fingerprint = {fingerprint_term(term): count for term, count in kept}
    return Prepared(memory, keywords, by_fingerprint, draw, int(tell(memory.content)), normalise_name(memory.speaker))


def says_idle(memory: NewMemory) -> bool:
    """Tell whether a memory says that something does nothing."""
    return is_idle(memory.triple) if memory.idle is None else memory.idle


async def embed_missing(
    parts: Parts, new: Sequence[NewMemory], before: Sequence[str] = ()
) -> NDArray[np.float32] | None:
    """Embed memories without a vector, before any connection is taken; `before` is the utterance before each."""
    if parts.embedder is None:
        return None
    pairs = zip(new, before or [""] * len(new), strict=True)
    texts = [embedded_text(memory, said) for memory, said in pairs if needs_vector(memory)]
    return await parts.embed_in_time(texts) if texts else None


def needs_vector(memory: NewMemory) -> bool:
    """Tell whether a memory needs a vector of the embedder: an empty one does not."""
    return memory.embedding is None and bool(memory.content or memory.embedding_text)


def replay(claim: memories.Claim, asked: bytes) -> list[Receipt]:
    """Answer a repeated key as the first time, or refuse another body."""
    if claim.fingerprint != asked:
        raise ConflictError("This Idempotency-Key was used before with another body.")
    pairs = zip(claim.memory_ids, claim.embedded, strict=True)
    return [
        Receipt(identity, progress_of(embedded), known=place in claim.known)
        for place, (identity, embedded) in enumerate(pairs)
    ]


def progress_of(embedded: bool) -> MemoryProgress:  # noqa: FBT001 - the one fact it translates
    """Return the state in which a memory is acknowledged."""
    return MemoryProgress.EMBEDDED if embedded else MemoryProgress.STORED


def count(prepared: Sequence[Prepared]) -> scopes.Counts:
    """Count what a write adds to its scope."""
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
    opening: scopes.Opening,
    sources: dict[UUID | int, memories.Source],
    first: int = 0,
    met: Mapping[int, memories.Source | int] = NOTHING_MET,
) -> list[Row]:
    """Give every memory its id, time, trust, depth and weights; later ones may name it as a source by position.

    Those that were met get no row: their position stands for the memory that says the same.
    """
    # Including this write: the first memories must not be weighed by the prior length alone.
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
            counted=strengthens(item.memory.kind, item.memory.triple),
            idle=says_idle(item.memory),
            depth=find_depth(item.memory.kind, named),
            occurred_at=item.memory.occurred_at or opening.written_at,
            trust=min([write.caller.trust, *(source.trust for source in named)]),
            evidence=tuple(source.id for source in named),
            weights=weigh(item.counts, average),
            draw=item.draw,
            tells=item.tells,
            named=item.named,
        )
        sources[first + position] = memories.Source(row.id, row.trust, row.depth)
        rows.append(row)
    return rows


def find_depth(kind: Kind, sources: Sequence[memories.Source]) -> int:
    """Give a thought one more than the greatest depth of its sources, and everything else 0."""
    deepest = max((source.depth for source in sources), default=0)
    return min(deepest + 1, DEEPEST) if kind is Kind.THOUGHT else 0


def find_source(sources: dict[UUID | int, memories.Source], name: UUID | int) -> memories.Source:
    """Look up a source; one that is not in this scope, or comes later, is refused."""
    if name not in sources:
        raise InvalidInputError("evidence must name memories of the same scope, or earlier positions in the same call")
    return sources[name]


def place_vectors(parts: Parts, write: Write, space: EmbeddingSpace | None) -> list[NDArray[np.float32] | None]:
    """Pair every memory with its vector for the active space, the caller's before the embedder's."""
    given = [item.memory.embedding for item in write.prepared if item.memory.embedding is not None]
    if given and space is None:
        raise InvalidInputError("embedding is not accepted: no embedding space is active")
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
    """Write the vectors there are; enqueue a job for the rest, and for messages to be embedded again with context."""
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
