"""Stand between a pool and PostgreSQL: delay, swallow or cut what passes, and count who waits for whom."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from pathlib import Path
from typing import Self

from psycopg.conninfo import conninfo_to_dict, make_conninfo

SOCKET = ".s.PGSQL.5432"


class Link:
    """One connection that passes through, and whose turn it is to speak on it."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._server_spoke = True

    def hear(self, *, server: bool) -> None:
        """A round trip begins when the client speaks after the server did."""
        if not server and self._server_spoke:
            self._proxy.round_trips += 1
        self._server_spoke = server


class Proxy:
    """A PostgreSQL address that forwards to another one, with faults on demand."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        place = conninfo_to_dict(dsn)
        self._target = f"{place['host']}/.s.PGSQL.{place['port']}"
        self._folder = tempfile.TemporaryDirectory(prefix="proxy-")
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._light = asyncio.Event()
        self._light.set()
        self.latency_seconds = 0.0
        self.refusing = False
        self.round_trips = 0
        self.connections = 0

    @property
    def dsn(self) -> str:
        """The address that clients use in place of the real one."""
        return make_conninfo(self._dsn, host=self._folder.name, port="5432")

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._serve, Path(self._folder.name) / SOCKET)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self._light.set()
        self.cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._folder.cleanup()

    def darken(self) -> None:
        """Swallow everything in both directions, as a network does that lost its route; nobody is told."""
        self._light.clear()

    def lighten(self) -> None:
        """Deliver what was held back, and everything after it."""
        self._light.set()

    def cut(self) -> None:
        """End every connection at once, in mid-sentence."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if self.refusing:
                return
            await self._light.wait()
            self.connections += 1
            with contextlib.suppress(OSError):
                back_reader, back_writer = await asyncio.open_unix_connection(self._target)
                await self._join((reader, writer), (back_reader, back_writer))
        except asyncio.CancelledError:
            return
        finally:
            writer.transport.abort()
            self._tasks.discard(task)

    async def _join(
        self,
        front: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        back: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        link, writers = Link(self), {front[1], back[1]}
        self._writers |= writers
        pumps = [
            asyncio.create_task(self._pump(link, front[0], back[1], server=False)),
            asyncio.create_task(self._pump(link, back[0], front[1], server=True)),
        ]
        try:
            # When one side has ended, the other hears of it at once.
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            for writer in writers:
                writer.transport.abort()
            self._writers -= writers

    async def _pump(
        self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, server: bool
    ) -> None:
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        delivery = asyncio.create_task(self._deliver(waiting, writer))
        try:
            while data := await reader.read(65536):
                link.hear(server=server)
                # A queue, not a pause: latency must delay what passes without making the line thinner.
                waiting.put_nowait((time.monotonic() + self.latency_seconds, data))
            # What was sent last still has to arrive; a delivery whose line is gone has ended by itself.
            await asyncio.wait({delivery, asyncio.create_task(waiting.join())}, return_when=asyncio.FIRST_COMPLETED)
        except ConnectionError:
            return
        finally:
            delivery.cancel()

    async def _deliver(self, waiting: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                due, data = await waiting.get()
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                await self._light.wait()
                writer.write(data)
                await writer.drain()
                waiting.task_done()
