"""Whole scopes leave and come back over HTTP, and a user is erased by one request."""

from __future__ import annotations

import asyncio
import io
import zipfile

import pytest

from recollect import sync
from recollect.client import Client
from recollect.doors.http import transfers
from recollect.doors.http.app import create_app
from recollect.errors import ForbiddenError, InvalidInputError, NotFoundError, RecollectError, UnavailableError
from recollect.llm.fake import FakeChatModel
from recollect.models.imports import ExportOrder
from recollect.models.memories import NewMemory
from recollect.models.service import Bounds, Right
from recollect.settings import Settings
from recollect.wiring import connected
from serving import serving
from whole_scopes import EVERYTHING, Life

LARGEST = 4_000_000
NO_BOUNDS = Bounds()


@pytest.fixture
async def recollect(addresses, embedder, script):
    chosen = Settings(embedder="fake", channel_seconds=30, embed_wait_seconds=30, import_bytes=LARGEST)
    async with connected(chosen, addresses, embedder, FakeChatModel(script)) as running:
        yield running


@pytest.fixture
async def url(recollect):
    async with serving(create_app(recollect=recollect)) as address:
        yield address


async def new_key(recollect, rights=tuple(Right), tenant="default", bounds=NO_BOUNDS, trust=100):
    maker = await recollect.operator.act_for(tenant)
    return (await recollect.create_key(maker, "web", rights, trust, bounds))[1]


async def write(recollect, tenant="default", **order):
    file = io.BytesIO()
    await recollect.operator.exports.write(await recollect.operator.act_for(tenant), ExportOrder(**order), file)
    return file.getvalue()


async def download(client, *names, **more):
    file = io.BytesIO()
    await client.export_scopes(file, *names, **more)
    return file.getvalue()


async def remember(recollect, *scopes):
    for agent, user in scopes:
        await (await recollect.mind(agent, user)).remember(f"a secret of {agent} and {user}")


async def test_a_scope_goes_out_and_comes_back_the_same(recollect, script, url):
    mind = await recollect.mind("ada", "li")
    await Life(mind, script).live(EVERYTHING)
    await recollect.operator.embed_waiting(mind, lambda _: None)
    async with Client(url, await new_key(recollect)) as here:
        first = await download(here, "ada", "li", vectors=["all"])
    assert first == await write(recollect, agent="ada", user="li", vectors=("all",))
    async with Client(url, await new_key(recollect, tenant="elsewhere")) as there:
        outcome = await there.import_scopes(io.BytesIO(first))
        assert outcome.restored and not outcome.left_out and outcome.waiting == 0
        assert await download(there, "ada", "li", vectors=["all"]) == first
        with pytest.raises(InvalidInputError, match="import into an empty one"):
            await there.import_scopes(io.BytesIO(first))


async def test_without_an_event_loop(recollect, url):
    await remember(recollect, ("ada", "li"), ("bea", "li"), ("bea", ""))
    secret, file = await new_key(recollect), io.BytesIO()
    other = await new_key(recollect, tenant="elsewhere")

    def carry():
        with sync.connect(url, secret) as here, sync.connect(url, other) as there:
            here.export_scopes(file, user="li")
            file.seek(0)
            assert there.import_scopes(file).scopes == 2
            assert here.forget_user("li", dry_run=True).removed["memories"] == 2
            erased = here.forget_user("li")
            assert erased.finished_at and here.erasures() == here.erasures("li") == [erased]

    await asyncio.to_thread(carry)
    assert await write(recollect, "elsewhere") == file.getvalue()
    assert (await (await recollect.mind("bea")).browse()).memories
    with pytest.raises(NotFoundError):
        await write(recollect, "elsewhere", agent="bea", user="")


async def test_a_write_key_brings_new_memories_and_no_more_trust_than_it_has(recollect, url):
    mind = await recollect.mind("ada", "li")
    await mind.remember(NewMemory("Li drinks green tea"))
    data = await write(recollect, agent="ada", user="li")
    async with Client(url, await new_key(recollect, (Right.WRITE,), trust=20)) as writer:
        outcome = await writer.import_scopes(io.BytesIO(data), "may", user="zoe")
        assert not outcome.restored and "at most 20" in outcome.remarks[0]
        with pytest.raises(ForbiddenError):
            await download(writer, "ada", "li")
        with pytest.raises(ForbiddenError):
            await writer.forget_user("li")
    [brought] = (await (await recollect.mind("ada", "zoe")).browse()).memories
    assert (brought.content, brought.origin, brought.trust) == ("Li drinks green tea", "import:may", 20)
    async with Client(url, await new_key(recollect, (Right.ADMIN,))) as keeper:
        with pytest.raises(ForbiddenError, match="read"):
            await download(keeper, "ada", "li")
    async with Client(url, await new_key(recollect, (Right.READ,))) as reader:
        with pytest.raises(ForbiddenError):
            await reader.import_scopes(io.BytesIO(data))


async def test_a_bound_key_carries_its_own_scope_and_restores_nothing(recollect, url):
    await remember(recollect, ("ada", "li"), ("ada", "zoe"), ("bob", "li"))
    own = await write(recollect, agent="ada", user="li")
    foreign = await write(recollect, agent="bob", user="li")
    async with Client(url, await new_key(recollect, bounds=Bounds("ada", "li"))) as bound:
        assert await download(bound) == await download(bound, "ada", "li") == own
        for names in (("ada", "zoe"), ("bob", "li"), ("bob", None)):
            with pytest.raises(ForbiddenError):
                await download(bound, *names)
        assert not (await bound.import_scopes(io.BytesIO(own))).restored
        for more in ({}, {"agent": "bob"}):
            with pytest.raises(ForbiddenError):
                await bound.import_scopes(io.BytesIO(foreign), **more)
        for call in (bound.forget_user("li"), bound.erasures()):
            with pytest.raises(ForbiddenError):
                await call


async def test_what_is_wrong_is_said_before_anything_is_sent(recollect, url):
    async with Client(url, await new_key(recollect)) as client:
        with pytest.raises(NotFoundError):
            await download(client, "nobody", "li")
        with pytest.raises(InvalidInputError, match="no vectors of the model x"):
            await remember(recollect, ("ada", "li"))
            await download(client, "ada", "li", vectors=["x"])
        with pytest.raises(InvalidInputError, match="cannot be read as a zip"):
            await client.import_scopes(io.BytesIO(b"no zip"))
        with pytest.raises(NotFoundError):
            await client.forget_user("nobody")


async def test_a_file_may_be_larger_than_another_body_but_not_endless(recollect, url):
    mind, text = await recollect.mind("ada", "li"), "".join(chr(0x4E00 + (n * 7919) % 20_000) for n in range(9_000))
    await mind.load([NewMemory(f"{number}{text[number:]}{text[:number]}") for number in range(22)])
    data = await write(recollect, agent="ada", user="li")
    assert 3 * 1024 * 1024 < len(data) < LARGEST
    async with Client(url, await new_key(recollect, tenant="elsewhere")) as there:
        assert (await there.import_scopes(io.BytesIO(data))).lines["memories/memories"] == 22
        with pytest.raises(RecollectError, match="too large"):
            await there.import_scopes(io.BytesIO(data * 2))


async def test_few_go_at_a_time(recollect, url, monkeypatch):
    await remember(recollect, ("ada", "li"))
    monkeypatch.setattr(transfers, "MOST_TRANSFERS", 0)
    async with Client(url, await new_key(recollect)) as client:
        for call in (download(client), client.import_scopes(io.BytesIO(b"")), client.forget_user("li")):
            with pytest.raises(UnavailableError, match="busy with other exports"):
                await call


async def test_an_export_that_fails_in_the_middle_is_no_whole_file(recollect, url, monkeypatch):
    await remember(recollect, ("ada", "li"))
    whole = recollect.operator.exports.write

    async def break_off(self, caller, order, file):
        await whole(caller, order, file)
        file.seek(-10, io.SEEK_END)
        file.truncate()
        await asyncio.sleep(transfers.PAUSE_SECONDS * 4)
        raise UnavailableError("gone")

    monkeypatch.setattr(type(recollect.operator.exports), "write", break_off)
    monkeypatch.setattr(transfers, "PIECE_BYTES", 100)
    file = io.BytesIO()
    async with Client(url, await new_key(recollect)) as client:
        with pytest.raises(UnavailableError):
            await client.export_scopes(file)
    assert file.getvalue()
    with pytest.raises(zipfile.BadZipFile):
        zipfile.ZipFile(file)


async def test_places_come_back_when_a_client_leaves(recollect, url):
    under_way = transfers.Transfers()
    begun = asyncio.Event()

    async def write_for_ever(file):
        file.write(b"x" * 100_000)
        file.flush()
        begun.set()
        await asyncio.Event().wait()

    pieces = transfers.send_growing(write_for_ever, under_way)
    assert await anext(pieces) and under_way.active == 1
    await pieces.aclose()
    assert begun.is_set() and under_way.active == 0
