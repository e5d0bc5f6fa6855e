"""Whole scopes leave and come back over HTTP, and a user is erased by one request."""

from __future__ import annotations

import asyncio
import io
import zipfile

import pytest

from recollect import sync
from recollect.client import Client
from recollect.doors.http import middleware, transfers
from recollect.doors.http.app import create_app
from recollect.errors import ForbiddenError, InvalidInputError, NotFoundError, RecollectError, UnavailableError
from recollect.models.imports import ExportRequest
from recollect.models.memories import NewMemory
from recollect.models.service import KeyBinding, Right
from recollect.wiring import connected
from support.imports.whole_scopes import EVERYTHING, Life
from support.models.fake_chat import FakeChatModel
from support.programs.waiting import until
from support.service.made_settings import make_settings
from support.service.serving import serving

LARGEST = 4_000_000
NO_BOUNDS = KeyBinding()


@pytest.fixture
async def recollect(addresses, embedder, script):
    chosen = make_settings(
        embedder="fake",
        recall__channel_timeout_seconds=30,
        embedding__wait_timeout_seconds=30,
        operations__max_import_bytes=LARGEST,
    )
    async with connected(chosen, addresses, embedder, FakeChatModel(script)) as running:
        yield running


@pytest.fixture
def app(recollect):
    return create_app(recollect=recollect)


@pytest.fixture
async def url(app):
    async with serving(app) as address:
        yield address


async def new_key(recollect, rights=tuple(Right), tenant="default", bounds=NO_BOUNDS, trust=100):
    maker = await recollect.operator.act_for(tenant)
    return (await recollect.create_key(maker, "web", rights, trust, bounds))[1]


async def write(recollect, tenant="default", **order):
    file = io.BytesIO()
    await recollect.operator.exports.write_export_file(
        await recollect.operator.act_for(tenant), ExportRequest(**order), file
    )
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
    assert (await (await recollect.mind("bea")).list()).memories
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
    [brought] = (await (await recollect.mind("ada", "zoe")).list()).memories
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
    async with Client(url, await new_key(recollect, bounds=KeyBinding("ada", "li"))) as bound:
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


async def test_a_tenant_has_few_files_and_erasures_wait_for_none(recollect, url, monkeypatch):
    await remember(recollect, ("ada", "li"))
    monkeypatch.setattr(transfers, "MAX_FILES", 0)
    async with Client(url, await new_key(recollect)) as client:
        for call in (download(client), client.import_scopes(io.BytesIO(b""))):
            with pytest.raises(UnavailableError, match="busy with other exports"):
                await call
        assert (await client.forget_user("li")).finished_at


async def begin_slow_upload(url, secret):
    """Begin an upload whose body never ends."""
    _, _, address = url.rpartition("//")
    host, _, port = address.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = (f"Host: {address}", f"Authorization: Bearer {secret}", "Content-Length: 3000000")
    writer.write("\r\n".join(["POST /v1/import HTTP/1.1", *head, "", "P"]).encode())
    await writer.drain()
    return reader, writer


async def test_slow_uploads_of_a_tenant_keep_nobody_waiting(recollect, app, url):
    await remember(recollect, ("ada", "li"))
    slow, own = await new_key(recollect, tenant="slow"), await new_key(recollect)
    opened = [await begin_slow_upload(url, slow) for _ in range(2)]
    under_way = app.state.transfers
    await until(lambda: sum(under_way.files.values()) == 2)
    async with Client(url, own) as client, Client(url, await new_key(recollect, tenant="elsewhere")) as there:
        data = await download(client, "ada", "li")
        assert (await there.import_scopes(io.BytesIO(data))).restored
        assert (await client.forget_user("li")).finished_at
    async with Client(url, slow) as client:
        assert (await client.import_scopes(io.BytesIO(data), "x", agent="eve")).restored
    for reader, writer in opened:
        writer.close()
        await reader.read()
    await until(lambda: not under_way.files)


async def test_who_sends_too_slowly_is_told_so(recollect, url, monkeypatch):
    monkeypatch.setattr(middleware, "UPLOAD_SECONDS", 5.0)
    reader, writer = await begin_slow_upload(url, await new_key(recollect))
    assert b" 408 " in await reader.readline()
    writer.close()


async def test_an_export_that_fails_in_the_middle_is_no_whole_file(recollect, url, monkeypatch):
    await remember(recollect, ("ada", "li"))
    whole = recollect.operator.exports.write_export_file

    async def break_off(self, caller, order, file):
        await whole(caller, order, file)
        file.seek(-10, io.SEEK_END)
        file.truncate()
        await asyncio.sleep(transfers.PAUSE_SECONDS * 4)
        raise UnavailableError("gone")

    monkeypatch.setattr(type(recollect.operator.exports), "write_export_file", break_off)
    monkeypatch.setattr(transfers, "PIECE_BYTES", 100)
    file = io.BytesIO()
    async with Client(url, await new_key(recollect)) as client:
        with pytest.raises(UnavailableError):
            await client.export_scopes(file)
    assert file.getvalue()
    with pytest.raises(zipfile.BadZipFile):
        zipfile.ZipFile(file)


async def test_places_come_back_when_a_client_leaves():
    under_way, begun = transfers.TransferLimiter(), asyncio.Event()

    async def write_for_ever(file):
        file.write(b"x" * 100_000)
        file.flush()
        begun.set()
        await asyncio.Event().wait()

    several = [transfers.send_growing(write_for_ever, under_way, 1) for _ in range(transfers.MAX_OF_TENANT)]
    for pieces in several:
        assert await anext(pieces)
    begun.clear()
    waiting = asyncio.ensure_future(anext(later := transfers.send_growing(write_for_ever, under_way, 1)))
    other = transfers.send_growing(write_for_ever, under_way, 2)
    assert await anext(other)
    assert not waiting.done() and under_way.files == {1: transfers.MAX_OF_TENANT + 1, 2: 1}
    await several.pop().aclose()
    assert await waiting
    for pieces in (*several, later, other):
        await pieces.aclose()
    assert not under_way.files


async def test_who_reads_slowly_holds_no_slot_and_loses_the_rest(monkeypatch):
    under_way, size = transfers.TransferLimiter(), 10 * transfers.PIECE_BYTES
    monkeypatch.setattr(middleware, "UPLOAD_SECONDS", 0.0)

    async def write(file):
        file.write(b"x" * size)
        file.flush()

    slow = [transfers.send_growing(write, under_way, 1) for _ in range(transfers.MAX_TRANSFERS + 1)]
    for pieces in slow:
        assert len(await anext(pieces)) == transfers.PIECE_BYTES
    for pieces in slow:
        with pytest.raises(UnavailableError, match="too slowly"):
            await anext(pieces)
    assert not under_way.files
