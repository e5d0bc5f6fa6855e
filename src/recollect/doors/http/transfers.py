"""Answers in pieces, and whole files: stored on a disk first, so that no slow client holds up a transaction."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from tempfile import TemporaryFile
from typing import Annotated, Any, BinaryIO, TypeAlias, TypeVar, cast
from weakref import WeakValueDictionary

from fastapi import Depends, Request
from fastapi.responses import StreamingResponse
from pydantic import TypeAdapter

from recollect.doors.http.middleware import seconds_for
from recollect.doors.http.problems import answer_error
from recollect.errors import RecollectError, UnavailableError
from recollect.models.service import Change

CHANGE = TypeAdapter(Change)
Result = TypeVar("Result")
GONE = "The client left before the import was stored. Nothing was imported."
EVENTS = "text/event-stream"
MAX_TRANSFERS, MAX_OF_TENANT, MAX_FILES = 4, 2, 8
"""How many exports and imports are worked on at a time in a process and for a tenant: each holds a connection of the
pool. A tenant may have more files, which arrive, wait or are read."""
MAX_SECONDS = 3_600.0
"""How much longer than other requests an import or an erasure may take."""
PIECE_BYTES = 256 * 1024
PAUSE_SECONDS = 0.05
"""How long to wait for more of a file that is being written."""
BUSY = "The service is busy with other exports or imports of yours; try again in a minute."
SLOW = "The export was read too slowly."


class TransferLimiter:
    """The exports and imports of a process: their files, and the slots of those that are worked on."""

    def __init__(self) -> None:
        self.files = Counter[int]()
        self._slots = asyncio.Semaphore(MAX_TRANSFERS)
        self._of_tenants = WeakValueDictionary[int, asyncio.Semaphore]()

    @contextmanager
    def file(self, tenant_id: int) -> Iterator[BinaryIO]:
        """Yield a temporary file, or raise if the tenant has too many; it needs no slot."""
        if self.files[tenant_id] >= MAX_FILES:
            raise UnavailableError(BUSY)
        self.files[tenant_id] += 1
        try:
            with TemporaryFile() as file:
                yield cast("BinaryIO", file)
        finally:
            self.files[tenant_id] -= 1
            self.files += Counter()

    @asynccontextmanager
    async def term_position(self, tenant_id: int) -> AsyncIterator[None]:
        """Wait for a slot of the tenant, and for one of the process."""
        own = self._of_tenants.setdefault(tenant_id, asyncio.Semaphore(MAX_OF_TENANT))
        async with own, self._slots:
            yield


async def find_transfers(request: Request) -> TransferLimiter:
    """Find the transfers of this process; who takes part takes no place of other requests."""
    request.scope["free_slot"]()
    return cast("TransferLimiter", request.app.state.transfers)


UnderWay: TypeAlias = Annotated[TransferLimiter, Depends(find_transfers)]


async def answer_in_pieces(
    pieces: AsyncIterator[Any], media_type: str, headers: Mapping[str, str] | None = None
) -> StreamingResponse:
    """Answer piece by piece. A refusal comes before the first piece, while the status can still be set."""
    first = await anext(pieces)

    async def all_pieces() -> AsyncIterator[Any]:
        yield first
        async for piece in pieces:
            yield piece

    return StreamingResponse(all_pieces(), media_type=media_type, headers=headers)


async def write_events(
    changes: AsyncIterator[Change], draining: asyncio.Event, heartbeat_seconds: float
) -> AsyncIterator[bytes]:
    """Write changes as server-sent events, with a sign of life where none comes; end when the server drains."""
    begun, stopping = False, asyncio.ensure_future(draining.wait())
    coming = asyncio.ensure_future(anext(changes))
    try:
        while not stopping.done():
            await asyncio.wait({coming, stopping}, timeout=heartbeat_seconds, return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                yield b": heartbeat\n\n"
                continue
            try:
                change = coming.result()
            except RecollectError as problem:
                if not begun:
                    raise
                yield b"event: problem\ndata: " + bytes(answer_error(problem).body) + b"\n\n"
                return
            begun, coming = True, asyncio.ensure_future(anext(changes))
            name = b"began" if change.operation == "began" else b"change"
            yield b"id: %b\nevent: %b\ndata: %b\n\n" % (change.cursor.encode(), name, CHANGE.dump_json(change))
    finally:
        for each in (coming, stopping):
            each.cancel()
        await asyncio.gather(coming, stopping, return_exceptions=True)


async def send_growing(
    write: Callable[[BinaryIO], Coroutine[Any, Any, object]], under_way: TransferLimiter, tenant_id: int
) -> AsyncIterator[bytes]:
    """Send a file piece by piece while it is written; if writing fails, the answer ends in the middle.

    A slot is held only while the file is written; a reader who is too slow loses the rest.
    """

    async def write_with_slot() -> None:
        async with under_way.term_position(tenant_id):
            await write(file)

    with under_way.file(tenant_id) as file:
        writing, sent, waited, clock = asyncio.create_task(write_with_slot()), 0, 0.0, asyncio.get_running_loop().time
        try:
            while waited <= seconds_for(sent):
                if whole := writing.done():
                    await writing
                    file.flush()
                if piece := await asyncio.to_thread(os.pread, file.fileno(), PIECE_BYTES, sent):
                    sent += len(piece)
                    begun = clock()
                    yield piece
                    waited += clock() - begun
                elif whole:
                    return
                else:
                    await asyncio.wait({writing}, timeout=PAUSE_SECONDS)
            raise UnavailableError(SLOW)
        finally:
            writing.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await writing


async def receive(request: Request, file: BinaryIO) -> None:
    """Write a body to a file as it comes."""
    async for piece in request.stream():
        await asyncio.to_thread(file.write, piece)


async def while_connected(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Do something as long as the client waits for it."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise UnavailableError(GONE)
        return working.result()
    finally:
        for each in (working, leaving):
            each.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)
