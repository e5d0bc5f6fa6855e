"""Check an export in a separate process, and read its output: blocks of rows to store."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from io import UnsupportedOperation
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO

from recollect.core.imports.manifest import DAMAGED
from recollect.errors import InvalidInputError, UnavailableError
from recollect.models.service import EmbeddingSpace

PROGRAM = (sys.executable, "-I", "-m", "recollect.verbs.imports.checking")
CPU_SECONDS = 60
"""Processor seconds that a check may take for each 100 MB of content, if it is limited."""
MAX_MEMORY = 320_000
"""In kB, if the process cannot limit itself: its own limit, and the program."""
PATIENCE_SECONDS, WATCH_SECONDS = 120.0, 1.0
"""Seconds that a check may show no sign of life, and seconds between checks of its memory."""
LIMITED = sys.platform == "linux"
KILLED = "The export takes more memory or processor time to check than an import may use."
FAILED = "The export could not be checked; try again when the disk has room."


@dataclass(frozen=True, slots=True)
class CheckedScope:
    """A scope of a checked export: its names, and its position in the file."""

    agent: str
    user: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Rows of one section as a JSON array."""

    section: str
    lines: int
    rows: bytes


@dataclass(frozen=True, slots=True)
class CheckedExport:
    """An export that was checked to the last byte."""

    file: IO[bytes]
    scopes: tuple[CheckedScope, ...]
    spaces: tuple[EmbeddingSpace, ...]
    lines: Mapping[str, int]
    """The number of rows of each section, over all scopes."""
    left_out: Mapping[str, int]
    """The number of rows with an unknown field, by its name."""

    async def read_blocks(self, scope: CheckedScope) -> AsyncIterator[RowBlock]:
        """Read the blocks of a scope, in the order in which they can be stored; small ones together."""
        place = scope.begin
        while place < scope.end:
            blocks, place = await asyncio.to_thread(self._read, place, min(scope.end, place + (1 << 18)))
            for block in blocks:
                yield block

    def _read(self, place: int, end: int) -> tuple[list[RowBlock], int]:
        blocks = list[RowBlock]()
        while self.file.seek(place) < end:
            section, lines, size = self.file.readline().split()
            blocks.append(RowBlock(section.decode(), int(lines), self.file.read(int(size))))
            place = self.file.tell()
        return blocks, place


@asynccontextmanager
async def check_upload(file: BinaryIO, trust: int, *, as_new: bool, limited: bool) -> AsyncIterator[CheckedExport]:
    """Check an export in a process that ends with this block; raise InvalidInputError if it is invalid."""
    with TemporaryFile() as output, TemporaryFile() as copy:
        upload: IO[bytes] = file
        try:
            file.fileno()
        except UnsupportedOperation:
            file.seek(0)
            await asyncio.to_thread(shutil.copyfileobj, file, upload := copy)
        await asyncio.to_thread(upload.flush)
        given = map(str, (trust, int(as_new), CPU_SECONDS * limited))
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("RECOLLECT_", "PG"))}
        child = await asyncio.create_subprocess_exec(
            *PROGRAM, *given, stdin=upload, stdout=output, stderr=asyncio.subprocess.PIPE, env=environment
        )
        watching = asyncio.create_task(watch(child, limited=LIMITED))
        try:
            report = await wait_for_report(child)
        finally:
            watching.cancel()
            with suppress(ProcessLookupError):
                child.kill()
            await child.wait()
        output.seek(report["index"])
        scopes = await asyncio.to_thread(lambda: tuple(CheckedScope(*json.loads(line)) for line in output))
        spaces = tuple(EmbeddingSpace(**each) for each in report["spaces"])
        yield CheckedExport(output, scopes, spaces, report["lines"], report["left_out"])


async def wait_for_report(child: asyncio.subprocess.Process) -> dict[str, Any]:
    """Wait for the report of a check, while it shows signs of life."""
    assert child.stderr is not None  # noqa: S101 - it is a pipe
    said = b""
    try:
        while more := await asyncio.wait_for(child.stderr.read(1 << 16), PATIENCE_SECONDS):
            said = (said + more).lstrip(b".")
        await asyncio.wait_for(child.wait(), PATIENCE_SECONDS)
    except TimeoutError:
        raise UnavailableError(FAILED) from None
    if child.returncode != 0:
        raise InvalidInputError(KILLED) if (child.returncode or 0) < 0 else UnavailableError(FAILED)
    try:
        report: dict[str, Any] = json.loads(said)
    except ValueError:
        raise InvalidInputError(DAMAGED.format("its check ended early")) from None
    if "refused" in report:
        raise InvalidInputError(report["refused"])
    return report


async def watch(child: asyncio.subprocess.Process, *, limited: bool) -> None:
    """Kill a check that uses too much memory, on a system that does not limit it."""
    while not limited and child.returncode is None:
        asked = await asyncio.create_subprocess_exec(
            *("ps", "-o", "rss=", "-p", str(child.pid)), stdout=asyncio.subprocess.PIPE
        )
        used, _ = await asked.communicate()
        if used.strip().isdigit() and int(used) > MAX_MEMORY:
            child.kill()
        await asyncio.sleep(WATCH_SECONDS)
