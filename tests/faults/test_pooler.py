"""Behind a pooler that keeps no prepared statement, nothing fails and nothing is prepared; one line says so."""

from __future__ import annotations

import asyncio
import json
from asyncio import timeout
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace

import pytest

from conftest import PATIENT
from recollect.llm.fake import FakeEmbedder
from recollect.models.conversations import NewMessage
from recollect.models.memories import Role
from recollect.store.database import pool
from recollect.store.database.connect_errors import connect
from recollect.wiring import connected
from support.database.pooler import pooled
from support.programs.waiting import until
from support.service.made_settings import make_settings

SERVERS, CLIENTS, CALLERS, ROUNDS = 2, 8, 12, 5


def behind(address, addresses):
    """A service with more connections to the pooler than the pooler has to the server."""
    settings = make_settings(embedder="fake", pool_size=CLIENTS, **PATIENT)
    return connected(settings, replace(addresses, service=address), FakeEmbedder())


def told(caplog):
    lines = [json.loads(record.getMessage()) for record in caplog.records if record.name == "recollect.database"]
    return [line for line in lines if line["event"] == "prepared_statements_disabled"]


async def call(mind, number):
    """Do a little of everything."""
    await mind.remember(f"apple number {number}")
    await mind.conversation(f"c{number}").append(NewMessage(Role.USER, f"what about apple {number}?"))
    found = await mind.recall(f"apple number {number}")
    await mind.conversation(f"c{number}").history()
    # Whether the access is noted depends on time: where callers wait for two connections, an answer goes first.
    assert found.hits


async def call_all(minds):
    for number in range(ROUNDS):
        done = await asyncio.gather(*(call(mind, number) for mind in minds), return_exceptions=True)
        yield [each for each in done if each is not None]


@pytest.mark.promise("Behind a pooler that keeps no prepared statements, no call fails")
async def test_no_call_fails_and_one_line_tells_of_it(addresses, caplog):
    async with pooled(addresses.service, SERVERS) as address, behind(address, addresses) as running:
        minds = [await running.mind("ada", f"user-{number}") for number in range(CALLERS)]
        assert [failed async for failed in call_all(minds)] == [[]] * ROUNDS
        assert running.parts.database.statistics()["pool_size"] > SERVERS
    [line] = told(caplog)
    assert line["setting"] == "RECOLLECT_POSTGRES__PREPARE_STATEMENTS=false"


async def test_changes_are_followed_behind_a_pooler_that_passes_no_notifications_on(addresses, caplog):
    async with pooled(addresses.service, SERVERS) as address, behind(address, addresses) as running:
        mind = await running.mind("ada", "li")
        async with aclosing(mind.changes()) as changes:
            await anext(changes)
            for number in range(1, 4):
                await mind.remember(f"apple {number}")
                assert (await anext(changes)).number == number
            await until(lambda: [line for line in caplog.messages if "listen_unavailable" in line])
            await mind.remember("apple 4")
            assert (await anext(changes)).number == 4


async def test_a_pooler_that_does_not_show_is_noticed_by_the_first_statement_that_is_lost(
    addresses, caplog, monkeypatch
):
    """What is lost fails with an error that may be repeated, and never again."""

    async def look_away(connection, preparing):
        """Find no pooler."""

    monkeypatch.setattr(pool, "find_pooler", look_away)
    async with pooled(addresses.service, SERVERS) as address, behind(address, addresses) as running:
        minds = [await running.mind("ada", f"user-{number}") for number in range(CALLERS)]
        first, *others = [failed async for failed in call_all(minds)]
        assert {type(each).__name__ for each in first} == {"UnavailableError"}
        assert others == [[]] * (ROUNDS - 1)
    [line] = told(caplog)
    assert "2600" in line["reason"] or "42P05" in line["reason"]


async def test_a_client_that_is_idle_after_a_pipeline_keeps_no_server(addresses):
    async with pooled(addresses.service, 1) as address, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(await connect(address)) for _ in range(4)]
        # Whether an answer is there before the pipeline ends is a matter of chance, so it ends often.
        for number in range(50):
            for client in clients:
                async with timeout(60), client.pipeline():
                    answer = await client.execute("select %s::integer as answer", [number])
                assert await answer.fetchone() == {"answer": number}
