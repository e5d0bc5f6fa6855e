"""The file of an export: a zip of sections, written in one pass and reproducible, checked before use."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from typing import IO, BinaryIO, TextIO, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from recollect.core.imports.manifest import (
    DAMAGED,
    MANIFEST,
    ExportedScope,
    Manifest,
    SectionFile,
    check_size,
    write_manifest,
)
from recollect.core.imports.rows import MAX_LINE_LENGTH
from recollect.errors import InvalidInputError

FIRST_MOMENT = (1980, 1, 1, 0, 0, 0)
"""The time of every entry: the time of the export would make equal exports differ."""
LEVEL = 6
BLOCK = 1 << 18
UNREADABLE = (BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError, RuntimeError, OSError)


class OnlyForward:
    """A file that is only written from start to end, so that it can be sent at the same time."""

    def __init__(self, file: BinaryIO) -> None:
        self.write, self.flush = file.write, file.flush


class ExportWriter:
    """Writes sections into a zip, in order; uncompressed if the whole file is packed."""

    def __init__(self, file: BinaryIO, *, stored: bool = False) -> None:
        self._method = ZIP_STORED if stored else ZIP_DEFLATED
        self._zip = ZipFile(cast("BinaryIO", OnlyForward(file)), "w", self._method, compresslevel=LEVEL)
        self._entry: IO[bytes] | None = None
        self._hash = hashlib.sha256()
        self._lines = self._bytes = 0

    def write_lines(self, path: str, lines: Sequence[str]) -> None:
        """Add lines to a section, which starts with its first line."""
        if self._entry is None:
            self._entry = self._open(path)
        text = "".join(f"{line}\n" for line in lines).encode()
        self._entry.write(text)
        self._hash.update(text)
        self._lines += len(lines)
        self._bytes += len(text)

    def end_section(self) -> SectionFile | None:
        """End a section, and return its description; None if it has no line."""
        if self._entry is None:
            return None
        self._entry.close()
        written = SectionFile(self._lines, self._bytes, self._hash.hexdigest())
        self._entry, self._hash, self._lines, self._bytes = None, hashlib.sha256(), 0, 0
        return written

    def write_all(self, folder: ExportedScope, found: Mapping[str, Sequence[str]]) -> dict[str, SectionFile]:
        """Write whole sections of a scope, and return the descriptions of those with lines."""
        written = {}
        for name, lines in found.items():
            self.write_lines(folder.path(name), lines)
            if ended := self.end_section():
                written[name] = ended
        return written

    def finish_file(self, manifest: Manifest) -> None:
        """Add the manifest, and end the file."""
        with self._open(MANIFEST) as entry:
            entry.writelines(write_manifest(manifest))
        self._zip.close()

    def abandon(self) -> None:
        """Close an unfinished file."""
        if self._entry is not None:
            self._entry.close()
        self._zip.close()

    def _open(self, path: str) -> IO[bytes]:
        entry = ZipInfo(path, FIRST_MOMENT)
        entry.compress_type, entry.create_system, entry.external_attr = self._method, 3, 0o600 << 16
        return self._zip.open(entry, "w", force_zip64=True)


@dataclass(frozen=True, slots=True)
class ExportReader:
    """An open export."""

    packed: ZipFile
    size: int

    def manifest(self) -> TextIO:
        """Open the manifest."""
        return TextIOWrapper(self.packed.open(MANIFEST), "utf-8")

    def read_section_lines(self, scope: ExportedScope, section: str) -> Iterator[list[bytes]]:
        """Read the lines of a section in batches; refuse a section that does not match the manifest."""
        found, size, lines, rest = hashlib.sha256(), 0, 0, b""
        with undamaged(), self.packed.open(scope.path(section)) as entry:
            while block := entry.read(BLOCK):
                found.update(block)
                size += len(block)
                *whole, rest = (rest + block).split(b"\n")
                lines += len(whole)
                if len(rest) > MAX_LINE_LENGTH:
                    raise InvalidInputError(f"{section} has a line of more than {MAX_LINE_LENGTH} bytes.")
                if whole:
                    yield whole
        if rest or SectionFile(lines, size, found.hexdigest()) != scope.sections[section]:
            raise InvalidInputError(DAMAGED.format(f"{scope.path(section)} does not match the manifest"))


def open_export(file: BinaryIO) -> ExportReader:
    """Open an export, and check its sizes before reading; raise InvalidInputError if it is invalid."""
    with undamaged():
        size = file.seek(0, 2)
        packed = ZipFile(file)
        if MANIFEST not in packed.namelist():
            raise InvalidInputError("The file is a zip, but not an export of Recollect: it has no manifest.json.")
        unpacked = sum(each.file_size for each in packed.filelist)
        check_size(unpacked, size)
        if any(each.compress_type not in (ZIP_STORED, ZIP_DEFLATED) for each in packed.filelist):
            raise InvalidInputError(DAMAGED.format("its compression is not supported"))
        if len(packed.NameToInfo) < len(packed.filelist):
            raise InvalidInputError(DAMAGED.format("it has a section twice"))
    return ExportReader(packed, unpacked)


@contextmanager
def undamaged() -> Iterator[None]:
    """Turn the errors of a damaged zip into one error."""
    try:
        yield
    except UNREADABLE as problem:
        raise InvalidInputError(DAMAGED.format(f"it cannot be read as a zip ({type(problem).__name__})")) from None
