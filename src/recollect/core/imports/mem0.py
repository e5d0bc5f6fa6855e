"""Parse memories of mem0: results of `get_all`, in the library or on the platform, or points of its collection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta

from recollect.core.imports.parsed import MALFORMED, MEMORIES, TWICE, ImportedData, Owner, ParsedFactEntry, ParsedMemory
from recollect.core.imports.text import hash_parts, note, to_fields, to_line, to_list, to_moment, to_text
from recollect.core.memories.checks import MAX_KEYWORDS, MAX_PART_LENGTH
from recollect.errors import InvalidInputError
from recollect.models.imports import UserField
from recollect.models.knowledge import NewFact
from recollect.models.memories import JSON, Kind, NewMemory, Triple

OURS = "mem0"
EXPECTED = (
    "Not a mem0 export. Save the result of `Memory.get_all(...)` or `MemoryClient.get_all(...)` with `json.dump`."
)
LISTS = ("results", "memories", "points")
PROMOTED = {"user_id", "agent_id", "run_id", "actor_id", "role", "expiration_date"}
DERIVED = {"hash", "text_lemmatized", "score", "memory", "data", "id", "metadata", "categories", "category"}
DERIVED |= {"created_at", "updated_at", "attributed_to", "vector"}
OWNERS = (UserField.USER_ID, UserField.AGENT_ID, UserField.RUN_ID)
OVER = "memories already expired: imported as expired"
MOMENT = timedelta(microseconds=1)
"""The minimum lifetime of a memory."""
WHOLE_DAY = len("2030-01-31")


def parse_mem0(document: JSON) -> ImportedData:
    """Parse all memories of a file, and the relations of its graph."""
    data = ImportedData()
    listed = document if isinstance(document, list) else open_page(document)
    if listed is None:
        raise InvalidInputError(EXPECTED)
    known: set[str] = set()
    for each in listed:
        page = open_page(each)
        for entry in [each] if page is None else page:
            read_memory(flatten(to_fields(entry)), known, data)
    for answer in document if isinstance(document, list) else [document]:
        for relation in to_list(to_fields(answer).get("relations")):
            read_relation(to_fields(relation), data)
    return data


def open_page(value: JSON) -> list[JSON] | None:
    """Return the entries of one response of mem0 or Qdrant; None if it is no such response."""
    fields = to_fields(value)
    inner = to_fields(fields.get("result")) or fields
    return next((listed for name in LISTS if isinstance(listed := inner.get(name), list)), None)


def flatten(entry: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Convert a point of Qdrant to the form of `get_all`."""
    payload = entry.get("payload")
    if not isinstance(payload, dict):
        return entry
    named = {field: value for field, value in payload.items() if field in PROMOTED | {"created_at", "updated_at"}}
    rest: dict[str, JSON] = {
        field: value for field, value in payload.items() if field not in PROMOTED | DERIVED or field == "category"
    }
    text = payload.get("data") or payload.get("memory")
    return {**named, "id": entry.get("id"), "memory": text, "metadata": rest}


def read_memory(entry: Mapping[str, JSON], known: set[str], data: ImportedData) -> None:
    """Parse one memory as a thought, because a model worded it."""
    remarks = data.remarks
    text = to_text(entry.get("memory")) or to_text(entry.get("text"))
    identity = entry.get("id")
    key = to_line(str(identity) if isinstance(identity, str | int) else hash_parts(text), remarks)
    if not text.strip():
        data.count_skipped(MEMORIES, MALFORMED)
        return
    owner = owner_of(entry)
    # Without an ID, the same text of two users is two memories.
    name = key if isinstance(identity, str | int) else hash_parts(key, *(owner.get(field, "") for field in OWNERS))
    if name in known:
        data.count_skipped(MEMORIES, TWICE)
        return
    known.add(name)
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
    data.add_memory(ParsedMemory(key, memory, owner))


def to_keywords(words: list[JSON], remarks: Counter[str]) -> tuple[str, ...]:
    """Convert categories to keywords."""
    lines = (to_line(to_text(word), remarks, MAX_PART_LENGTH) for word in words)
    return tuple(dict.fromkeys(filter(None, lines)))[:MAX_KEYWORDS]


def find_expiry(value: JSON, made: datetime | None, remarks: Counter[str]) -> datetime | None:
    """Return when a memory expires; a date means the end of that day.

    A memory that expired before it was made expires immediately.
    """
    moment = to_moment(value, remarks)
    if moment is not None and isinstance(value, str) and len(value.strip()) == WHOLE_DAY:
        moment += timedelta(days=1)
    if moment is None or made is None or moment > made:
        return moment
    remarks[OVER] += 1
    return made + MOMENT


def owner_of(entry: Mapping[str, JSON]) -> Owner:
    """Return the owner."""
    return {field: name for field in OWNERS if (name := to_text(entry.get(field.replace("-", "_"))))}


def read_relation(relation: Mapping[str, JSON], data: ImportedData) -> None:
    """Parse an edge of mem0's graph, which has no time."""
    remarks = data.remarks
    target = relation.get("target") or relation.get("destination")
    parts = (relation.get("source"), relation.get("relationship"), target)
    subject, predicate, object_ = (to_line(to_text(part), remarks) for part in parts)
    fact = NewFact(subject, predicate, object_, text=f"{subject} {predicate.replace('_', ' ')} {object_}".strip())
    key = f"relation:{hash_parts(subject, predicate, object_)}"
    spare = NewMemory(fact.text, Kind.THOUGHT, triple=Triple(subject, predicate, object_))
    data.add_fact(ParsedFactEntry(key, fact, (), spare, owner_of(relation)))
