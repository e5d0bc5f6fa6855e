"""Manifests and lines of an export: read as they were written, and refused in words where they are damaged."""

from __future__ import annotations

import io
import json

import pytest

from recollect.core.conversations import appends
from recollect.core.imports import rows
from recollect.core.imports.lines import read_memories
from recollect.core.imports.manifest import (
    FREE_BYTES,
    MAX_EXPANSION,
    PIECE,
    ExportedScope,
    Manifest,
    SectionFile,
    check_size,
    read_scopes,
    read_spaces,
    write_manifest,
)
from recollect.core.imports.rows import RowCheck
from recollect.core.imports.sections import KNOWN, VECTORS, is_section
from recollect.core.memories import checks
from recollect.core.text.terms import TERM_BITS
from recollect.errors import InvalidInputError
from recollect.models.conversations import PartType
from recollect.models.memories import FadeReason, Kind, Role
from recollect.models.recall import Status
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


WRITTEN = b"".join(write_manifest(WHOLE))


def read_manifest(text):
    """Read a manifest as a check does, from a stream."""
    spaces = read_spaces(io.TextIOWrapper(io.BytesIO(text), "utf-8"))
    return Manifest(tuple(read_scopes(io.TextIOWrapper(io.BytesIO(text), "utf-8"))), spaces)


def damage(*path, value):
    """Write the manifest with another value in one place."""
    whole = json.loads(WRITTEN)
    place = whole
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return json.dumps(whole).encode()


def test_a_manifest_is_read_as_it_was_written():
    assert read_manifest(WRITTEN) == WHOLE


@pytest.mark.parametrize("indent", [None, 1, 7])
def test_a_manifest_is_read_in_pieces_and_in_any_order(indent):
    scopes = [ExportedScope(str(number), f"agent {number}", "", HELD) for number in range(PIECE // 50)]
    value = json.loads(b"".join(write_manifest(Manifest(tuple(scopes), WHOLE.spaces))))
    turned = dict(reversed([*value.items(), ("later", {"scopes": []}), ("number", 12)]))
    written = f" {json.dumps(turned, indent=indent)} ".encode()
    assert len(written) > 3 * PIECE
    assert read_manifest(written) == Manifest(tuple(scopes), WHOLE.spaces)


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
        damage("scopes", 1, value=json.loads(WRITTEN)["scopes"][0] | {"folder": "another"}),
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
    check_size(FREE_BYTES, 1)
    check_size(MAX_EXPANSION * FREE_BYTES, FREE_BYTES)
    for unpacked, packed in ((FREE_BYTES + 1, 1), (MAX_EXPANSION * FREE_BYTES + 1, FREE_BYTES)):
        with pytest.raises(InvalidInputError):
            check_size(unpacked, packed)


def test_sections_have_known_names():
    assert is_section("memories/memories")
    assert is_section("vectors/1")
    for other in ("memories", "vectors/", "vectors/x", "vectors/²", "vectors/٣", "vectors/-1", "access/log"):
        assert not is_section(other)


def test_rows_have_the_bounds_of_writes():
    assert (rows.MAX_CONTENT_LENGTH, rows.MAX_NEW_LENGTH) == (appends.MAX_MESSAGE_LENGTH, checks.MAX_CONTENT_LENGTH)
    assert rows.MAX_METADATA_BYTES >= 2 * checks.MAX_METADATA_BYTES
    assert rows.FIELDS.keys() == KNOWN | {VECTORS}
    for kind, known in (("kind", Kind), ("role", Role), ("grounds", FadeReason), ("status", Status)):
        assert all(rows.TYPES[kind](each.value) for each in known)
        assert not rows.TYPES[kind]("boss")
    assert all(rows.TYPES["parts"]([{"type": each.value}]) for each in PartType)
    assert rows.TYPES["terms"]([(1 << TERM_BITS) - 1])
    assert not rows.TYPES["terms"]([1 << TERM_BITS])


ROW = MEMORY | {
    "depth": 0, "origin": "library", "created_at": "2026-01-31T12:00:00+00:00", "revived_at": None,
}  # fmt: skip


def check(row, section="memories/memories", trust=100):
    written = row if isinstance(row, bytes) else json.dumps(row).encode()
    return RowCheck(section, trust).check(written, 2)


def test_a_row_is_read_and_what_is_unknown_of_it_is_noted():
    assert check(ROW) == ROW
    checking = RowCheck("memories/memories", 100)
    for _ in range(2):
        checking.check(json.dumps(ROW | {"later": [1]}).encode(), 1)
    assert checking.unknown == {"later": 2}
    assert check({name: value for name, value in ROW.items() if name != "expires_at"})


def test_a_block_holds_new_memories():
    given = ROW | {"pinned": True, "sources": [0, 1]}
    other = given | {"trust": 5, "pinned": False, "sources": []}
    first, second = read_memories(json.dumps([given, other]).encode())
    assert (first.memory.content, first.trust, first.memory.pinned, first.sources) == (
        "Li likes tea.",
        50,
        True,
        (0, 1),
    )
    assert (second.trust, second.memory.pinned, second.sources) == (5, False, ())
    with pytest.raises(InvalidInputError, match="after occurred_at"):
        list(read_memories(json.dumps([given | {"expires_at": given["occurred_at"]}]).encode()))


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"[]", b"7", b"[" * 100_000),
        *({"trust": float("inf")}, {"content": 7}, {"occurred_at": "2026-01-31T12:00:00"}, {"kind": "deed"}),
        *({"importance": 10**400}, {"keywords": 5}, {"metadata": [1]}, {"id": "x"}, {"speaker": None}),
        *({"occurred_at": "infinity"}, {"created_at": "20000-01-01T00:00:00Z"}, {"speaker": "s" * 3_000}),
        *({"keywords": [None]}, {"metadata": 5}, {"content": "x" * 40_000}, {"content": "\ud800"}, {"trust": True}),
    ],
    ids=lambda _: "",
)
def test_a_damaged_line_is_named(line):
    with pytest.raises(InvalidInputError, match="memories/memories, line 2"):
        check(line if isinstance(line, bytes) else ROW | line)


def test_a_row_has_at_most_the_trust_of_its_importer():
    assert check(ROW, trust=50)
    with pytest.raises(InvalidInputError, match="trust"):
        check(ROW, trust=49)
