"""No list forgets a field of a memory: what is asked reaches the store, the fingerprint, the checks and the file."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, make_dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from pydantic import ValidationError
from pydantic_core import to_json

from recollect.client import bodies
from recollect.core.memories.checks import check_new_memory
from recollect.core.memories.ids import fingerprint
from recollect.doors.http.bodies.fields import build
from recollect.doors.http.bodies.memories import MemoryBody
from recollect.doors.imports import jsonl
from recollect.errors import InvalidInputError
from recollect.models.memories import ImportanceFrom, Kind, Memory, NewMemory, RecallState, Triple
from recollect.models.service import Caller, Scope
from recollect.models.topics import LinkStrength
from recollect.store.knowledge.facts import to_version
from recollect.store.memories.columns import COLUMNS, FEATURES
from recollect.store.memories.memories import Source, to_memory
from recollect.store.service.scopes import LockedScope
from recollect.verbs.memories.rows import Write, assign, prepare_all

MOMENT, LATER = datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)
FIRST, SECOND = UUID(int=1), UUID(int=2)
BASE = NewMemory("a", importance=5.0, topic="travel", embedding=(1.0, 2.0))


@dataclass(frozen=True, slots=True)
class Example:
    """Another value of a field, what is refused of it, and where it is stored if in no column."""

    other: object
    refused: object = None
    stored_in: str = ""


EXAMPLES = {
    "content": Example("b", ""),
    "kind": Example(Kind.THOUGHT),
    "speaker": Example("Ann", "two\nlines"),
    "importance": Example(7.0, 11.0),
    "triple": Example(Triple("Ann", "drinks", "tea"), Triple("two\nlines")),
    "idle": Example(True),
    "keywords": Example(("tea",), ("two\nlines",)),
    "occurred_at": Example(MOMENT, datetime(2024, 1, 1)),  # noqa: DTZ001 - that is what is refused
    "evidence": Example((FIRST,), (FIRST,) * 257, stored_in="evidence"),
    # The checks do not know the dimensions of the space; where they are known, vectors are checked.
    "embedding": Example((1.0, 3.0), stored_in="vectors"),
    "embedding_text": Example("a better text", "\0"),
    "metadata": Example({"a": 1}, {"a": "\0"}),
    "expires_at": Example(LATER, datetime(2025, 1, 1)),  # noqa: DTZ001 - that is what is refused
    "pinned": Example(True),
    "importance_from": Example(ImportanceFrom.MODEL),
    "topic": Example("work", "->", stored_in="topic_links"),
    "related_topics": Example(("work",), ("->",), stored_in="topic_links"),
    "reach": Example(LinkStrength(0.1, 0.2, 0.3), LinkStrength(2.0, 0.2, 0.3), stored_in="topic_links"),
}
FOUND = {"length", "tells", "conversation_id", "role", "number"}
"""The features that follow from the rest of a memory, or from its place: no read gives them back under these names."""
FREE = {"kind", "idle", "embedding", "pinned", "importance_from"}
"""What the checks have nothing to say about."""
DERIVED = {"id", "kind", "idle", "depth", "trust"}
"""The columns that a further version of a fact does not take over from the one before."""
DECIDED = {"id", "trust", "depth"}
"""The columns that the service decides alone."""
Wider = make_dataclass("Wider", [("mood", str, "calm")], bases=(NewMemory,), frozen=True)
"""What a memory would be with one more field."""


def to_columns(memory):
    """Give what the columns of a memory hold, without those that the service decides."""
    write = Write(Caller(1, frozenset(), "test", 90), Scope(1, "ada", "li"), prepare_all([memory]), None, "", b"")
    sources: dict[UUID | int, Source] = {FIRST: Source(FIRST, 80, 1)}
    [row] = assign(write, LockedScope(1, 0, 0, MOMENT + timedelta(days=1), 0.0, 0), sources)
    values = {column.name: column.value(row) for column in (*COLUMNS, *FEATURES)}
    return {
        name: getattr(value, "obj", value) for name, value in values.items() if name not in {"id", "trust", "depth"}
    }


def find_unwritten(memory, examples):
    """List the fields that reach no column."""
    usual = to_columns(memory)
    return {
        name
        for name in (field.name for field in fields(memory))
        if name not in examples or to_columns(replace(memory, **{name: examples[name].other})) == usual
    }


def test_every_field_has_an_example():
    assert set(EXAMPLES) == {field.name for field in fields(NewMemory)}


def test_every_field_is_written():
    elsewhere = {name for name, example in EXAMPLES.items() if example.stored_in}
    assert find_unwritten(BASE, EXAMPLES) == elsewhere


def test_a_field_that_no_column_takes_is_noticed():
    wider = Wider("a", importance=5.0, topic="travel", embedding=(1.0, 2.0))
    unwritten = find_unwritten(wider, EXAMPLES | {"mood": Example("glad")})
    assert unwritten - find_unwritten(BASE, EXAMPLES) == {"mood"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_field_is_in_the_fingerprint(name):
    assert fingerprint([replace(BASE, **{name: EXAMPLES[name].other})]) != fingerprint([BASE])


def test_a_new_field_is_in_the_fingerprint_where_it_says_something():
    assert fingerprint([Wider("a")]) == fingerprint([NewMemory("a")])
    assert len({fingerprint([Wider("a", mood=mood)]) for mood in ("calm", "glad", "sad")}) == 3


def test_fingerprints_that_are_stored_stay_valid():
    full = replace(BASE, **{name: example.other for name, example in EXAMPLES.items()})
    assert fingerprint([NewMemory("a")]).hex() == "6ed8df46a1941f3d9230cd8748102181f82d828d6a5ce0ddc62bc868064563e9"
    assert fingerprint([full]).hex() == "2dddd482697d80ead79617bb67932dcc6b0432ebc738ed680365fcb3afbf4961"


@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - FREE))
def test_every_field_is_checked(name):
    check_new_memory(replace(BASE, **{name: EXAMPLES[name].other}))
    with pytest.raises(InvalidInputError):
        check_new_memory(replace(BASE, **{name: EXAMPLES[name].refused}))


ROW = {
    "id": FIRST, "kind": "fact", "content": "Ann drinks tea", "speaker": "Ann", "importance": 7.0,
    "importance_from": "model", "subject": "Ann", "predicate": "drinks", "object": "tea", "idle": False, "depth": 0,
    "keywords": ["tea"], "trust": 80, "occurred_at": MOMENT, "embedding_text": "tea", "metadata": {"a": 1},
    "expires_at": LATER, "pinned": True,
}  # fmt: skip
"""A value for every column, each unlike what a field has if nothing is said."""


def test_every_column_has_a_value_here():
    assert set(ROW) == {column.name for column in (*COLUMNS, *FEATURES)} - FOUND


def flatten(memory):
    """Give a memory's fields by the names of columns."""
    found = {field.name: getattr(memory, field.name) for field in fields(memory)}
    found |= {"subject": memory.triple.subject, "predicate": memory.triple.predicate, "object": memory.triple.object}
    return {**found, "keywords": list(memory.keywords)}


def read_memory():
    beside = {"origin": "test", "created_at": MOMENT, "last_accessed_at": LATER, "evidence": [SECOND]}
    said = {"conversation": "talk", "role": "user", "belief": (MOMENT, LATER, LATER, MOMENT), "withheld": "past"}
    return to_memory({**ROW, **beside, **said}), beside | {"conversation": "talk", "role": "user"}


def test_every_column_is_read():
    memory, beside = read_memory()
    assert flatten(memory).items() >= {**ROW, **beside, "evidence": (SECOND,)}.items()
    assert (memory.valid_at, memory.invalid_at, memory.superseded_at) == (MOMENT, LATER, LATER)
    assert memory.state is RecallState.PAST


def test_a_further_version_of_a_fact_says_what_the_one_before_says():
    belief = {"lineage": FIRST, "subject_id": FIRST, "object_id": SECOND, "version": 1, "created_at": MOMENT}
    dates = {"valid_at": None, "invalid_at": None, "superseded_at": None, "stated": "drinks"}
    version = to_version({**ROW, **belief, **dates, "withheld": None, "hidden": False, "every_id": []})
    expected = {name: value for name, value in ROW.items() if name not in DERIVED}
    assert flatten(version.memory).items() >= expected.items()


def test_every_field_that_a_line_can_hold_is_exported():
    memory, _ = read_memory()
    line = json.loads(jsonl.to_line(replace(memory, kind=Kind.THOUGHT, idle=True), {SECOND}))
    shared = jsonl.ExportLine.model_fields.keys() & {*(field.name for field in fields(Memory)), *ROW}
    assert line.keys() == shared


def find_unexported(kind):
    """List the fields that a memory keeps and no line of an export holds."""
    kept = {field.name for field in fields(kind)} & {*(field.name for field in fields(Memory)), "mood"}
    flat = kept - {"triple"} | ({"subject", "predicate", "object"} if "triple" in kept else set())
    return flat - jsonl.ExportLine.model_fields.keys()


def test_an_export_holds_every_field_that_is_kept():
    assert find_unexported(NewMemory) == set()


def test_a_field_that_no_export_holds_is_noticed():
    assert find_unexported(Wider) == {"mood"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_field_travels_to_a_server(name):
    memory = replace(BASE, **{name: EXAMPLES[name].other})
    taken = build(NewMemory, MemoryBody.model_validate_json(to_json(bodies.flatten(memory))))
    assert replace(taken, embedding=tuple(taken.embedding)) == memory


def test_a_field_that_no_body_takes_is_noticed():
    with pytest.raises(ValidationError, match="mood"):
        MemoryBody.model_validate(bodies.flatten(Wider("a", mood="glad")))
