"""Clients that send slowly are sent away: within bounded time, and before their body is read if their key is wrong."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress

import httpx
import pytest

from conftest import application, http_client, new_key
from recollect.doors.http import middleware
from recollect.doors.http.server import protocol
from support.programs.waiting import hurry
from support.service.serving import serving

WAIT_SECONDS = 60


@asynccontextmanager
async def listening(recollect):
    """Serve on a real socket, as `recollect serve` does."""
    with application(recollect) as app:
        async with serving(app, http=protocol.BoundedProtocol, lifespan="off") as url:
            yield httpx.URL(url).port


def head(secret: str, length: int) -> bytes:
    lines = (
        "POST /v1/memories HTTP/1.1", "Host: localhost", f"Authorization: Bearer {secret}",
        "Content-Type: application/json", f"Content-Length: {length}", "", "",
    )  # fmt: skip
    return "\r\n".join(lines).encode()


async def read_to_end(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(WAIT_SECONDS):
        return await reader.read()


@pytest.mark.parametrize("sent", [b"", b"POST /v1/memories HTTP/1.1\r\nHost: x\r\n"], ids=["nothing", "half a header"])
async def test_headers_that_never_come_close_the_connection(recollect, monkeypatch, sent):
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.05)
    async with listening(recollect) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        assert await read_to_end(reader) == b""
        writer.close()


async def test_headers_of_a_second_request_are_bounded_too(recollect, monkeypatch):
    async with listening(recollect) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"}")
        monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.05)
        writer.write(b"GET /health/live HTTP/1.1\r\n")
        assert await read_to_end(reader) == b""
        writer.close()


async def test_a_request_that_takes_its_time_to_answer_is_not_cut_off(recollect, monkeypatch):
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.05)
    gate = asyncio.Event()

    async def wait(_recollect):
        await gate.wait()

    monkeypatch.setattr(type(recollect), "ready", wait)
    async with listening(recollect) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await asyncio.sleep(0.2)
        gate.set()
        assert b"200 OK" in await reader.readuntil(b"}")
        writer.close()


async def test_a_wrong_key_is_refused_before_any_of_the_body_is_read(recollect):
    async with listening(recollect) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head("rec_wrong", 1_000))
        answer = await read_to_end(reader)
        assert answer.startswith(b"HTTP/1.1 401 ")
        assert b"connection: close" in answer.lower()
        writer.close()


async def test_a_body_that_trickles_is_given_up(recollect, monkeypatch):
    monkeypatch.setattr(middleware, "UPLOAD_SECONDS", 0.3)
    _, secret = await new_key(recollect)
    async with listening(recollect) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head(secret, 60_000))
        # Not to the end: what is sent after the answer resets the connection.
        answering = asyncio.create_task(reader.readuntil(b"too_slow"))
        while not answering.done():
            writer.write(b" ")
            await asyncio.sleep(0.02)
        assert answering.result().startswith(b"HTTP/1.1 408 ")
        writer.close()


async def test_a_key_is_asked_for_once_however_many_bodies_follow(recollect, monkeypatch):
    asked, authenticate = [], type(recollect).authenticate

    async def count(running, secret, *arguments, **named):
        asked.append(secret)
        return await authenticate(running, secret, *arguments, **named)

    monkeypatch.setattr(type(recollect), "authenticate", count)
    _, secret = await new_key(recollect)
    async with http_client(recollect, secret) as http:
        for _ in range(3):
            assert (await http.post("/v1/memories", json={"agent": "ada", "content": "tea"})).status_code == 201
    assert asked == [secret]


async def swallow_deadline(recollect, monkeypatch) -> str:
    """Let a key be known at the moment in which the time is over: asyncio.wait_for of Python 3.11 drops the end."""
    _, secret = await new_key(recollect)
    caller = await recollect.authenticate(secret, "http")

    async def answer_too_late(*_, **__):
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return caller

    monkeypatch.setattr(type(recollect), "authenticate", answer_too_late)
    return secret


async def test_a_deadline_that_was_swallowed_on_the_way_is_answered_as_one(recollect, monkeypatch):
    secret = await swallow_deadline(recollect, monkeypatch)
    async with http_client(hurry(recollect, 0.01), secret) as http:
        answer = await http.post("/v1/memories", json={"agent": "ada", "content": "late"})
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")


async def test_after_a_swallowed_deadline_no_body_is_waited_for(recollect, monkeypatch):
    secret = await swallow_deadline(recollect, monkeypatch)
    async with listening(hurry(recollect, 0.01)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head(secret, 60_000))
        assert (await read_to_end(reader)).startswith(b"HTTP/1.1 503 ")
        writer.close()
