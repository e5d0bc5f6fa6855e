"""The file of an export: a zip of sections, written in one pass and the same for the same rows, checked before use."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, BinaryIO, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from recollect.core.imports.manifest import (
    DAMAGED,
    LARGEST_MANIFEST,
    MANIFEST,
    ExportedScope,
    Manifest,
    SectionFile,
    check_size,
    read_manifest,
    write_manifest,
)
from recollect.errors import InvalidInputError

FIRST_MOMENT = (1980, 1, 1, 0, 0, 0)
"""The time of every entry: that of the export would make two of the same rows differ."""
LEVEL = 6
BLOCK = 1 << 20
LONGEST_LINE = 1 << 28
MOST_LINES, MOST_BYTES = 2_000, 8_000_000
"""How much of a section is read at once."""
UNREADABLE = (BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError, RuntimeError, OSError)


class OnlyForward:
    """A file that is written from start to end only, so that it can be sent meanwhile."""

    def __init__(self, file: BinaryIO) -> None:
        self.write, self.flush = file.write, file.flush


class ExportWriter:
    """Writes sections into a zip, one after the other; stored as they are where the whole is packed."""

    def __init__(self, file: BinaryIO, *, stored: bool = False) -> None:
        self._method = ZIP_STORED if stored else ZIP_DEFLATED
        self._zip = ZipFile(cast("BinaryIO", OnlyForward(file)), "w", self._method, compresslevel=LEVEL)
        self._entry: IO[bytes] | None = None
        self._hash = hashlib.sha256()
        self._lines = self._bytes = 0

    def write(self, path: str, lines: Sequence[str]) -> None:
        """Add lines to a section, which begins with its first."""
        if self._entry is None:
            self._entry = self._open(path)
        text = "".join(f"{line}\n" for line in lines).encode()
        self._entry.write(text)
        self._hash.update(text)
        self._lines += len(lines)
        self._bytes += len(text)

    def end(self) -> SectionFile | None:
        """End a section, and describe it; None if it has no line."""
        if self._entry is None:
            return None
        self._entry.close()
        written = SectionFile(self._lines, self._bytes, self._hash.hexdigest())
        self._entry, self._hash, self._lines, self._bytes = None, hashlib.sha256(), 0, 0
        return written

    def close(self, manifest: Manifest) -> None:
        """Add the manifest, and end the file."""
        with self._open(MANIFEST) as entry:
            entry.write(write_manifest(manifest))
        self._zip.close()

    def abandon(self) -> None:
        """Let go of a file that is not finished."""
        if self._entry is not None:
            self._entry.close()
        self._zip.close()

    def _open(self, path: str) -> IO[bytes]:
        entry = ZipInfo(path, FIRST_MOMENT)
        entry.compress_type, entry.create_system, entry.external_attr = self._method, 3, 0o600 << 16
        return self._zip.open(entry, "w", force_zip64=True)


@dataclass(frozen=True, slots=True)
class ExportReader:
    """An export that was checked to the last byte."""

    packed: ZipFile
    manifest: Manifest

    def read(self, scope: ExportedScope, section: str) -> Iterator[list[bytes]]:
        """Read the lines of a section, some at a time; none if the export has no such section."""
        if section not in scope.sections:
            return
        with undamaged(), self.packed.open(scope.path(section)) as entry:
            batch, size = list[bytes](), 0
            while line := entry.readline(LONGEST_LINE):
                batch.append(line.rstrip(b"\n"))
                size += len(line)
                if len(batch) == MOST_LINES or size >= MOST_BYTES:
                    yield batch
                    batch, size = [], 0
            if batch:
                yield batch


def open_export(file: BinaryIO) -> ExportReader:
    """Open an export and check every section of it, or say what is wrong with it."""
    with undamaged():
        size = file.seek(0, 2)
        packed = ZipFile(file)
        if MANIFEST not in packed.namelist():
            raise InvalidInputError("The file is a zip, but not an export of Recollect: it has no manifest.json.")
        if packed.getinfo(MANIFEST).file_size > LARGEST_MANIFEST:
            raise InvalidInputError(DAMAGED.format("its manifest is too large"))
        manifest = read_manifest(packed.read(MANIFEST))
        check_size(manifest, size)
        expected = {scope.path(name) for scope in manifest.scopes for name in scope.sections} | {MANIFEST}
        if sorted(packed.namelist()) != sorted(expected):
            raise InvalidInputError(DAMAGED.format("it does not hold what its manifest says"))
        for scope in manifest.scopes:
            for name, held in scope.sections.items():
                check_section(packed, scope.path(name), held)
    return ExportReader(packed, manifest)


def check_section(packed: ZipFile, path: str, held: SectionFile) -> None:
    """Compare one section with the manifest."""
    found, size, lines, last = hashlib.sha256(), 0, 0, b"\n"
    with packed.open(path) as entry:
        while size <= held.bytes and (block := entry.read(BLOCK)):
            found.update(block)
            size += len(block)
            lines += block.count(b"\n")
            last = block[-1:]
    if SectionFile(lines, size, found.hexdigest()) != held or last != b"\n":
        raise InvalidInputError(DAMAGED.format(f"{path} is not what the manifest says"))


@contextmanager
def undamaged() -> Iterator[None]:
    """Turn what a damaged zip raises into one error."""
    try:
        yield
    except UNREADABLE as problem:
        raise InvalidInputError(DAMAGED.format(f"it cannot be read as a zip ({type(problem).__name__})")) from None
