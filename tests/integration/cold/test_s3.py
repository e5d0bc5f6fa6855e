"""Cold scopes in a real S3 server: out and back the same, sealed, erased, and told when the server is gone."""

from __future__ import annotations

import asyncio
import base64
import os

import pytest

from recollect.errors import ColdStorageError
from recollect.models.memories import NewMemory
from recollect.models.recall import Cue
from support.engines.mirrored import follow, held_ids, search_settings
from support.imports.whole_scopes import EVERYTHING, Life
from support.memories.cold_scopes import chilly, export, objects_in, send_out, tier_of

pytestmark = pytest.mark.engines


@pytest.fixture
async def recollect(addresses, embedder, script, object_server):
    key = base64.b64encode(os.urandom(32)).decode()
    given = {"cold__options": object_server.options, "cold__key": key, "cold__timeout_seconds": 5}
    async with chilly(addresses, embedder, object_server.url, script, **given) as running:
        yield running


async def filled(recollect, user="li", count=5):
    mind = await recollect.mind("ada", user)
    await mind.remember([NewMemory(f"{user} likes tea number {number}.") for number in range(count)])
    return mind


async def test_a_scope_with_everything_goes_out_and_comes_back_the_same(recollect, script, owner, object_server):
    mind = await recollect.mind("ada", "li")
    await Life(mind, script).live(EVERYTHING)
    await recollect.operator.embed_waiting(mind, lambda _: None)
    owner.execute("delete from procrastinate_jobs")
    first = await export(recollect, agent="ada", user="li")
    moved = await send_out(recollect)
    assert moved.moved == 1
    assert [path.stat().st_size for path in objects_in(object_server.place)] == [moved.bytes]
    assert await export(recollect, agent="ada", user="li") == first
    assert (await mind.recall(Cue("tea", touch=False))).hits and tier_of(owner) == "hot"
    assert await export(recollect, agent="ada", user="li") == first
    assert objects_in(object_server.place) == []


async def test_a_large_scope_is_sent_in_parts(recollect, owner, object_server):
    mind = await recollect.mind("ada", "li")
    texts = [base64.b64encode(os.urandom(6_000)).decode() for _ in range(1_500)]
    for start in range(0, len(texts), 250):
        await mind.load([NewMemory(text) for text in texts[start : start + 250]])
    owner.execute("delete from procrastinate_jobs")
    first = await export(recollect, agent="ada", user="li")
    moved = await send_out(recollect)
    assert moved.bytes > 9_000_000
    assert (await mind.list()).memories
    assert await export(recollect, agent="ada", user="li") == first


async def test_an_erased_user_is_gone_from_the_bucket(recollect, object_server):
    for user in ("bo", "li"):
        await filled(recollect, user)
    await send_out(recollect, user=None)
    assert len(objects_in(object_server.place)) == 2
    caller = await recollect.operator.act_for("default")
    receipt = await recollect.operator.erasures.forget_user(caller, "li")
    assert receipt.finished_at and receipt.removed["memories"] == 5
    assert len(objects_in(object_server.place)) == 1
    await recollect.operator.erasures.forget_user(caller, "bo")


async def test_a_server_that_is_gone_is_told_and_comes_back(recollect, owner, object_server):
    mind = await filled(recollect)
    await send_out(recollect)
    await asyncio.to_thread(object_server.kill)
    with pytest.raises(ColdStorageError, match="The object storage failed"):
        await mind.list()
    assert tier_of(owner) == "cold"
    await asyncio.to_thread(object_server.start)
    assert len((await mind.list()).memories) == 5


async def test_many_scopes_at_once(recollect, owner, object_server):
    minds = [await filled(recollect, f"user-{number}", 2) for number in range(20)]
    assert (await send_out(recollect, user=None)).moved == 20
    found = await asyncio.gather(*(mind.list() for mind in minds))
    assert {len(page.memories) for page in found} == {2}
    assert objects_in(object_server.place) == []


async def test_a_mirror_lets_go_of_a_scope_and_has_it_again(addresses, embedder, owner, object_server, search_server):
    given = {
        "cold__options": object_server.options,
        **search_settings(search_server.url),
        "mirrors__timeout_seconds": 60,
    }
    async with chilly(addresses, embedder, object_server.url, **given) as recollect:
        mind = await filled(recollect)
        await recollect.operator.mirrors.build("opensearch", lambda _: None)
        scope_id = (await mind.access.locate()).scope_id
        before = await held_ids(recollect, "opensearch", mind)
        assert len(before) == 5
        await send_out(recollect)
        await follow(recollect)
        feed = (await recollect.operator.mirrors.verify("opensearch", lambda _: None)).differing
        assert feed == 0 and tier_of(owner) == "cold"
        assert owner.execute("select scope_id from mirror_positions").fetchall() == [(scope_id,)]
        await mind.list()
        await follow(recollect)
        assert await held_ids(recollect, "opensearch", mind) == before
        await recollect.operator.mirrors.drop("opensearch")
