"""Stand between a mirror and its engine: delay, refuse, cut, send twice, or falsify what passes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import ssl
from collections.abc import Callable
from typing import Self

LENGTH = re.compile(rb"^content-length: *(\d+)\r$", re.IGNORECASE | re.MULTILINE)
CHUNKED = re.compile(rb"^transfer-encoding: *chunked\r$", re.IGNORECASE | re.MULTILINE)


class EngineProxy:
    """An address that forwards to an engine, with faults on demand; of HTTP it knows requests and answers."""

    def __init__(self, port: int, *, http: bool = True, tls: ssl.SSLContext | None = None) -> None:
        self._target = port
        self._http = http
        self._tls = tls
        self._writers: set[asyncio.StreamWriter] = set()
        self.delay_seconds = 0.0
        self.refusing = False
        self.twice = False
        """Whether every request is delivered a second time, after its answer."""
        self.falsify: Callable[[dict], dict] | None = None
        """Changes an answer."""
        self.cut_answers = False
        """Whether half of an answer arrives, and nothing more."""
        self.headers: list[bytes] = []
        """The heads of all requests."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()

    def cut(self) -> None:
        """End every connection at once."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            writer.transport.abort()
            return
        back_reader, back_writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers |= {writer, back_writer}
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                if self._http:
                    await self._exchange((reader, writer), (back_reader, back_writer))
                else:
                    await asyncio.gather(self._pump(reader, back_writer), self._pump(back_reader, writer))
        finally:
            for each in (writer, back_writer):
                each.transport.abort()
                self._writers.discard(each)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            await asyncio.sleep(self.delay_seconds)
            if self.refusing:
                break
            writer.write(data)
            await writer.drain()
        writer.transport.abort()

    async def _exchange(self, front: tuple, back: tuple) -> None:
        while True:
            request = await self._read(front[0])
            self.headers.append(request.partition(b"\r\n\r\n")[0])
            await asyncio.sleep(self.delay_seconds)
            if self.refusing:
                return
            answer = b""
            for _ in range(1 + self.twice):
                # Nobody hears the first answer of two.
                back[1].write(request)
                answer = await self._read(back[0], head=request.startswith(b"HEAD"))
            if self.falsify is not None:
                answer = self._change(answer)
            front[1].write(answer[: len(answer) // 2] if self.cut_answers else answer)
            await front[1].drain()
            if self.cut_answers:
                return

    def _change(self, answer: bytes) -> bytes:
        assert self.falsify is not None
        head, _, body = answer.partition(b"\r\n\r\n")
        try:
            changed = json.dumps(self.falsify(json.loads(body))).encode()
        except ValueError:
            return answer
        head = LENGTH.sub(b"content-length: %d\r" % len(changed), head + b"\r\n")
        return head + b"\r\n" + changed

    async def _read(self, reader: asyncio.StreamReader, *, head: bool = False) -> bytes:
        """Read one request, or one answer."""
        start = await reader.readuntil(b"\r\n\r\n")
        if head:
            return start
        if CHUNKED.search(start):
            body = b""
            while True:
                size = await reader.readline()
                chunk = await reader.readexactly(int(size, 16) + 2)
                body += size + chunk
                if int(size, 16) == 0:
                    return start + body
        length = LENGTH.search(start)
        return start + (await reader.readexactly(int(length[1])) if length else b"")
