"""Manifests and lines of an export: read as they were written, and refused in words where they are damaged."""

from __future__ import annotations

import json

import pytest

from recollect.core.imports.lines import read_memories
from recollect.core.imports.manifest import (
    MOST_EXPANSION,
    ExportedScope,
    Manifest,
    SectionFile,
    check_size,
    read_manifest,
    write_manifest,
)
from recollect.core.imports.sections import is_section
from recollect.errors import InvalidInputError
from recollect.models.service import EmbeddingSpace

HELD = {"memories/memories": SectionFile(2, 600, "ab" * 32), "vectors/12": SectionFile(0, 0, "")}
WHOLE = Manifest(
    (ExportedScope("scopes/1", "ada", "li", HELD), ExportedScope("scopes/2", "阿信", "", {})),
    (EmbeddingSpace(12, "all-MiniLM-L6-v2", 384, "", "single"),),
)
MEMORY = {
    "id": "0197f1c2-0000-7000-8000-000000000001", "withheld": None, "content": "Li likes tea.", "kind": "event",
    "speaker": "Li", "importance": 3, "importance_from": "caller", "subject": "Li", "predicate": "likes",
    "object": "tea", "idle": False, "keywords": ["tea"], "occurred_at": "2026-01-31T12:00:00+00:00",
    "embedding_text": "", "metadata": {}, "expires_at": None, "trust": 50,
}  # fmt: skip


def damage(*path, value):
    """Write the manifest with another value in one place."""
    whole = json.loads(write_manifest(WHOLE))
    place = whole
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return json.dumps(whole).encode()


def test_a_manifest_is_read_as_it_was_written():
    assert read_manifest(write_manifest(WHOLE)) == WHOLE


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"[]", b"\xff", b"null", b'{"format": 1}', b"[" * 100_000),
        damage("version", value=10**4000),
        damage("spaces", 0, "dimensions", value="384"),
        damage("spaces", 0, "id", value=1.5),
        damage("spaces", 0, "model", value=None),
        damage("scopes", value=[]),
        damage("scopes", value=7),
        damage("scopes", 0, "agent", value=7),
        damage("scopes", 0, "user", value=["li"]),
        damage("scopes", 0, "folder", value=None),
        damage("scopes", 0, "sections", value=["memories/memories"]),
        damage("scopes", 0, "sections", "memories/memories", "lines", value=float("inf")),
        damage("scopes", 0, "sections", "memories/memories", "bytes", value=-1),
        damage("scopes", 0, "sections", "memories/memories", "sha256", value=0),
        damage("scopes", 1, "folder", value="scopes/1"),
        damage("scopes", 1, value=json.loads(write_manifest(WHOLE))["scopes"][0] | {"folder": "another"}),
        damage("spaces", 0, "model", value="half of a sign: \ud800"),
        damage("scopes", 0, "folder", value="scopes/\0"),
        damage("scopes", 1, "sections", value={"\udfff": {"lines": 0, "bytes": 0, "sha256": ""}}),
        damage("scopes", 1, "sections", value={"unknown" * 100: {"lines": 0, "bytes": 0, "sha256": ""}}),
        damage("scopes", 1, "sections", value={"vectors/²": {"lines": 0, "bytes": 0, "sha256": ""}}),
    ],
    ids=lambda _: "",
)
def test_a_damaged_manifest_is_refused_in_words(text):
    with pytest.raises(InvalidInputError) as refused:
        read_manifest(text)
    assert len(str(refused.value).encode()) < 300


def test_an_export_grows_within_measure():
    size = sum(each.bytes for each in HELD.values())
    check_size(WHOLE, size // MOST_EXPANSION)
    with pytest.raises(InvalidInputError):
        check_size(WHOLE, size // MOST_EXPANSION - 1)


def test_sections_have_known_names():
    assert is_section("memories/memories")
    assert is_section("vectors/1")
    for other in ("memories", "vectors/", "vectors/x", "vectors/²", "vectors/٣", "vectors/-1", "access/log"):
        assert not is_section(other)


def test_lines_are_memories_with_what_other_sections_say_of_them():
    other = MEMORY | {"id": MEMORY["id"][:-1] + "2", "withheld": "archived", "trust": -5}
    gone = MEMORY | {"id": MEMORY["id"][:-1] + "3", "withheld": "faded"}
    memories = [json.dumps(row).encode() for row in (MEMORY, other, gone)]
    features = [json.dumps({"id": row["id"], "pinned": row is MEMORY}).encode() for row in (MEMORY, other)]
    evidence = [json.dumps({"memory_id": other["id"], "source_id": MEMORY["id"]}).encode()]
    first, second, third = read_memories(memories, features, evidence)
    assert (first.memory.content, first.trust, first.memory.pinned, first.sources) == ("Li likes tea.", 50, True, ())
    assert (second.trust, second.memory.pinned, second.sources) == (0, False, (first.id,))
    assert third is None


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"[]", b"7", b"[" * 100_000),
        *({"trust": float("inf")}, {"content": 7}, {"occurred_at": "2026-01-31T12:00:00"}, {"kind": "deed"}),
        *({"importance": 10**400}, {"keywords": 5}, {"metadata": [1]}, {"id": "x"}, {"speaker": None}),
    ],
    ids=lambda _: "",
)
def test_a_damaged_line_is_named(line):
    written = line if isinstance(line, bytes) else json.dumps(MEMORY | line).encode()
    with pytest.raises(InvalidInputError, match="memories/memories, line 2"):
        list(read_memories([json.dumps(MEMORY).encode(), written], [], []))
