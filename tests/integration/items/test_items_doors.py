"""The doors to items: the route, the SDK and the blocking wrapper say the same as the mind itself."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from conftest import new_key
from recollect.client import Client
from recollect.doors.http.app import create_app
from recollect.errors import ConflictError, InvalidInputError
from recollect.models.items import DropItem, FindItems, GetItem, ListPaths, PutItem
from recollect.settings import Settings
from recollect.sync import using
from recollect.wiring import connected
from support.service.serving import serving

LI, TEA = ("users", "li"), "tea"
SCOPE = {"agent": "ada", "user": "li"}


@pytest.fixture
async def client(recollect):
    _, secret = await new_key(recollect)
    async with serving(create_app(recollect=recollect)) as url, Client(url, secret) as opened:
        yield opened


async def use(http, *operations, **headers):
    body = SCOPE | {"operations": list(operations)}
    return await http.post("/v1/items", json=body, headers={k.replace("_", "-"): v for k, v in headers.items()})


async def test_the_route_answers_each_operation_by_what_it_is(http):
    put = {"op": "put", "path": [*LI], "key": TEA, "value": {"n": 1}, "text": "Li drinks tea"}
    first = await use(http, put, {"op": "get", "path": [*LI], "key": TEA}, idempotency_key="k")
    assert first.status_code == 200
    item, before = first.json()["results"]
    assert before == {"item": None}
    assert (item["item"]["path"], item["item"]["revision"], item["item"]["value"]) == ([*LI], 1, {"n": 1})
    assert (await use(http, put, {"op": "get", "path": [*LI], "key": TEA}, idempotency_key="k")).json() == {
        "results": [item, item]
    }
    asked = await use(
        http,
        {"op": "find", "under": ["users"], "where": {"n": {"$gte": 1}}},
        {"op": "find", "text": "Li drinks tea"},
        {"op": "paths", "depth": 1},
        {"op": "drop", "path": [*LI], "key": TEA},
        {"op": "drop", "path": [*LI], "key": TEA},
    )
    newest, nearest, paths, dropped, nothing = asked.json()["results"]
    assert newest == {"found": [{"item": item["item"], "score": None}]}
    assert nearest["found"][0]["score"] == pytest.approx(1, abs=1e-3)
    assert (paths, dropped, nothing) == ({"paths": [["users"]]}, {"dropped": True}, {"dropped": False})


@pytest.mark.parametrize(
    ("operation", "status"),
    [
        ({"op": "get", "path": ["a"], "key": "k", "value": {}}, 422),
        ({"op": "take", "path": ["a"], "key": "k"}, 422),
        ({"op": "put", "path": [], "key": "k", "value": {}}, 422),
        ({"op": "put", "path": ["a"], "key": "k", "value": []}, 422),
        ({"op": "put", "path": ["a"], "key": "k", "value": {"s": "\x00"}}, 422),
        ({"op": "put", "path": ["a"], "key": "k", "value": {}, "expected": 3}, 409),
        ({"op": "find", "where": {"a": {"$regex": "x"}}}, 422),
    ],
)
async def test_the_route_refuses_what_cannot_be(http, operation, status):
    answer = await use(http, operation)
    assert answer.status_code == status, answer.text
    assert "\x00" not in answer.json()["detail"]


async def test_the_sdk_gives_the_same_values_as_the_mind(client, recollect):
    here, there = await recollect.mind("ada", "li"), await client.mind("ada", "li")
    when = datetime(2026, 3, 1, 8, tzinfo=UTC)
    value = {"n": 1, "deep": {"list": [1.5, None, True, "张伟"]}, "large": 2**70}
    put = await there.items.put(LI, TEA, value, text="Li drinks tea", embedding=[1, 0], occurred_at=when, importance=7)
    assert await here.items.get(LI, TEA) == await there.items.get(LI, TEA) == put
    assert put.value == value
    reads = [
        FindItems(("users",), {"n": 1}),
        FindItems(text="Li drinks tea"),
        FindItems(embedding=[1, 0]),
        ListPaths(),
        GetItem(LI, "x"),
    ]
    assert await there.items.batch(reads) == await here.items.batch(reads)
    assert await there.items.find(LI, where={"n": {"$gt": 1}}) == ()
    assert await there.items.paths(("*", "li")) == (LI,)
    with pytest.raises(ConflictError):
        await there.items.put(LI, TEA, {}, expected=0)
    with pytest.raises(InvalidInputError):
        await there.items.put((), TEA, {})
    assert await there.items.batch([DropItem(LI, TEA), PutItem(LI, "b", {}, memory=False, text="kept")]) == [
        True,
        await here.items.get(LI, "b"),
    ]
    assert not await there.items.drop(LI, TEA)


def test_without_an_event_loop(addresses, embedder):
    @asynccontextmanager
    async def opened():
        async with connected(Settings(embedder="fake"), addresses, embedder) as running:
            yield running

    with using(opened()) as blocking:
        items = blocking.mind("ada", "li").items
        put = items.put(LI, TEA, {"n": 1}, text="Li drinks tea")
        assert items.get(LI, TEA) == put
        assert [each.item for each in items.find(text="tea")] == [put]
        assert items.paths() == (LI,)
        assert items.batch([GetItem(LI, TEA)]) == [put]
        assert items.drop(LI, TEA)
