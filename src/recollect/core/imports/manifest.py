"""The manifest of an export: its scopes and sections, with the size and hash of each section."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, TextIO

from recollect.core.imports.sections import is_section
from recollect.core.text.checks import check_scope, is_unstorable
from recollect.errors import InvalidInputError
from recollect.models.service import EmbeddingSpace

MANIFEST = "manifest.json"
FORMAT, VERSION = "recollect-export", 1
FREE_BYTES, MAX_EXPANSION = 100_000_000, 30
"""An export may unpack to this size, and beyond it to this multiple of its file; the real factor is 5 to 20."""
MAX_SCOPES, MAX_ENTRY, PIECE = 100_000, 1 << 20, 1 << 16
UNREADABLE = (KeyError, TypeError, AttributeError, ValueError, OverflowError, RecursionError)
"""Errors that JSON of an unexpected shape can cause."""
DAMAGED = "The file is damaged, or not complete: {}. Nothing was imported."
DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class SectionFile:
    """The size and hash of one section."""

    lines: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ExportedScope:
    """One scope of an export: its owner, its folder, and its sections by name."""

    folder: str
    agent: str
    user: str
    sections: Mapping[str, SectionFile]

    def path(self, section: str) -> str:
        """Return the path of a section within the file."""
        return f"{self.folder}/{section}.jsonl"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of an export."""

    scopes: tuple[ExportedScope, ...]
    spaces: tuple[EmbeddingSpace, ...] = ()
    """Embedding spaces whose vectors the export contains."""


def write_manifest(manifest: Manifest) -> Iterator[bytes]:
    """Write a manifest, one scope per line; equal manifests have equal bytes."""
    spaces = [
        {"id": each.id, "model": each.model, "dimensions": each.dimensions, "precision": each.precision}
        for each in manifest.spaces
    ]
    head = json.dumps({"format": FORMAT, "version": VERSION, "spaces": spaces}, ensure_ascii=False)
    yield f'{head[:-1]}, "scopes": ['.encode()
    for number, scope in enumerate(manifest.scopes):
        yield (",\n" if number else "\n").encode() + json.dumps(asdict(scope), ensure_ascii=False).encode()
    yield b"\n]}\n"


class JsonStream:
    """Reads the values of a JSON text one at a time, so that its size does not matter."""

    def __init__(self, text: TextIO) -> None:
        self._text, self._rest = text, ""

    def skip(self, sign: str) -> bool:
        """Skip blanks and, if it comes next, a sign; return whether it came."""
        while not self._rest.lstrip():
            self._rest = self._read()
        self._rest = self._rest.lstrip()
        found = self._rest.startswith(sign)
        self._rest = self._rest[len(sign) :] if found else self._rest
        return found

    def value(self) -> Any:  # noqa: ANN401 - any JSON
        """Read the next value."""
        self.skip(",")
        self.skip("")
        while True:
            with suppress(json.JSONDecodeError):
                value, end = DECODER.raw_decode(self._rest)
                # The rest of the number may not be read yet.
                if end < len(self._rest):
                    self._rest = self._rest[end:]
                    return value
            if len(self._rest) > MAX_ENTRY:
                raise ValueError
            self._rest += self._read()

    def _read(self) -> str:
        if not (more := self._text.read(PIECE)):
            raise ValueError
        return more


def walk_manifest(text: TextIO) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a manifest with their values, and each scope separately.

    Raise an error if the text is not a manifest.
    """
    stream = JsonStream(text)
    try:
        if not stream.skip("{"):
            raise ValueError
        while not stream.skip("}"):
            name = stream.value()
            if stream.skip(":") and name == "scopes" and stream.skip("["):
                while not stream.skip("]"):
                    yield "scope", read_scope(stream.value())
            else:
                yield name, stream.value()
    except UNREADABLE:
        raise InvalidInputError(DAMAGED.format("its manifest cannot be read")) from None


def read_scope(value: Mapping[str, Any]) -> ExportedScope:
    """Parse the entry of one scope."""
    return ExportedScope(
        read_name(value["folder"]),
        read_name(value["agent"]),
        read_name(value["user"]),
        read_sections(value["sections"]),
    )


def read_space(value: Mapping[str, Any]) -> EmbeddingSpace:
    """Parse the entry of one embedding space."""
    named = read_name(value["model"]), read_count(value["dimensions"])
    return EmbeddingSpace(read_count(value["id"]), *named, state="", precision=read_name(value["precision"]))


def read_name(value: object) -> str:
    """Parse a text that can be stored."""
    if not isinstance(value, str) or is_unstorable(value):
        raise TypeError
    return value


def read_count(value: object) -> int:
    """Parse a count."""
    if not isinstance(value, int) or value < 0:
        raise TypeError
    return value


def read_sections(value: Mapping[str, Mapping[str, Any]]) -> dict[str, SectionFile]:
    """Parse the entries of sections."""
    return {
        read_name(name): SectionFile(read_count(held["lines"]), read_count(held["bytes"]), read_name(held["sha256"]))
        for name, held in value.items()
    }


def read_spaces(text: TextIO) -> tuple[EmbeddingSpace, ...]:
    """Parse a whole manifest, and return its embedding spaces; raise an error if it is not valid."""
    found: dict[str, Any] = {}
    for name, value in walk_manifest(text):
        if name == "version" and value != VERSION:
            raise InvalidInputError(f"The export has format {value!s:.9}; this program reads format {VERSION}.")
        if name != "scope":
            found[str(name)] = value
    if found.get("format") != FORMAT:
        raise InvalidInputError("Not a Recollect export.")
    try:
        return tuple(map(read_space, found["spaces"]))
    except UNREADABLE:
        raise InvalidInputError(DAMAGED.format("its manifest cannot be read")) from None


def read_scopes(text: TextIO) -> Iterator[ExportedScope]:
    """Yield the scopes of a manifest; refuse duplicate scopes or folders and unknown sections."""
    known: set[object] = set()
    for scope in (value for name, value in walk_manifest(text) if name == "scope"):
        check_scope(scope.agent, scope.user)
        if unknown := [name for name in scope.sections if not is_section(name)]:
            raise InvalidInputError(f"The export has a section that this program does not know: {unknown[0]:.100}.")
        if known & {scope.folder, (scope.agent, scope.user)}:
            raise InvalidInputError(DAMAGED.format("its manifest names a scope twice"))
        known |= {scope.folder, (scope.agent, scope.user)}
        if len(known) > 2 * MAX_SCOPES:
            raise InvalidInputError(f"The export holds more than {MAX_SCOPES} scopes.")
        yield scope
    if not known:
        raise InvalidInputError("The export contains no scopes.")


def check_size(unpacked: int, packed: int) -> None:
    """Refuse an export that is much larger than its file; our exports never are."""
    if unpacked > max(FREE_BYTES, MAX_EXPANSION * packed):
        raise InvalidInputError(f"The export would be more than {MAX_EXPANSION} times as large as its file.")
