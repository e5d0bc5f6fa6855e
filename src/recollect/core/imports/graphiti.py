"""Parse a graph of Graphiti: episodes, entities, and facts with their valid times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from recollect.core.imports.parsed import (
    FACTS,
    MALFORMED,
    MEMORIES,
    TWICE,
    ImportedData,
    Owner,
    ParsedFactEntry,
    ParsedMemory,
)
from recollect.core.imports.text import cut, note, to_fields, to_line, to_list, to_moment, to_text
from recollect.core.memories.checks import MAX_CONTENT_LENGTH, MAX_PART_LENGTH
from recollect.errors import InvalidInputError
from recollect.models.imports import UserField
from recollect.models.knowledge import EntityType, NewFact
from recollect.models.memories import JSON, Kind, NewMemory, Triple

OURS = "graphiti"
EXPECTED = (
    'Not a Graphiti export. Graphiti has no export command: write {"episodes": [...], "nodes": [...], "edges": '
    '[...]} with `model_dump(mode="json")` of each object.'
)
NAMES = {
    "episodes": ("episodes", "episodic_nodes"),
    "nodes": ("nodes", "entity_nodes", "entities"),
    "edges": ("edges", "entity_edges", "facts"),
}
BACKWARDS = "facts that end before they start: imported without a start"
UNSUMMED = "entities without a summary: imported through their facts only"
COMMUNITIES = "communities: skipped"
TYPES = {
    "person": EntityType.PERSON, "user": EntityType.PERSON, "location": EntityType.PLACE, "place": EntityType.PLACE,
    "organization": EntityType.ORGANIZATION, "company": EntityType.ORGANIZATION, "product": EntityType.PRODUCT,
    "skill": EntityType.SKILL, "activity": EntityType.ACTIVITY, "event": EntityType.EVENT,
    "emotion": EntityType.EMOTION, "object": EntityType.THING, "thing": EntityType.THING,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """An entity as an end of a fact."""

    name: str
    type: EntityType | None = None


def parse_graphiti(document: JSON) -> ImportedData:
    """Parse a whole graph."""
    data = ImportedData()
    fields = to_fields(document)
    chosen = {part: find_list(fields, names) for part, names in NAMES.items()}
    if all(entries is None for entries in chosen.values()):
        raise InvalidInputError(EXPECTED)
    for entry in once(chosen["episodes"], MEMORIES, data):
        read_episode(entry, OURS, own(entry), data)
    read_graph(chosen["nodes"], chosen["edges"], OURS, own, data)
    data.remarks[COMMUNITIES] += len(to_list(fields.get("communities")))
    return data


def find_list(fields: Mapping[str, JSON], names: Iterable[str]) -> list[JSON] | None:
    """Find a list under one of its names; None if there is none."""
    return next((entries for name in names if isinstance(entries := fields.get(name), list)), None)


def once(entries: list[JSON] | None, thing: str, data: ImportedData) -> Iterable[Mapping[str, JSON]]:
    """Yield every entry that has an ID, without duplicates."""
    known: set[str] = set()
    for entry in map(to_fields, entries or ()):
        key = identify(entry)
        if not key or key in known:
            data.count_skipped(thing, TWICE if key else MALFORMED)
            continue
        known.add(key)
        yield entry


def identify(entry: Mapping[str, JSON]) -> str:
    """Return the ID of an entry."""
    return to_text(entry.get("uuid")) or to_text(entry.get("uuid_"))


def own(entry: Mapping[str, JSON]) -> Owner:
    """Return the owner."""
    group = to_text(entry.get("group_id"))
    return {UserField.GROUP_ID: group} if group else {}


def read_episode(entry: Mapping[str, JSON], ours: str, owner: Owner, data: ImportedData) -> None:
    """Parse an episode as an event at its own time."""
    remarks = data.remarks
    text = to_text(entry.get("content"))
    if not text.strip():
        data.count_skipped(MEMORIES, MALFORMED)
        return
    told: dict[str, JSON] = {
        field: to_line(to_text(entry.get(field)), remarks) for field in ("name", "source", "source_description")
    }
    more = entry.get("episode_metadata") or entry.get("metadata")
    times = (entry.get(field) for field in ("valid_at", "reference_time", "created_at"))
    memory = NewMemory(
        text,
        Kind.EVENT,
        speaker=to_line(to_text(entry.get("role_name")) or to_text(entry.get("role")), remarks),
        occurred_at=next((moment for value in times if (moment := to_moment(value, remarks))), None),
        metadata=note(ours, told, {"metadata": more}, remarks),
    )
    data.add_memory(ParsedMemory(to_line(identify(entry), remarks), memory, owner))


def read_graph(
    nodes: list[JSON] | None,
    edges: list[JSON] | None,
    ours: str,
    whose: Callable[[Mapping[str, JSON]], Owner],
    data: ImportedData,
) -> None:
    """Parse entities and the facts between them."""
    entities: dict[str, NamedEntity] = {}
    for node in once(nodes, MEMORIES, data):
        entities[identify(node)] = name_entity(node, data)
        read_summary(node, ours, whose(node), data)
    for edge in once(edges, FACTS, data):
        read_edge(edge, entities, ours, whose(edge), data)


def name_entity(node: Mapping[str, JSON], data: ImportedData) -> NamedEntity:
    """Return the name of an entity, and its type if its labels show it."""
    return NamedEntity(to_line(to_text(node.get("name")), data.remarks), sort_entity(node.get("labels")))


def sort_entity(labels: JSON) -> EntityType | None:
    """Return the type of the first label that is known."""
    words = (to_text(label).lower() for label in to_list(labels))
    return next((TYPES[word] for word in words if word in TYPES), None)


def read_summary(node: Mapping[str, JSON], ours: str, owner: Owner, data: ImportedData) -> None:
    """Add the summary of an entity as a memory."""
    summary, name = to_text(node.get("summary")).strip(), to_line(to_text(node.get("name")), data.remarks)
    if not summary:
        data.remarks[UNSUMMED] += 1
        return
    more: dict[str, JSON] = {"labels": node.get("labels"), "attributes": node.get("attributes")}
    memory = NewMemory(
        f"{name}: {summary}",
        Kind.THOUGHT,
        keywords=(name,) if name else (),
        occurred_at=to_moment(node.get("created_at"), data.remarks),
        metadata=note(ours, {}, more, data.remarks),
    )
    data.add_memory(ParsedMemory(f"node:{to_line(identify(node), data.remarks)}", memory, owner))


def read_edge(
    edge: Mapping[str, JSON], entities: Mapping[str, NamedEntity], ours: str, owner: Owner, data: ImportedData
) -> None:
    """Parse a fact. It also gets a memory, to be stored if an end is missing."""
    remarks = data.remarks
    subject, object_ = (find_end(edge, side, entities, data) for side in ("source", "target"))
    predicate = to_line(to_text(edge.get("name")), remarks, MAX_PART_LENGTH)
    text = to_text(edge.get("fact")).strip() or " ".join(filter(None, (subject.name, predicate, object_.name)))
    if not text:
        data.count_skipped(FACTS, MALFORMED)
        return
    said_at, valid_at, invalid_at = date_edge(edge, data)
    text = cut(text, MAX_CONTENT_LENGTH, remarks)
    fact = NewFact(
        subject.name, predicate, object_.name, text, subject.type, object_.type,
        valid_at=valid_at, invalid_at=invalid_at, occurred_at=said_at,
    )  # fmt: skip
    sources = [*to_list(edge.get("episodes")), *to_list(edge.get("episode_uuids"))]
    told: dict[str, JSON] = {field: to_text(edge.get(field))[:40] for field in ("created_at", "expired_at")}
    noted = note(ours, told, {"attributes": edge.get("attributes")}, remarks)
    key = to_line(identify(edge), remarks)
    data.add_fact(ParsedFactEntry(key, fact, tuple(map(to_text, sources)), fact_as_memory(fact, noted), owner))


def find_end(
    edge: Mapping[str, JSON], side: str, entities: Mapping[str, NamedEntity], data: ImportedData
) -> NamedEntity:
    """Find an end of a fact: among the entities, or by the names in the edge."""
    found = entities.get(to_text(edge.get(f"{side}_node_uuid")))
    if found is not None and found.name:
        return found
    name = to_line(to_text(edge.get(f"{side}_node_name")), data.remarks)
    return NamedEntity(name, sort_entity(edge.get(f"{side}_node_labels")))


def date_edge(edge: Mapping[str, JSON], data: ImportedData) -> tuple[datetime | None, datetime | None, datetime | None]:
    """Return when a fact was stated, and its valid time; `expired_at` counts as its end if there is no other."""
    remarks = data.remarks
    fields = ("created_at", "valid_at", "invalid_at", "expired_at")
    said_at, valid_at, invalid_at, expired_at = (to_moment(edge.get(field), remarks) for field in fields)
    invalid_at = invalid_at or expired_at
    if valid_at is not None and invalid_at is not None and invalid_at <= valid_at:
        remarks[BACKWARDS] += 1
        valid_at = None
    return said_at, valid_at, invalid_at


def fact_as_memory(fact: NewFact, noted: Mapping[str, JSON]) -> NewMemory:
    """Convert a fact to a memory that expires when the fact ends."""
    times: dict[str, JSON] = {
        field: moment.isoformat() for field in ("valid_at", "invalid_at") if (moment := getattr(fact, field))
    }
    system = next(iter(noted), OURS)
    triple = Triple(str(fact.subject), fact.predicate, str(fact.object))
    memory = NewMemory(fact.text, Kind.THOUGHT, triple=triple, occurred_at=fact.occurred_at)
    memory = replace(memory, metadata={system: {**to_fields(noted.get(system)), **times}})
    if fact.invalid_at is None:
        return memory
    late = fact.occurred_at is not None and fact.invalid_at <= fact.occurred_at
    return replace(memory, expires_at=fact.invalid_at, occurred_at=fact.valid_at if late else fact.occurred_at)
