"""Reading of exports: a manifest and its lines are read as they were written, and all else is refused in words."""

from __future__ import annotations

import json
from collections.abc import Iterator

from attacks.fuzz.edits import Choices, edit, write
from recollect.core.imports import manifest
from recollect.core.imports.lines import read_memories
from recollect.core.imports.manifest import ExportedScope, Manifest, SectionFile, check_size, write_manifest
from recollect.core.imports.sections import KNOWN
from recollect.core.memories.checks import MOST_EVIDENCE, check_new_memory
from recollect.errors import InvalidInputError
from recollect.models.service import EmbeddingSpace

WATCHED = "recollect.core.imports recollect.core.memories.checks recollect.core.text.checks"
HELD = {name: SectionFile(2, 100, "ab" * 32) for name in sorted(KNOWN)[:4]} | {"vectors/1": SectionFile(1, 9, "")}
WHOLE = Manifest(
    (ExportedScope("scopes/1", "ada", "li", HELD), ExportedScope("scopes/2", "阿信", "", {})),
    (EmbeddingSpace(1, "all-MiniLM-L6-v2", 384, "half", ""),),
)
FIRST, SECOND = "0197f1c2-0000-7000-8000-000000000001", "0197f1c2-0000-7000-8000-000000000002"
MEMORY = {
    "id": FIRST, "withheld": None, "content": "Li likes tea.", "kind": "event", "speaker": "Li", "importance": 3,
    "importance_from": "caller", "subject": "Li", "predicate": "likes", "object": "tea", "idle": False,
    "keywords": ["tea"], "occurred_at": "2026-01-31T12:00:00+00:00", "embedding_text": "", "metadata": {"a": 1},
    "expires_at": None, "trust": 50,
}  # fmt: skip
SECTIONS = (
    [MEMORY, MEMORY | {"id": SECOND, "withheld": "archived", "expires_at": "2030-01-01T00:00:00Z"}],
    [{"id": FIRST, "pinned": True}, {"id": SECOND, "pinned": False}],
    [{"memory_id": SECOND, "source_id": FIRST}],
)
AS_BYTES, AS_LINES, OF_MEMORIES, BROKEN = 0, 1, 2, 3


def list_seeds() -> Iterator[bytes]:
    yield bytes([AS_BYTES, 0]) + write_manifest(WHOLE)
    yield bytes([AS_LINES, 0]) + write(MEMORY)
    yield bytes([AS_BYTES, 0]) + b"[" * 2_000
    for kind in (OF_MEMORIES, BROKEN):
        yield bytes([kind, 0])
        yield bytes([kind, 0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0])


def check(data: bytes) -> None:
    choices = Choices(data)
    kind = choices.number(4)
    try:
        if kind == AS_BYTES:
            check_manifest(choices.rest())
        elif kind == AS_LINES:
            check_lines([choices.rest()], [], [])
        elif kind == OF_MEMORIES:
            sections = [edit(rows, choices) for rows in SECTIONS]
            check_lines(*([write(row) for row in rows] if isinstance(rows, list) else [] for rows in sections))
        else:
            check_manifest(write(edit(json.loads(write_manifest(WHOLE)), choices)))
    except InvalidInputError as problem:
        assert len(str(problem)) < 1_000


def check_manifest(data: bytes) -> None:
    read = manifest.read_manifest(data)
    check_size(read, len(data))
    written = write_manifest(read)
    assert manifest.read_manifest(written) == read
    assert write_manifest(manifest.read_manifest(written)) == written
    assert read.scopes
    for scope in read.scopes:
        assert isinstance(scope.folder, str)
        assert all(held.lines >= 0 and held.bytes >= 0 for held in scope.sections.values())


def check_lines(memories: list[bytes], features: list[bytes], evidence: list[bytes]) -> None:
    read = list(read_memories(memories, features, evidence))
    assert len(read) == len(memories)
    for each in filter(None, read):
        check_new_memory(each.memory)
        assert each.trust >= 0
        assert len(each.sources) <= MOST_EVIDENCE


def plant() -> None:
    """Believe a manifest whatever it says of its sections."""
    manifest.check_manifest = lambda _: None
