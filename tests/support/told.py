"""Callers that repeat a write until it is acknowledged, and the oracle that looks for what they were told."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID

import httpx
import psycopg

WAIT_SECONDS = 120
"""No test is about this limit; it only ends one that would wait for ever."""
REPEATED = "select content from memories group by content having count(*) > 1"


@dataclass
class Acknowledged:
    """What callers were told."""

    ids: dict[str, list[str]] = field(default_factory=dict)
    """The memories of each write, by its idempotency key."""
    codes: Counter[int] = field(default_factory=Counter)
    slowest: float = 0.0
    """The longest time until an answer, in seconds."""

    async def more(self, number: int) -> None:
        """Wait until so many more writes have been acknowledged: the callers are then anywhere in their next ones."""
        started, wanted = time.monotonic(), len(self.ids) + number
        while len(self.ids) < wanted:
            assert time.monotonic() < started + WAIT_SECONDS, f"no write is acknowledged: {dict(self.codes)}"
            await asyncio.sleep(0.001)

    def find_lost(self, dsn: str) -> list[str]:
        """List the writes that are not there as they were acknowledged."""
        with psycopg.connect(dsn) as owner:
            stored = {str(identity): content for identity, content in owner.execute("select id, content from memories")}
        return [
            key
            for key, ids in self.ids.items()
            if [stored.get(identity) for identity in ids] != [f"{key} {part}" for part in range(len(ids))]
        ]

    def note(self, answer: httpx.Response, seconds: float) -> None:
        """Note how a call was answered."""
        self.codes[answer.status_code] += 1
        self.slowest = max(self.slowest, seconds)


def find_repeated(dsn: str) -> list[str]:
    """List what is stored more than once."""
    with psycopg.connect(dsn) as owner:
        return [content for (content,) in owner.execute(REPEATED)]


async def write_for_ever(http: httpx.AsyncClient, agent: str, chance: random.Random, told: Acknowledged) -> None:
    """Write under a key until it is acknowledged, then go on to the next one."""
    while True:
        key, count = UUID(int=chance.getrandbits(128)).hex, chance.randint(1, 3)
        body = {"agent": agent, "memories": [{"content": f"{key} {part}"} for part in range(count)]}
        while key not in told.ids:
            began = time.monotonic()
            answer = await http.post("/v1/memories", json=body, headers={"Idempotency-Key": key})
            told.note(answer, time.monotonic() - began)
            if answer.status_code == 201:
                told.ids[key] = [memory["id"] for memory in answer.json()["memories"]]
            else:
                await asyncio.sleep(0.05)


async def read_for_ever(http: httpx.AsyncClient, agent: str, told: Acknowledged) -> None:
    """Recall one time after the other."""
    while True:
        began = time.monotonic()
        told.note(await http.post("/v1/recall", json={"agent": agent, "text": "word"}), time.monotonic() - began)
        await asyncio.sleep(0.05)


@asynccontextmanager
async def calling(http: httpx.AsyncClient, chance: random.Random, writers: int):
    """Let several callers write, each for an agent of its own, and one recall, as long as the block lasts."""
    told = Acknowledged()
    drawn = [random.Random(chance.getrandbits(64)) for _ in range(writers)]
    calls = [write_for_ever(http, f"agent-{number}", own, told) for number, own in enumerate(drawn)]
    tasks = [asyncio.create_task(call) for call in (*calls, read_for_ever(http, "agent-0", told))]
    try:
        yield told
    finally:
        await cancel(tasks)


async def cancel(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel until all have ended: asyncio.wait_for of Python 3.11 can swallow a cancellation."""
    pending = {*tasks}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=0.2)
    assert all(task.cancelled() for task in tasks), [task for task in tasks if not task.cancelled()]
