"""Open an export, a JSON file or a zip with some, and read long lists one entry at a time."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from recollect.errors import InvalidInputError
from recollect.models.imports import Document, Format
from recollect.models.memories import JSON

CHUNK = 1 << 20
LISTED = {Format.CHATGPT, Format.CLAUDE}
"""Systems whose exports are lists of conversations, and can be hundreds of megabytes."""
INSIDE = {
    Format.CHATGPT: re.compile(r"(.*/)?conversations(-\d+)?\.json"),
    Format.CLAUDE: re.compile(r"(.*/)?(conversations(-\d+)?|memories|memories/[^/]+)\.json"),
}
GAP, BEHIND = re.compile(r"[ \t\r\n,]*"), re.compile(r"[ \t\r\n]*[,\]]")
JUNK = "__MACOSX/"
NO_JSON = "Not valid JSON, or incomplete. Export it again and use the original file."


@dataclass(frozen=True, slots=True)
class Member:
    """A JSON file, alone or in a zip, and the number of bytes before it."""

    stream: IO[bytes]
    before: int
    total: int


def read_documents(path: Path, wanted: Format) -> Iterator[Document]:
    """Read an export: entry by entry if it is a list of conversations, else as one document."""
    try:
        with path.open("rb") as opened:
            for member in open_members(opened, path.stat().st_size, wanted):
                yield from read_list(member) if wanted in LISTED else [read_whole(member)]
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError, zipfile.BadZipFile):
        raise InvalidInputError(NO_JSON) from None


def open_members(opened: IO[bytes], size: int, wanted: Format) -> Iterator[Member]:
    """Open the JSON files that matter; a file that is no zip is one itself."""
    if not zipfile.is_zipfile(opened):
        opened.seek(0)
        yield Member(opened, 0, size)
        return
    with zipfile.ZipFile(opened) as archive:
        pattern = INSIDE.get(wanted, re.compile(r".*\.(json|af)"))
        names = [each for each in archive.infolist() if pattern.fullmatch(each.filename)]
        chosen = sorted((each for each in names if not each.filename.startswith(JUNK)), key=lambda each: each.filename)
        if not chosen:
            raise InvalidInputError(f"No {wanted} export in this zip file. Use the original file.")
        total, before = sum(each.file_size for each in chosen), 0
        for each in chosen:
            with archive.open(each) as stream:
                yield Member(stream, before, total)
            before += each.file_size


def read_whole(member: Member) -> Document:
    """Read a file as one document."""
    return Document(json.loads(member.stream.read().decode("utf-8-sig")), member.total, member.total)


def read_list(member: Member) -> Iterator[Document]:
    """Read the entries of a list, holding no more of the file than the longest of them; anything else is one entry."""
    text = io.TextIOWrapper(member.stream, encoding="utf-8-sig", newline="")
    held, wanted = text.read(CHUNK).lstrip(), CHUNK
    if not held.startswith("["):
        yield Document(json.loads(held + text.read()), member.total, member.total)
        return
    position = 1
    while True:
        position = GAP.match(held, position).end()  # type: ignore[union-attr]
        if held.startswith("]", position):
            return
        entry, end = read_entry(held, position)
        if end:
            position, wanted = end, CHUNK
            yield Document(entry, min(member.before + member.stream.tell(), member.total), member.total)
        else:
            # An entry is parsed again only when twice as much of it is read.
            more = text.read(wanted)
            if not more:
                raise InvalidInputError(NO_JSON)
            held, position, wanted = held[position:] + more, 0, 2 * wanted


def read_entry(held: str, position: int) -> tuple[JSON, int]:
    """Read one entry and where it ends; 0 if it is incomplete, as long as nothing follows it."""
    try:
        entry, end = json.JSONDecoder().raw_decode(held, position)
    except json.JSONDecodeError:
        return None, 0
    return (entry, end) if BEHIND.match(held, end) else (None, 0)
