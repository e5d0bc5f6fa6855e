"""The SDK and its blocking twin against a real server on a real socket."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from starlette.responses import Response

from conftest import new_key
from recollect import NewMemory, sync
from recollect.client import Client
from recollect.doors.http.app import create_app
from recollect.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError, UnauthenticatedError
from recollect.models import Cue, Kind
from recollect.models.agents import Association, Profile
from recollect.models.memories import Triple
from recollect.models.service import Right
from support.service.serving import serving


@pytest.fixture
async def served(recollect):
    async with serving(create_app(recollect=recollect)) as url:
        _, secret = await new_key(recollect)
        yield url, secret


async def test_the_client_has_the_same_verbs(served):
    async with Client(*served) as client:
        mind = await client.mind("ada", "li")
        moment = datetime(2024, 5, 6, tzinfo=UTC)
        new = NewMemory("green apples", Kind.MESSAGE, keywords=("Fruit",), occurred_at=moment, metadata={"a": [1]})
        [receipt] = await mind.remember(new)
        [derived] = await mind.remember(NewMemory("a thought", Kind.THOUGHT, evidence=(receipt.id,)))
        memory = await mind.get(receipt.id)
        assert (memory.content, memory.kind, memory.occurred_at) == ("green apples", Kind.MESSAGE, moment)
        assert (memory.keywords, memory.metadata, memory.origin) == (("fruit",), {"a": [1]}, "http:test")
        hits = (await mind.recall(Cue("apples", kinds=(Kind.MESSAGE,)), limit=3)).hits
        assert [hit.memory.id for hit in hits] == [receipt.id]
        page = await mind.list(limit=1)
        assert (await mind.list(cursor=page.next_cursor)).memories[0].id == derived.id
        assert set(await mind.forget([receipt.id])) == {receipt.id, derived.id}


async def test_errors_keep_their_kind_over_the_wire(served, recollect):
    url, secret = served
    _, reader = await new_key(recollect, rights=(Right.READ,))
    async with Client(url, secret) as client, Client(url, "rec_nobody") as stranger, Client(url, reader) as reading:
        mind = await client.mind("ada")
        await mind.remember("one", idempotency_key="k")
        for error, call in [
            (ConflictError, mind.remember("two", idempotency_key="k")),
            (InvalidInputError, mind.remember(" ")),
            (InvalidInputError, mind.recall("\0")),
            (NotFoundError, mind.get(uuid4())),
            (UnauthenticatedError, (await stranger.mind("ada")).recall("one")),
            (ForbiddenError, (await reading.mind("ada")).remember("x")),
        ]:
            with pytest.raises(error):
                await call


async def test_a_retried_write_is_stored_once(recollect):
    """A gateway loses the first answer, after the write was committed."""
    _, secret = await new_key(recollect)
    app = create_app(recollect=recollect)
    lost = iter([True])

    async def gateway(scope, receive, send):
        if scope["type"] != "http" or not next(lost, False):
            await app(scope, receive, send)
            return
        answers = []

        async def keep(message):
            answers.append(message)

        await app(scope, receive, keep)
        assert answers[0]["status"] == 201
        await Response(status_code=503, headers={"Retry-After": "0"})(scope, receive, send)

    async with serving(gateway) as url, Client(url, secret) as client:
        mind = await client.mind("ada")
        await mind.remember("only once")
        assert len((await mind.list()).memories) == 1


async def test_the_blocking_twin_needs_no_event_loop(served):
    def work():
        with sync.using(Client(*served)) as memory:
            mind = memory.mind("ada", "li")
            [receipt] = mind.remember("green apples")
            assert mind.recall("apples").hits[0].memory.id == receipt.id
            assert mind.get(receipt.id).content == "green apples"
            assert len(mind.list().memories) == 1
            assert mind.overview().memories == 1
            mind.set_profile(Profile(limit=3))
            assert mind.profile() == Profile(limit=3)
            assert mind.associate(Triple("nobody")) == [Association(Triple("nobody"), (), ())]
            assert mind.list(keyword="nobody").memories == ()
            assert mind.feedback(mind.recall(Cue("apples", channels=("stream",))), [receipt.id]) == 1
            assert mind.forget([receipt.id]) == [receipt.id]

    await asyncio.to_thread(work)
