"""Read memories of mem0: what `get_all` gives, in the library or on the platform, or points of its collection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta

from recollect.core.checks import LONGEST_PART, MOST_KEYWORDS
from recollect.core.import_harvest import MALFORMED, MEMORIES, TWICE, FoundFact, FoundMemory, Harvest, Owner
from recollect.core.import_text import digest, note, to_fields, to_line, to_list, to_moment, to_text
from recollect.errors import InvalidInputError
from recollect.models import JSON, Kind, NewMemory, Triple
from recollect.models.imports import UserField
from recollect.models.knowledge import NewFact

OURS = "mem0"
EXPECTED = (
    "This is no mem0 export. Write what `Memory.get_all(filters=..., top_k=...)` or `MemoryClient.get_all(...)` "
    "returns to a file with `json.dump`."
)
LISTS = ("results", "memories", "points")
PROMOTED = {"user_id", "agent_id", "run_id", "actor_id", "role", "expiration_date"}
DERIVED = {"hash", "text_lemmatized", "score", "memory", "data", "id", "metadata", "categories", "category"}
DERIVED |= {"created_at", "updated_at", "attributed_to", "vector"}
WHOLE_DAY = len("2030-01-31")


def read(document: JSON) -> Harvest:
    """Read all memories of a file, and the relations of a graph beside them."""
    harvest = Harvest()
    fields = to_fields(document)
    inner = to_fields(fields.get("result")) or fields
    entries = document if isinstance(document, list) else next((inner[name] for name in LISTS if name in inner), None)
    if not isinstance(entries, list):
        raise InvalidInputError(EXPECTED)
    known: set[str] = set()
    for entry in entries:
        read_memory(flatten(to_fields(entry)), known, harvest)
    for relation in to_list(fields.get("relations")):
        read_relation(to_fields(relation), harvest)
    return harvest


def flatten(entry: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Give a point of Qdrant the form that `get_all` gives it."""
    payload = entry.get("payload")
    if not isinstance(payload, dict):
        return entry
    named = {field: value for field, value in payload.items() if field in PROMOTED | {"created_at", "updated_at"}}
    rest: dict[str, JSON] = {
        field: value for field, value in payload.items() if field not in PROMOTED | DERIVED or field == "category"
    }
    text = payload.get("data") or payload.get("memory")
    return {**named, "id": entry.get("id"), "memory": text, "metadata": rest}


def read_memory(entry: Mapping[str, JSON], known: set[str], harvest: Harvest) -> None:
    """Read one memory; it is a thought, because a model worded it."""
    remarks = harvest.remarks
    text = to_text(entry.get("memory")) or to_text(entry.get("text"))
    identity = entry.get("id")
    key = to_line(str(identity) if isinstance(identity, str | int) else digest(text), remarks)
    if not text.strip():
        harvest.leave(MEMORIES, MALFORMED)
        return
    if key in known:
        harvest.leave(MEMORIES, TWICE)
        return
    known.add(key)
    metadata = to_fields(entry.get("metadata"))
    categories = [*to_list(entry.get("categories")), *to_list(metadata.get("categories")), metadata.get("category")]
    told: dict[str, JSON] = {field: to_line(to_text(entry.get(field)), remarks) for field in sorted(PROMOTED)}
    made = to_moment(entry.get("created_at"), remarks)
    memory = NewMemory(
        text,
        Kind.THOUGHT,
        speaker=to_line(to_text(entry.get("actor_id")), remarks),
        keywords=to_keywords(categories, remarks),
        occurred_at=made,
        expires_at=find_expiry(entry.get("expiration_date"), made, remarks),
        metadata=note(OURS, told, {"metadata": dict(metadata), "updated_at": entry.get("updated_at")}, remarks),
    )
    harvest.take_memory(FoundMemory(key, memory, own(entry)))


def to_keywords(words: list[JSON], remarks: Counter[str]) -> tuple[str, ...]:
    """File a memory under its categories."""
    lines = (to_line(to_text(word), remarks, LONGEST_PART) for word in words)
    return tuple(dict.fromkeys(filter(None, lines)))[:MOST_KEYWORDS]


def find_expiry(value: JSON, made: datetime | None, remarks: Counter[str]) -> datetime | None:
    """Read until when a memory is recalled; a date means the whole of that day."""
    moment = to_moment(value, remarks)
    if moment is not None and isinstance(value, str) and len(value.strip()) == WHOLE_DAY:
        moment += timedelta(days=1)
    return None if moment is None or (made is not None and moment <= made) else moment


def own(entry: Mapping[str, JSON]) -> Owner:
    """Say whose it is."""
    fields = (UserField.USER_ID, UserField.AGENT_ID, UserField.RUN_ID)
    return {field: name for field in fields if (name := to_text(entry.get(field.replace("-", "_"))))}


def read_relation(relation: Mapping[str, JSON], harvest: Harvest) -> None:
    """Read an edge of mem0's graph, which has no time."""
    remarks = harvest.remarks
    target = relation.get("target") or relation.get("destination")
    parts = (relation.get("source"), relation.get("relationship"), target)
    subject, predicate, object_ = (to_line(to_text(part), remarks) for part in parts)
    fact = NewFact(subject, predicate, object_, text=f"{subject} {predicate.replace('_', ' ')} {object_}".strip())
    key = f"relation:{digest(subject, predicate, object_)}"
    spare = NewMemory(fact.text, Kind.THOUGHT, triple=Triple(subject, predicate, object_))
    harvest.take_fact(FoundFact(key, fact, (), spare, own(relation)))
