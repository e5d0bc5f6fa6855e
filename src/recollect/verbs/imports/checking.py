"""Check an export completely in a separate process, and write its rows as blocks that need no more parsing.

Its standard input is the export, its output the blocks, and its errors are signs of life and a report. It imports only
the standard library and pure modules, so that it starts soon and fits into its limits.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import chain
from typing import Any, BinaryIO
from uuid import UUID

from recollect.core.imports.manifest import DAMAGED, ExportedScope, read_scopes, read_spaces
from recollect.core.imports.rows import RowCheck, list_fields
from recollect.core.imports.sections import COUNTERS, PROFILE, SECTIONS, VECTORS
from recollect.errors import InvalidInputError
from recollect.verbs.imports.zipped import ExportReader, open_export

MAX_MEMORY = 256 << 20
CPU_BYTES = 100_000_000
"""The content in bytes that the time limit is meant for; a larger export may take longer at the same rate."""
BLOCK_BYTES, BLOCK_ROWS = 1 << 18, 1_000
TOO_LARGE = "The export needs more memory to check than an import may use."
OF_MEMORIES = MEMORIES, FEATURES, EVIDENCE = "memories/memories", "memories/memory_features", "memories/evidence"
NEW_FIELDS = (*list_fields(MEMORIES), "sources", "pinned")
ORDER = {name: place for place, name in enumerate([PROFILE, *(each.name for each in SECTIONS), VECTORS, COUNTERS])}
TAKES_PART = {None, "archived"}
"""Memories withheld for another reason are past, faded, or of a deleted conversation, and are not imported."""


class Blocks:
    """Writes rows as JSON arrays of bounded size, each after a line with its section, rows and bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self._section, self._lines, self._size = "", list[bytes](), 0

    def append_row(self, section: str, line: bytes) -> None:
        """Add a row."""
        full = self._size + len(line) > BLOCK_BYTES or len(self._lines) == BLOCK_ROWS
        if full or section != self._section:
            self.end_block()
        self._section = section
        self._lines.append(line)
        self._size += len(line)

    def end_block(self) -> int:
        """Write the added rows, and return the start of the next block."""
        if self._lines:
            block = b"[%b]" % b",".join(self._lines)
            self.file.write(b"%b %d %d\n%b" % (self._section.encode(), len(self._lines), len(block), block))
            self._lines, self._size = [], 0
        return self.file.tell()


class ExportCheck:
    """The check of one export: its counts, and the rows that an import omits."""

    def __init__(self, reader: ExportReader, trust: int) -> None:
        self.reader, self._trust = reader, trust
        self.spaces = read_spaces(reader.manifest())
        self._dimensions = {f"{VECTORS}{each.id}": each.dimensions for each in self.spaces}
        self.lines, self.unknown = Counter[str](), Counter[str]()

    def scopes(self) -> Iterator[ExportedScope]:
        """Read the scopes; raise InvalidInputError if the file does not match its manifest."""
        entries = 1
        for scope in read_scopes(self.reader.manifest()):
            entries += len(scope.sections)
            yield scope
        if entries != len(self.reader.packed.filelist):
            raise InvalidInputError(DAMAGED.format("it does not match its manifest"))

    def rows(self, scope: ExportedScope, section: str) -> Iterator[tuple[bytes, dict[str, Any]]]:
        """Read and check the rows of a section, each with its line."""
        check = RowCheck(section, self._trust, self._dimensions.get(section, -section.startswith(VECTORS)))
        number = rows = 0
        for lines in self.reader.read_section_lines(scope, section) if section in scope.sections else ():
            os.write(2, b".")
            for each in lines:
                number += 1
                # A blank line is not a row.
                if line := each.strip():
                    yield line, check.check(line, number)
                    rows += 1
        if section in (PROFILE, COUNTERS) and (rows != 1 or scope.sections[section].bytes > BLOCK_BYTES):
            raise InvalidInputError(DAMAGED.format(f"{section} is not one short line"))
        check.check_end()
        self.lines[section] += rows
        self.unknown.update({f"{section}.{name}": count for name, count in check.unknown.items()})

    def new_rows(self, scope: ExportedScope) -> Iterator[bytes]:
        """Read memories to import as new ones, with their data of other sections, in the order of their IDs."""
        features, evidence = (
            Following(self.rows(scope, FEATURES), "id"),
            Following(self.rows(scope, EVIDENCE), "memory_id"),
        )
        known: dict[bytes, int] = {}
        for _, row in self.rows(scope, MEMORIES):
            sources = (known.get(UUID(each["source_id"]).bytes) for each in evidence.take(row["id"]))
            row["sources"] = [each for each in sources if each is not None]
            row["pinned"] = any(each["pinned"] for each in features.take(row["id"]))
            if row["withheld"] in TAKES_PART and row["content"].strip():
                known[UUID(row["id"]).bytes] = len(known)
                # Unknown fields may be larger than all others.
                yield json.dumps({name: row.get(name) for name in NEW_FIELDS}, ensure_ascii=False).encode()
        deque(chain(features.rows, evidence.rows), 0)


class Following:
    """The rows of a sorted section that belong to consecutive memories."""

    def __init__(self, rows: Iterable[tuple[bytes, dict[str, Any]]], key: str) -> None:
        self.rows, self._key = (row for _, row in rows), key
        self._next: dict[str, Any] | None = None

    def take(self, identity: str) -> list[dict[str, Any]]:
        """Return the rows of a memory, and skip those of earlier memories."""
        taken: list[dict[str, Any]] = []
        for row in chain([self._next] if self._next else [], self.rows):
            self._next = row
            if row[self._key] > identity:
                return taken
            if row[self._key] == identity:
                taken.append(row)
        self._next = None
        return taken


def check_export(reader: ExportReader, output: BinaryIO, trust: int, *, as_new: bool) -> dict[str, Any]:
    """Check every row, and write the rows that an import stores; return the report."""
    check, blocks, index = ExportCheck(reader, trust), Blocks(output), list[tuple[str, str, int, int]]()
    for scope in check.scopes():
        begin = blocks.end_block()
        os.write(2, b".")
        merged = OF_MEMORIES if as_new else ()
        if COUNTERS not in scope.sections:
            raise InvalidInputError(DAMAGED.format(f"a scope has no {COUNTERS}"))
        for section in sorted({*scope.sections} - {*merged}, key=lambda name: ORDER.get(name, ORDER[VECTORS])):
            for line, _ in check.rows(scope, section):
                if not as_new:
                    blocks.append_row(section, line)
        for line in check.new_rows(scope) if as_new else ():
            blocks.append_row(MEMORIES, line)
        index.append((scope.agent, scope.user, begin, blocks.end_block()))
    begin = output.tell()
    for entry in index:
        output.write(json.dumps(entry).encode() + b"\n")
    output.flush()
    spaces = [asdict(each) for each in check.spaces]
    return {"index": begin, "spaces": spaces, "lines": check.lines, "left_out": check.unknown}


def main(trust: int, as_new: int, seconds: int) -> dict[str, Any]:
    """Check the export from the standard input within the limits; 0 seconds = no limit."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    if seconds:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
    try:
        with open(0, "rb", closefd=False) as file, open(1, "wb", closefd=False) as output:
            reader = open_export(file)
            if seconds:
                longest = seconds * max(1, reader.size // CPU_BYTES)
                resource.setrlimit(resource.RLIMIT_CPU, (longest, resource.RLIM_INFINITY))
            return check_export(reader, output, trust, as_new=bool(as_new))
    except InvalidInputError as problem:
        return {"refused": str(problem)}
    except MemoryError:
        return {"refused": TOO_LARGE}


if __name__ == "__main__":
    os.write(2, f"\n{json.dumps(main(*map(int, sys.argv[1:])))}".encode())
