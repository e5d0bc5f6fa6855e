"""Reading of exports: a manifest and its lines are read as they were written, and all else is refused in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from io import BytesIO, TextIOWrapper
from uuid import UUID

from attacks.fuzz.edits import Choices, edit, write
from recollect.core.imports import manifest
from recollect.core.imports.lines import read_memories
from recollect.core.imports.manifest import ExportedScope, Manifest, SectionFile, write_manifest
from recollect.core.imports.rows import RowCheck
from recollect.core.imports.sections import KNOWN, is_section
from recollect.core.memories.checks import MAX_EVIDENCE, check_new_memory
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
WRITTEN = b"".join(write_manifest(WHOLE))
ROW = {
    **MEMORY, "depth": 0, "origin": "library", "created_at": "2026-01-31T12:00:00+00:00", "revived_at": None,
    "pinned": True, "sources": [0],
}  # fmt: skip
MESSAGE = {
    "id": FIRST, "conversation_id": "c", "number": 1, "parent_id": None, "turn_id": FIRST, "role": "user",
    "status": "done", "occurred_at": "2026-01-31T12:00:00+00:00", "tokens": {"estimate": 5}, "images": 0,
    "parts": [{"type": "text", "text": "tea"}], "attachments": [{"type": "image", "url": "x"}], "external_id": "",
    "stated_parent": None,
}  # fmt: skip
ROWS = (("memories/memories", ROW), ("conversations/messages", MESSAGE))
AS_BYTES, AS_LINES, OF_ROWS, BROKEN = 0, 1, 2, 3


def list_seeds() -> Iterator[bytes]:
    yield bytes([AS_BYTES, 0]) + WRITTEN
    yield bytes([AS_LINES, 0]) + write(MEMORY)
    yield bytes([AS_BYTES, 0]) + b"[" * 2_000
    for kind in (OF_ROWS, BROKEN):
        yield bytes([kind, 0])
        yield bytes([kind, 0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0])


def check(data: bytes) -> None:
    choices = Choices(data)
    kind = choices.number(4)
    try:
        if kind == AS_BYTES:
            check_manifest(choices.rest())
        elif kind == AS_LINES:
            check_row("memories/memories", choices.rest())
        elif kind == OF_ROWS:
            section, row = choices.one_of(ROWS)
            check_row(section, write(edit(row, choices)))
        else:
            check_manifest(write(edit(json.loads(WRITTEN), choices)))
    except InvalidInputError as problem:
        assert len(str(problem)) < 1_000


def check_manifest(data: bytes) -> None:
    read = read_manifest(data)
    written = b"".join(write_manifest(read))
    assert read_manifest(written) == read
    assert b"".join(write_manifest(read_manifest(written))) == written
    assert read.scopes
    for scope in read.scopes:
        assert isinstance(scope.folder, str)
        assert all(is_section(name) for name in scope.sections)
        assert all(held.lines >= 0 and held.bytes >= 0 for held in scope.sections.values())


def read_manifest(data: bytes) -> Manifest:
    spaces, scopes = (
        read(TextIOWrapper(BytesIO(data), "utf-8")) for read in (manifest.read_spaces, manifest.read_scopes)
    )
    return Manifest(tuple(scopes), tuple(spaces))


def check_row(section: str, line: bytes) -> None:
    row = RowCheck(section, 50).check(line, 1)
    assert UUID(row["id"])
    assert datetime.fromisoformat(row["occurred_at"]).tzinfo
    if section == "memories/memories":
        assert 0 <= row["trust"] <= 50
        for each in read_memories(json.dumps([{**row, "pinned": True, "sources": [0]}]).encode()):
            check_new_memory(each.memory)
            assert len(each.sources) <= MAX_EVIDENCE


def plant() -> None:
    """Believe a manifest whatever it says of its sections."""
    manifest.is_section = lambda _: True
