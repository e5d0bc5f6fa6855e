"""The mistakes of the first day, each answered with what to do: addresses, arguments, IDs, names and commands."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from conftest import new_key
from recollect import sync
from recollect.client import Client
from recollect.client.transport import Transport
from recollect.core.memories.ids import memory_id
from recollect.doors.http.app import create_app
from recollect.errors import InvalidInputError, NotFoundError, SetupError, UnavailableError
from recollect.models import Cue
from recollect.verbs.memories import rows
from support.programs.command_line import run, settings_of
from support.programs.ports import free_port
from support.service.serving import serving

ENGINE = ("numpy", "pgvector", "procrastinate", "psycopg", "psycopg_pool", "pydantic_settings", "tiktoken")


@pytest.fixture
async def minds(recollect):
    """Give the same scope in this process and on a server."""
    async with serving(create_app(recollect=recollect)) as url:
        _, secret = await new_key(recollect)
        async with Client(url, secret) as client:
            yield await recollect.mind("ada", "li"), await client.mind("ada", "li")


class CountingTransport(Transport):
    """A transport that refuses to wait."""

    async def pause(self, seconds):
        raise AssertionError(f"waits for {seconds} s, although nobody has ever answered")


def test_an_address_without_a_scheme_is_refused_before_anything_is_sent():
    with pytest.raises(SetupError, match=r"must begin with http:// or https://, as in http://127\.0\.0\.1:7077$"):
        Client("127.0.0.1:7077", "rec_x")
    with pytest.raises(SetupError, match="must begin with http"):
        sync.connect("localhost", "rec_x")
    Client("HTTPS://example.org", "rec_x")


async def test_a_server_that_does_not_run_is_named_at_once():
    address = f"http://127.0.0.1:{free_port()}"
    told = f"Cannot reach {address}. Is the server running? Start one with `recollect up`."
    async with Client(address, "rec_x", transport=CountingTransport) as client:
        with pytest.raises(UnavailableError) as raised:
            await (await client.mind("ada")).recall("tea")
    assert str(raised.value) == told


async def test_a_server_that_has_answered_is_asked_again():
    waits = []

    class Waiting(Transport):
        async def pause(self, seconds):
            waits.append(seconds)

    server = await asyncio.start_server(answer_not_found, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with Client(f"http://127.0.0.1:{port}", "rec_x", transport=Waiting) as client:
        mind = await client.mind("ada")
        with pytest.raises(NotFoundError):
            await mind.get("m1a2b")
        server.close()
        await server.wait_closed()
        with pytest.raises(UnavailableError, match="Is the server running"):
            await mind.get("m1a2b")
    assert len(waits) == 3


async def answer_not_found(reader, writer):
    await reader.readuntil(b"\r\n\r\n")
    body = b'{"detail": "gone", "code": "not_found", "errors": []}'
    writer.write(b"HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
    await writer.drain()
    writer.close()


@pytest.mark.parametrize("ending", ["/v1", "/v1/", "/"])
async def test_an_address_may_end_in_v1(recollect, ending):
    async with serving(create_app(recollect=recollect)) as url:
        _, secret = await new_key(recollect)
        async with Client(url + ending, secret) as client:
            assert (await (await client.mind("ada")).recall("tea")).hits == ()


WRONG = [
    ("recall", {"query": "tea"}, "recall(): `query` is not known here; did you mean `cue`?"),
    ("recall", {"cue": "tea", "top_k": 3}, "recall(): `top_k` is not known here; did you mean `limit`?"),
    (
        "recall",
        {"cue": "tea", "since": "monday"},
        "recall(): `since` is a field of Cue; pass cue=Cue(..., since=...)",
    ),
    (
        "remember",
        {"memories": "tea", "kind": "event"},
        "remember(): `kind` is a field of NewMemory; pass memories=NewMemory(..., kind=...)",
    ),
    ("forget", {"memory_id": "m1a2b"}, "forget(): `memory_id` is not known here; did you mean `ids`?"),
]


@pytest.mark.parametrize(("verb", "named", "told"), WRONG)
async def test_an_unknown_argument_is_answered_with_the_right_one(minds, verb, named, told):
    for mind in minds:
        with pytest.raises(TypeError) as raised:
            await getattr(mind, verb)(**named)
        assert str(raised.value) == told


async def test_views_and_items_name_their_arguments_too(minds):
    for mind in minds:
        with pytest.raises(TypeError, match=r"context.*`max_tokens`.*did you mean `budget`"):
            await mind.conversation("c").context("tea", max_tokens=100)
        with pytest.raises(TypeError, match=r"find.*`query`.*did you mean `text`"):
            await mind.items.find(query="tea")


def test_blocking_minds_name_their_arguments_too(addresses):
    with sync.connect("http://127.0.0.1:9", "rec_x") as client, pytest.raises(TypeError, match="did you mean `limit`"):
        client.mind("ada").recall("tea", k=3)


async def test_a_short_id_of_a_prompt_is_an_id(minds):
    local, _ = minds
    [receipt] = await local.remember("Li drinks green tea")
    block = await local.blocks.show(Cue("tea"))
    for mind in minds:
        for written in (block.lines[0].short_id, f"[{block.lines[0].short_id}]", str(receipt.id), receipt.id):
            assert (await mind.get(written)).id == receipt.id
        with pytest.raises(NotFoundError):
            await mind.get("m00000000000000000000000000000")
        with pytest.raises(InvalidInputError, match="an ID must be a UUID, or a short ID"):
            await mind.get("tea")


async def test_an_ambiguous_short_id_is_refused(minds, monkeypatch):
    monkeypatch.setattr(rows, "memory_id", lambda moment, place, chance: memory_id(moment, place, bytes(len(chance))))
    first, second = await minds[0].remember(["Li drinks tea", "Bo drinks coffee"])
    for mind in minds:
        with pytest.raises(InvalidInputError, match="several memories have this short ID"):
            await mind.get("m0000")
        assert [(await mind.get(f"m{each.id.hex}")).id for each in (first, second)] == [first.id, second.id]


async def test_the_name_of_a_conversation_is_refused_in_a_sentence(minds):
    for mind in minds:
        for call in (mind.conversation("a b c").append("hello"), mind.conversation("a b c").get()):
            with pytest.raises(InvalidInputError, match=r"conversation must be 1 to 128 characters \(A-Z") as raised:
                await call
            assert "pattern" not in str(raised.value)


def test_import_star_works_without_the_engine():
    script = f"import sys; sys.modules |= dict.fromkeys({ENGINE})\nfrom recollect import *\nprint(NewMemory, Filter)"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_import_star_has_the_engine_where_it_is_installed():
    script = "from recollect import *\nprint(Mind, Settings, open)"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "open_recollect" in ended.stdout


def test_a_mistyped_command_is_answered_with_the_nearest(addresses):
    assert "Did you mean 'recollect recall'" in run("recal", "tea", settings=settings_of(addresses), fails=True)
