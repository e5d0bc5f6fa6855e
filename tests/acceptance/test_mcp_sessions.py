"""Many MCP sessions at once, over HTTP and over processes: no error, and nobody reads what is another's."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack

import pytest

from recollect.models.conversations import NewMessage
from recollect.models.memories import Role
from recollect.wiring import connected
from support.measuring.sizes import Sizes
from support.programs.command_line import settings_of
from support.service.made_settings import make_settings
from support.service.mcp_doors import bound_key, listening, over_http, over_stdio

SESSIONS = 32
PROCESSES = Sizes("processes", ci=8, long=32)
STARTING = 4
"""How many processes start at a time; once started, all are open until the last one is done."""
ROUNDS = Sizes("rounds each", ci=1, long=3)
PATIENT = {"request_timeout_seconds": 120, "recall__channel_timeout_seconds": 60}
"""What is measured here is order, not speed: a machine under load answers late, and that is no error."""


@pytest.fixture
async def recollect(addresses, embedder):
    async with connected(make_settings(embedder="fake", **PATIENT), addresses, embedder) as running:
        yield running


async def converse(recollect, number):
    """Give a session's scope a conversation to read."""
    conversation = (await recollect.mind("ada", f"user-{number}")).conversation("talk")
    said = f"user {number} asks about lot {number}"
    await conversation.append([NewMessage(Role.USER, said), NewMessage(Role.ASSISTANT, f"lot {number} is sold")])


class Session:
    """One scripted session: what it calls, what went wrong, and what it was shown that is not its own."""

    def __init__(self, client, number, count, tally):
        self.client, self.number, self.tally = client, number, tally
        self.others = [f"lot {other} " for other in range(count) if other != number]

    async def call(self, tool, **arguments):
        answer = await self.client.call_tool(tool, arguments)
        self.tally[tool] += 1
        shown = answer.content[0].text + str(answer.structured_content)
        self.tally["errors"] += answer.is_error
        assert not answer.is_error, f"{tool} of session {self.number}: {shown}"
        self.tally["mixed up"] += any(other in shown for other in self.others)
        return answer.structured_content

    async def run(self):
        mine = f"lot {self.number} "
        for turn in range(ROUNDS.now):
            stored = await self.call("remember", content=f"{mine}goes for {turn} pounds", importance=5 + turn)
            found = await self.call("recall", text="for how many pounds does the lot go", limit=50, kinds=["event"])
            assert stored["id"] in [hit["id"] for hit in found["hits"]]
            assert all(hit["content"].startswith(mine) for hit in found["hits"])
            said = await self.call("history", conversation="talk")
            assert [message["content"].split()[-1] for message in said["messages"]] == [str(self.number), "sold"]
            within = await self.call("context", text="what of the lot", conversation="talk", budget=2_000)
            assert mine in within["text"]
            gone = await self.call("forget", ids=[stored["id"]])
            assert gone["forgotten"] == [stored["id"]]
            left = await self.call("recall", text="for how many pounds does the lot go", limit=50, kinds=["event"])
            assert left["hits"] == []


def check(tally, transport, count):
    calls = sum(tally[tool] for tool in ("remember", "recall", "history", "context", "forget"))
    print(f"\n{transport}: {count} sessions, {calls} calls, {dict(tally)}")
    assert (tally["errors"], tally["mixed up"], calls) == (0, 0, count * ROUNDS.now * 6)


@pytest.mark.promise("MCP sessions of 32 users at once over HTTP get no error and nothing of each other", ROUNDS)
async def test_32_sessions_over_http(recollect):
    keys = [await bound_key(recollect, "ada", f"user-{number}") for number in range(SESSIONS)]
    await asyncio.gather(*(converse(recollect, number) for number in range(SESSIONS)))
    async with listening(recollect) as url, asyncio.TaskGroup() as group:
        results, opened = Counter({"errors": 0, "mixed up": 0}), asyncio.Barrier(SESSIONS)

        async def hold(number):
            mode = ("auto", "legacy")[number % 2]
            async with over_http(url, keys[number], mode) as client:
                await opened.wait()
                await Session(client, number, SESSIONS, results).run()

        for number in range(SESSIONS):
            group.create_task(hold(number))
    check(results, "HTTP", SESSIONS)


@pytest.mark.promise("MCP sessions at once, each a process, get no error and nothing of each other", PROCESSES, ROUNDS)
async def test_sessions_over_processes(recollect, addresses):
    count = PROCESSES.now
    await asyncio.gather(*(converse(recollect, number) for number in range(count)))
    keys = [await bound_key(recollect, "ada", f"user-{number}") for number in range(count)]
    timeouts = {f"RECOLLECT_{name.upper()}": str(value) for name, value in PATIENT.items()}
    results, starting = Counter({"errors": 0, "mixed up": 0}), asyncio.Semaphore(STARTING)
    opened = asyncio.Barrier(count)

    async with listening(recollect) as url, asyncio.TaskGroup() as group:

        async def hold(number):
            mode, here = ("auto", "legacy")[number // 2 % 2], number % 2 == 0
            if here:  # half of them in their own process, half in front of the server
                options = ("--agent", "ada", "--user", f"user-{number}")
                environment = settings_of(addresses, embedder="none", pool_size="2") | timeouts
            else:
                options, environment = ("--url", url), timeouts | {"RECOLLECT_KEY": keys[number]}
            async with AsyncExitStack() as stack:
                async with starting:
                    client = await stack.enter_async_context(over_stdio(*options, mode=mode, **environment))
                await opened.wait()
                await Session(client, number, count, results).run()
                await opened.wait()

        for number in range(count):
            group.create_task(hold(number))
    check(results, "processes", count)
