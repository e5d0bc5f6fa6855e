"""Translate nodes into memories and back: the metadata keeps only what the way back could not compute."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from recollect.doors.imports.generative_agents.folder import MOMENT, SavedNode, Scratch, Strengths, Vectors
from recollect.models.agents import Overview, Profile
from recollect.models.memories import JSON, Kind, Memory, NewMemory, Triple
from recollect.models.recall import StreamWeights

DEFAULT = {"recency_w": 1, "relevance_w": 1, "importance_w": 1, "recency_decay": 0.99, "importance_trigger_max": 150}
"""The original's defaults."""
OURS = "generative_agents"
"""The key of our data in the metadata of memories and agents."""
ORDER = "order"
"""Evidence is a set, a list of node ids is not: the order of the list, as positions by age."""
KINDS = (Kind.EVENT, Kind.THOUGHT, Kind.CHAT)
THOUGHT_LIFETIME = timedelta(days=30)
UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)
MAX_PART_LENGTH, MAX_EMBEDDED_LENGTH = 500, 8_000
"""Endless texts of models are cut here, and kept whole in the metadata."""
BREAKS = re.compile("[\x00-\x1f\x7f]")
IDLE = {"is idle", "在 空闲"}


def to_profile(scratch: Scratch) -> Profile:
    """Return the weights, the decay and the threshold of the persona."""
    weighing = StreamWeights(
        recency=scratch.recency_w,
        similarity=scratch.relevance_w,
        importance=scratch.importance_w,
        decay=scratch.recency_decay,
    )
    return Profile(weighing, reflection_threshold=scratch.importance_trigger_max)


def to_scratch(kept: JSON, overview: Overview) -> Scratch:
    """Write weights and counters as they are now over the scratch that was kept."""
    weighing, threshold = overview.profile.weighing, overview.profile.reflection_threshold
    said = {
        "recency_w": weighing.recency,
        "relevance_w": weighing.similarity,
        "importance_w": weighing.importance,
        "recency_decay": weighing.decay,
        "importance_trigger_max": threshold,
    }
    live = DEFAULT | {name: to_number(value) for name, value in said.items() if value is not None}
    live["importance_trigger_curr"] = to_number(live["importance_trigger_max"] - overview.unreflected_importance)
    live["importance_ele_n"] = overview.unreflected_memories
    return Scratch.model_validate((kept if isinstance(kept, dict) else {}) | live)


@dataclass(frozen=True, slots=True)
class NodePlace:
    """The position of a memory: its numbers, its depth, and the numbers of its sources by age."""

    number: int
    of_type: int
    depth: int
    sources: tuple[int, ...] = ()


def to_memories(nodes: Sequence[SavedNode], vectors: Vectors) -> list[NewMemory]:
    """Translate all nodes, in order; evidence goes by position."""
    embeddings = {key: row.tolist() for key, row in vectors.items()}
    memories: list[NewMemory] = []
    places: list[NodePlace] = []
    counts = Counter[str]()
    numbers: dict[str, int] = {}
    for number, node in enumerate(nodes, start=1):
        counts[node.type] += 1
        listed = find_sources(node.filling, numbers)
        numbers[f"node_{number}"] = number
        sources = tuple(sorted(set(listed)))
        above = max((places[source - 1].depth for source in sources), default=0)
        depth = 1 + above if node.type == "thought" else 0
        places.append(NodePlace(number, counts[node.type], depth, sources))
        plain = replace(to_memory(node, sources), embedding=embeddings.get(node.embedding_key))
        order = [sources.index(source) for source in listed]
        memories.append(replace(plain, metadata=keep(node, derive(plain, places[-1], order), order)))
    return memories


def find_sources(filling: JSON, numbers: Mapping[str, int]) -> list[int]:
    """Read the numbers of earlier nodes; anything else is no evidence."""
    named = filling if isinstance(filling, list) else []
    found = [numbers[name] for name in named if isinstance(name, str) and name in numbers]
    return found if len(found) == len(named) else []


def to_memory(node: SavedNode, sources: tuple[int, ...]) -> NewMemory:
    """Translate one node, as far as there are fields for it."""
    return NewMemory(
        content=node.description,
        kind=Kind(node.type),
        importance=min(max(float(node.poignancy), 1.0), 10.0),
        triple=Triple(to_line(node.subject), to_line(node.predicate), to_line(node.object)),
        keywords=tuple(to_line(keyword) for keyword in node.keywords),
        occurred_at=datetime.strptime(node.created, MOMENT).replace(tzinfo=UTC),
        evidence=tuple(source - 1 for source in sources),
        embedding_text="" if node.embedding_key == node.description else node.embedding_key[:MAX_EMBEDDED_LENGTH],
    )


def to_line(text: str) -> str:
    """Bring a short text to one line of bounded length; models wrote some with line breaks in them."""
    return BREAKS.sub(" ", text)[:MAX_PART_LENGTH]


def keep(node: SavedNode, derived: Mapping[str, JSON], order: list[int]) -> dict[str, JSON]:
    """Keep what the way back could not compute, and keywords always: they are normalised here."""
    absent = object()
    written = node.model_dump()
    kept = {name: value for name, value in written.items() if derived.get(name, absent) != value}
    kept["keywords"] = written["keywords"]
    if order != sorted(set(order)):
        kept[ORDER] = order
    return {OURS: kept}


def to_nodes(memories: Sequence[Memory]) -> list[SavedNode]:
    """Translate all memories of the three kinds back, renumbered in the order of writing."""
    numbers: dict[UUID, int] = {}
    counts = Counter[Kind]()
    nodes: list[SavedNode] = []
    for memory in memories:
        if memory.kind not in KINDS:
            continue
        counts[memory.kind] += 1
        numbers[memory.id] = len(numbers) + 1
        sources = sorted(numbers[source] for source in memory.evidence if source in numbers)
        place = NodePlace(numbers[memory.id], counts[memory.kind], memory.depth, tuple(sources))
        nodes.append(to_node(memory, place))
    return nodes


def to_node(memory: Memory, place: NodePlace) -> SavedNode:
    """Translate one memory back."""
    kept = kept_of(memory.metadata)
    listed = kept.pop(ORDER, None)
    order = [index for index in listed if isinstance(index, int)] if isinstance(listed, list) else []
    return SavedNode.model_validate(derive(memory, place, order) | kept)


def kept_of(metadata: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return a copy of the data that an import stored; empty if there is none."""
    kept = metadata.get(OURS)
    return dict(kept) if isinstance(kept, dict) else {}


def derive(memory: NewMemory | Memory, place: NodePlace, order: Sequence[int] = ()) -> dict[str, JSON]:
    """Compute the fields of a node by the original's own rules."""
    created = (memory.occurred_at or UNKNOWN).astimezone(UTC)
    thought = memory.kind is Kind.THOUGHT
    expiration = (created + THOUGHT_LIFETIME).strftime(MOMENT) if thought else None
    description = f"{memory.speaker}: {memory.content}" if memory.speaker else memory.content
    return {
        "node_count": place.number,
        "type_count": place.of_type,
        "type": memory.kind.value,
        "depth": place.depth,
        "created": created.strftime(MOMENT),
        "expiration": expiration,
        "subject": memory.triple.subject,
        "predicate": memory.triple.predicate,
        "object": memory.triple.object,
        "description": description,
        "embedding_key": memory.embedding_text or description,
        "poignancy": to_number(memory.importance or 0.0),
        "keywords": list(memory.keywords),
        "filling": list_sources(place.sources, order) or (None if thought else []),
    }


def list_sources(sources: Sequence[int], order: Sequence[int]) -> list[JSON]:
    """Name sources in the order that was kept, or by age."""
    places = order if set(order) == set(range(len(sources))) else range(len(sources))
    return [f"node_{sources[place]}" for place in places]


def to_number(value: float) -> int | float:
    """Write a whole number as one."""
    return int(value) if value == int(value) else value


def count_strengths(nodes: Sequence[SavedNode]) -> Strengths:
    """Count keywords as the original does: lower-cased, without the nodes that say that something is idle."""
    counts = {"event": Counter[str](), "thought": Counter[str]()}
    for node in nodes:
        if node.type in counts and f"{node.predicate} {node.object}" not in IDLE:
            counts[node.type].update(keyword.lower() for keyword in node.keywords)
    return Strengths(kw_strength_event=dict(counts["event"]), kw_strength_thought=dict(counts["thought"]))
