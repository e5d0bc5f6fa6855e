"""Answers in pieces, and whole files: on a disk meanwhile, so that no slow client holds up a transaction."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile
from typing import Annotated, Any, BinaryIO, TypeAlias, cast

from fastapi import Depends, Request
from fastapi.responses import StreamingResponse
from pydantic import TypeAdapter

from recollect.doors.http.problems import answer_error
from recollect.errors import RecollectError, UnavailableError
from recollect.models.service import Change

CHANGE = TypeAdapter(Change)
EVENTS = "text/event-stream"
MOST_TRANSFERS = 2
"""How many are under way in a process at a time: each holds a connection of the pool."""
LONGEST_SECONDS = 3_600.0
"""How much longer than other requests an import or an erasure may take."""
PIECE_BYTES = 256 * 1024
PAUSE_SECONDS = 0.05
"""How long to wait for more of a file that is being written."""
BUSY = "The service is busy with other exports, imports or erasures; try again in a minute."


class Transfers:
    """How many exports, imports and erasures of a process are under way."""

    def __init__(self) -> None:
        self.active = 0

    @contextmanager
    def begin(self) -> Iterator[None]:
        """Take a place, or raise."""
        if self.active >= MOST_TRANSFERS:
            raise UnavailableError(BUSY)
        self.active += 1
        try:
            yield
        finally:
            self.active -= 1


async def find_transfers(request: Request) -> Transfers:
    """Find the transfers of this process."""
    return cast("Transfers", request.app.state.transfers)


UnderWay: TypeAlias = Annotated[Transfers, Depends(find_transfers)]


async def answer_in_pieces(
    pieces: AsyncIterator[Any], media_type: str, headers: Mapping[str, str] | None = None
) -> StreamingResponse:
    """Answer piece by piece; what is refused is refused before the first, while a status can still say so."""
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
    write: Callable[[BinaryIO], Coroutine[Any, Any, object]], under_way: Transfers
) -> AsyncIterator[bytes]:
    """Send a file piece by piece while it is written; if writing fails, the answer ends in the middle."""
    with under_way.begin(), TemporaryFile() as file:
        writing, sent = asyncio.create_task(write(cast("BinaryIO", file))), 0
        try:
            while True:
                if whole := writing.done():
                    await writing
                    file.flush()
                if piece := await asyncio.to_thread(os.pread, file.fileno(), PIECE_BYTES, sent):
                    sent += len(piece)
                    yield piece
                elif whole:
                    return
                else:
                    await asyncio.wait({writing}, timeout=PAUSE_SECONDS)
        finally:
            writing.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await writing


@contextmanager
def receiving(under_way: Transfers) -> Iterator[BinaryIO]:
    """Give a file for a body; it is gone after the request."""
    with under_way.begin(), TemporaryFile() as file:
        yield cast("BinaryIO", file)


async def receive(request: Request, file: BinaryIO) -> None:
    """Write a body to a file as it comes."""
    async for piece in request.stream():
        await asyncio.to_thread(file.write, piece)
