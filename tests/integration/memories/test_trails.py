"""Memories are read by many ids at once, and followed along their evidence both ways, through every door."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import httpx
import pytest

from conftest import http_client, new_key
from recollect import sync
from recollect.client import Client
from recollect.client.calls import build_request
from recollect.errors import ForbiddenError, InvalidInputError, NotFoundError
from recollect.models.memories import Kind, NewMemory
from recollect.models.service import KeyBinding, Right
from recollect.store.memories import evidence
from support.service.mcp_doors import listening

SCOPE = {"agent": "ada", "user": "li"}
MAX_REQUEST_LINE = 8_000
"""What common proxies accept."""


def thought(content, *sources):
    return NewMemory(content, kind=Kind.THOUGHT, evidence=tuple(sources))


async def remember(mind, *memories):
    return [receipt.id for receipt in await mind.remember(list(memories))]


def told(steps):
    return [(step.memory.content, step.depth) for step in steps]


async def test_many_are_read_in_the_order_of_their_ids(mind):
    first, second, third = await remember(mind, "one", "two", "three")
    revised = await mind.update(second, content="two, again")
    asked = [third, uuid4(), first, second, revised.id, third]
    assert [each.content for each in (await mind.list(ids=asked)).memories] == ["three", "one", "two", "two, again"]


async def test_many_are_at_most_two_hundred_without_a_filter(mind):
    with pytest.raises(InvalidInputError, match="at most 200"):
        await mind.list(ids=[uuid4() for _ in range(201)])
    for more in ({"filter": {"kinds": ["chat"]}}, {"words": "tea"}, {"cursor": uuid4()}):
        with pytest.raises(InvalidInputError, match="cannot be combined"):
            await mind.list(ids=[uuid4()], **more)


async def test_two_hundred_ids_fit_in_the_line_of_a_request(recollect):
    _, secret = await new_key(recollect, rights=(Right.READ, Right.WRITE))
    async with listening(recollect) as url, Client(url, secret) as client:
        view = await client.mind("ada" * 40, "li" * 60)
        made = [receipt.id for receipt in await view.remember([f"memory {number}" for number in range(200)])]
        assert [each.id for each in (await view.list(ids=made[::-1])).memories] == made[::-1]
        _, path, content = build_request(view, "list", {"ids": made})
    assert len(f"GET {httpx.URL(path, params=content['params'])} HTTP/1.1") < MAX_REQUEST_LINE


async def test_memories_of_another_scope_or_tenant_are_unknown(recollect, mind):
    [own] = await remember(mind, "mine")
    for other in (await recollect.mind("ada", "wu"), await recollect.mind("ada", "li", tenant="other")):
        await remember(other, "theirs")
        assert (await other.list(ids=[own])).memories == ()
        with pytest.raises(NotFoundError):
            await other.evidence(own)


async def test_evidence_leads_both_ways_each_memory_once_the_nearest_first(mind):
    a, b = await remember(mind, "a", "b")
    [c] = await remember(mind, thought("c", a, b))
    [d] = await remember(mind, thought("d", c, a))
    [e] = await remember(mind, thought("e", d))
    found = await mind.evidence(d)
    assert told(found.sources) == [("a", 1), ("c", 1), ("b", 2)]
    assert [step.of for step in found.sources] == [d, d, c]
    assert told(found.derived) == [("e", 1)]
    assert (found.derived[0].of, found.derived[0].memory.id, found.whole) == (d, e, True)
    assert told((await mind.evidence(a)).derived) == [("c", 1), ("d", 1), ("e", 2)]


async def test_a_walk_ends_at_its_depth_and_says_so(mind):
    [last] = await remember(mind, "0")
    for number in range(1, 9):
        [last] = await remember(mind, thought(str(number), last))
    near = await mind.evidence(last, depth=2)
    assert (told(near.sources), near.whole) == ([("7", 1), ("6", 2)], False)
    far = await mind.evidence(last, depth=6)
    assert (len(far.sources), far.whole) == (6, False)
    sixth = far.sources[-1].memory.id
    assert (await mind.evidence(sixth, depth=6)).whole
    with pytest.raises(InvalidInputError, match="depth"):
        await mind.evidence(last, depth=7)


async def test_a_walk_ends_at_its_limit_and_says_so(mind, monkeypatch):
    [hub] = await remember(mind, "hub")
    await remember(mind, *(thought(f"t{number}", hub) for number in range(12)))
    some = await mind.evidence(hub, limit=5)
    assert (len(some.derived), some.whole) == (5, False)
    every = await mind.evidence(hub, limit=12)
    assert (len(every.derived), every.whole) == (12, True)
    monkeypatch.setattr(evidence, "MAX_LINKS", 10)
    assert not (await mind.evidence(hub, limit=12)).whole


async def test_what_is_hidden_is_not_walked_through(mind):
    [said] = await mind.conversation("c").append("a secret")
    [c] = await remember(mind, thought("c", said.id))
    [d] = await remember(mind, thought("d", c))
    assert told((await mind.evidence(said.id)).derived) == [("c", 1), ("d", 2)]
    [plain] = await remember(mind, "plain")
    await mind.conversation("c").delete()
    assert (await mind.evidence(plain)).sources == ()
    for hidden in (said.id, c, d):
        with pytest.raises(NotFoundError):
            await mind.evidence(hidden)


async def test_over_http_and_by_both_clients(recollect):
    _, secret = await new_key(recollect, rights=(Right.READ,))
    mind = await recollect.mind("ada", "li")
    [source] = await remember(mind, "source")
    [made] = await remember(mind, thought("made", source))
    async with http_client(recollect, secret) as http:
        read = await http.get("/v1/memories", params=SCOPE | {"ids": [str(made), str(source)]})
        assert [each["content"] for each in read.json()["memories"]] == ["made", "source"]
        walked = (await http.get(f"/v1/memories/{made}/evidence", params=SCOPE | {"depth": 1, "limit": 1})).json()
        [step] = walked["sources"]
        assert (step["memory"]["content"], step["of"], step["depth"]) == ("source", str(made), 1)
        assert (walked["derived"], walked["whole"]) == ([], True)
        assert (await http.get(f"/v1/memories/{uuid4()}/evidence", params=SCOPE)).status_code == 404
        many = [str(uuid4()) for _ in range(201)]
        assert (await http.get("/v1/memories", params=SCOPE | {"ids": many})).status_code == 422
        assert (await http.get(f"/v1/memories/{made}/evidence", params=SCOPE | {"depth": 7})).status_code == 422

    def without_a_loop(url):
        with sync.connect(url, secret) as client:
            view = client.mind("ada", "li")
            return view.list(ids=[made]), view.evidence(made)

    async with listening(recollect) as url, Client(url, secret) as client:
        view = await client.mind("ada", "li")
        here = await mind.list(ids=[made]), await mind.evidence(made)
        assert (await view.list(ids=[made]), await view.evidence(made)) == here
        assert await asyncio.to_thread(without_a_loop, url) == here


async def test_a_bound_key_reads_in_its_own_scope_alone(recollect):
    caller = await recollect.operator.act_for("default")
    _, secret = await recollect.create_key(caller, "bound", (Right.READ,), 50, KeyBinding("ada", "li"))
    [own] = await remember(await recollect.mind("ada", "li"), "mine")
    async with http_client(recollect, secret) as http:
        assert (await http.get(f"/v1/memories/{own}/evidence", params={"agent": ""})).status_code == 200
        for other in ({"agent": "ada", "user": "wu"}, {"agent": "bo"}):
            assert (await http.get(f"/v1/memories/{own}/evidence", params=other)).status_code == 403
            assert (await http.get("/v1/memories", params=other | {"ids": [str(own)]})).status_code == 403


async def test_a_key_without_the_right_reads_nothing(recollect):
    _, secret = await new_key(recollect, rights=(Right.WRITE,))
    async with listening(recollect) as url, Client(url, secret) as client:
        view = await client.mind("ada", "li")
        for asked in (view.list(ids=[uuid4()]), view.evidence(uuid4())):
            with pytest.raises(ForbiddenError):
                await asked
