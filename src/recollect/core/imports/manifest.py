"""The manifest of an export: which scopes and sections it holds, with the size and the hash of each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from recollect.core.imports.sections import is_section
from recollect.core.text.checks import check_scope, is_unstorable
from recollect.errors import InvalidInputError
from recollect.models.service import EmbeddingSpace

MANIFEST = "manifest.json"
FORMAT, VERSION = "recollect-export", 1
LARGEST_MANIFEST = 64_000_000
MOST_EXPANSION = 300
"""How many times larger than its file an export may be: far more than JSON ever shrinks."""
UNREADABLE = (KeyError, TypeError, AttributeError, ValueError, OverflowError, RecursionError)
"""What JSON of another shape raises where a row is taken apart."""
DAMAGED = "The file is damaged, or not complete: {}. Nothing was imported."


@dataclass(frozen=True, slots=True)
class SectionFile:
    """What a manifest says of one section."""

    lines: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ExportedScope:
    """One scope of an export: whose it is, its folder, and its sections by name."""

    folder: str
    agent: str
    user: str
    sections: Mapping[str, SectionFile]

    def path(self, section: str) -> str:
        """Return the path of a section within the file."""
        return f"{self.folder}/{section}.jsonl"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an export holds."""

    scopes: tuple[ExportedScope, ...]
    spaces: tuple[EmbeddingSpace, ...] = ()
    """Those whose vectors it holds."""


def write_manifest(manifest: Manifest) -> bytes:
    """Write a manifest; the same one is always the same bytes."""
    value = {
        "format": FORMAT,
        "version": VERSION,
        "spaces": [
            {"id": each.id, "model": each.model, "dimensions": each.dimensions, "precision": each.precision}
            for each in manifest.spaces
        ],
        "scopes": [asdict(scope) for scope in manifest.scopes],
    }
    return json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n"


def read_manifest(text: bytes) -> Manifest:
    """Read a manifest, or say why it cannot be one of ours."""
    try:
        value: Any = json.loads(text)
        if value["format"] != FORMAT:
            raise InvalidInputError("The file is not an export of Recollect.")
        if value["version"] != VERSION:
            raise InvalidInputError(
                f"The export has format {value['version']!s:.9}; this program reads format {VERSION}."
            )
        spaces = tuple(map(read_space, value["spaces"]))
        scopes = tuple(map(read_scope, value["scopes"]))
    except UNREADABLE:
        raise InvalidInputError(DAMAGED.format("its manifest cannot be read")) from None
    check_manifest(scopes)
    return Manifest(scopes, spaces)


def read_scope(value: Mapping[str, Any]) -> ExportedScope:
    """Read what a manifest says of one scope."""
    return ExportedScope(
        read_name(value["folder"]),
        read_name(value["agent"]),
        read_name(value["user"]),
        read_sections(value["sections"]),
    )


def read_space(value: Mapping[str, Any]) -> EmbeddingSpace:
    """Read what a manifest says of one embedding space."""
    named = read_name(value["model"]), read_count(value["dimensions"])
    return EmbeddingSpace(read_count(value["id"]), *named, state="", precision=read_name(value["precision"]))


def read_name(value: object) -> str:
    """Read a text of a manifest, which can be written again."""
    if not isinstance(value, str) or is_unstorable(value):
        raise TypeError
    return value


def read_count(value: object) -> int:
    """Read a number of a manifest, which counts something."""
    if not isinstance(value, int) or value < 0:
        raise TypeError
    return value


def read_sections(value: Mapping[str, Mapping[str, Any]]) -> dict[str, SectionFile]:
    """Read what a manifest says of sections."""
    return {
        read_name(name): SectionFile(read_count(held["lines"]), read_count(held["bytes"]), read_name(held["sha256"]))
        for name, held in value.items()
    }


def check_manifest(scopes: Sequence[ExportedScope]) -> None:
    """Check names: a scope and a folder stand for one thing each, and every section is known."""
    if not scopes:
        raise InvalidInputError("The export holds no scope.")
    for scope in scopes:
        check_scope(scope.agent, scope.user)
        if unknown := [name for name in scope.sections if not is_section(name)]:
            raise InvalidInputError(f"The export has a section that this program does not know: {unknown[0]:.100}.")
    named = {(scope.agent, scope.user) for scope in scopes}
    if len(named) < len(scopes) or len({scope.folder for scope in scopes}) < len(scopes):
        raise InvalidInputError(DAMAGED.format("its manifest names a scope twice"))


def check_size(manifest: Manifest, packed: int) -> None:
    """Refuse an export that would grow beyond measure when it is read."""
    unpacked = sum(held.bytes for scope in manifest.scopes for held in scope.sections.values())
    if unpacked > MOST_EXPANSION * packed:
        raise InvalidInputError(f"The export would be more than {MOST_EXPANSION} times as large as its file.")
