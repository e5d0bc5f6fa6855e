"""One address before several servers: every connection goes to the next of them that takes it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Self

PIECE_BYTES = 65536


class Balancer:
    """Pass connections on to servers by turns; one that takes none is passed over."""

    def __init__(self, *ports: int) -> None:
        self.ports = [*ports]
        self._turn = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(asyncio.CancelledError):
            server = await self._connect()
            if server is None:
                writer.transport.abort()
            else:
                await join((reader, writer), server)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        for _ in self.ports:
            self._turn += 1
            with contextlib.suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", self.ports[self._turn % len(self.ports)])
        return None


async def join(
    front: tuple[asyncio.StreamReader, asyncio.StreamWriter], back: tuple[asyncio.StreamReader, asyncio.StreamWriter]
) -> None:
    """Pass on what either side says, until one of them has ended and all that it said is delivered."""
    pumps = [asyncio.create_task(pump(front[0], back[1])), asyncio.create_task(pump(back[0], front[1]))]
    try:
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in pumps:
            each.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        for _, writer in (front, back):
            writer.close()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on what one side says."""
    with contextlib.suppress(OSError):
        while piece := await reader.read(PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
