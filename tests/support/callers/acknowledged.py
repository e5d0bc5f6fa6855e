"""Callers that write and read while something fails: what they were told, and whether what was promised is kept."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID

import httpx
import psycopg

from conftest import http_client, new_key
from support.service.known_numbers import VECTORS

WAIT_SECONDS = 120
"""Where nothing comes for so long, nothing will."""
ALLOWED = {200, 201, 503}
# A worker may sum up a conversation by one of its own sentences.
STORED = "select content, count(*), min(id::text) from memories where kind <> 'summary' group by content"
WITHOUT_TERMS = """select count(*) from memories m
    where not exists (select from memory_terms t where (t.scope_id, t.id) = (m.scope_id, m.id))"""
WITHOUT_VECTOR = f"""select count(*) from memories m
    where not exists (select from {VECTORS} v where (v.scope_id, v.id) = (m.scope_id, m.id))
      and not exists (select from pending_embeddings p where (p.scope_id, p.id) = (m.scope_id, m.id))"""
MISCOUNTED = """select count(*) from scopes s
    where memory_count <> (select count(*) from memories m where m.scope_id = s.id)"""
GAPS = (
    "select count(*) from (select from messages group by scope_id, conversation_id having max(number) <> count(*)) gap"
)
ORPHANS = """select count(*) from idempotency_keys k, unnest(memory_ids) as promised
    where not exists (select from memories m where (m.scope_id, m.id) = (k.scope_id, promised))"""
MIXED = """select count(*) from (
        select from memories group by split_part(content, ' ', 1) having count(distinct scope_id >> 40) > 1
    ) mixed"""
INDEXES = """select bt_index_check(c.oid, heapallindexed => true) from pg_class c join pg_am on pg_am.oid = c.relam
    where amname = 'btree' and relkind = 'i' and relpersistence = 'p'"""
HEAPS = """select count(*) from pg_class c, verify_heapam(c.oid)
    where relkind in ('r', 'm', 't') and relpersistence = 'p'"""


@dataclass
class Ledger:
    """What callers asked and saw, in order, and the ids that were promised."""

    asked: int = 0
    answers: dict[int, int] = field(default_factory=dict)
    """The code of each answer, by the number of its request."""
    promised: dict[str, str] = field(default_factory=dict)
    """The id of each acknowledged memory, by its content, which no other has."""
    refusals: Counter[str] = field(default_factory=Counter)
    """What was said to whom was refused."""
    shown: int = 0
    """How many hits readers were shown."""
    foreign: list[str] = field(default_factory=list)
    """Contents of another tenant that a reader was shown."""
    slowest: float = 0.0
    news: asyncio.Event = field(default_factory=asyncio.Event)
    closed: bool = False

    def codes(self, after: int = 0) -> Counter[int]:
        """Count the answers to what was asked after a request."""
        return Counter(status for number, status in self.answers.items() if number > after)

    async def hear(self, count: int, *wanted: int, after: int = 0) -> None:
        """Wait for so many more answers of certain codes."""
        known = sum(self.codes(after)[status] for status in wanted)
        await self._until(lambda: sum(self.codes(after)[status] for status in wanted) >= known + count)

    async def hear_all(self) -> None:
        """Wait until everything that has been asked until now is answered."""
        asked = range(1, self.asked + 1)
        await self._until(lambda: all(number in self.answers for number in asked))

    async def go_on(self, count: int) -> None:
        """Wait until so much of what is asked from now on is acknowledged: the service has recovered."""
        await self.hear(count, 201, after=self.asked)

    async def ask(self, request) -> httpx.Response:
        """Send a request and note the answer."""
        self.asked += 1
        number, began = self.asked, time.monotonic()
        answer = await request
        if not self.closed:
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.answers[number] = answer.status_code
            if answer.is_error:
                self.refusals[answer.json().get("detail", "")] += 1
            self.news.set()
        return answer

    def tell(self) -> str:
        """Say what happened, for the table of promises."""
        return f"{len(self.promised)} acknowledged, answers {dict(self.codes())}, slowest answer {self.slowest:.1f} s"

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            while not condition():
                self.news.clear()
                await self.news.wait()


@dataclass(frozen=True, slots=True)
class Load:
    """How many callers there are for each tenant, and the number from which they draw what they write."""

    writers: int = 6
    readers: int = 2
    seed: int = 1

    @property
    def callers(self) -> int:
        """How many there are in all."""
        return self.writers + self.readers


USUAL_LOAD = Load()


def draw_write(draw: random.Random, mark: str, number: int) -> tuple[str, dict, str]:
    """Draw a path, a body and a key: memories of one scope or messages of one conversation, each under its own mark."""
    key, count = str(UUID(int=draw.getrandbits(128))), draw.randint(1, 3)
    contents = [f"{mark} {key} {part}" for part in range(count)]
    scope = {"agent": f"agent-{number % 3}"}
    if number % 2:
        said = [{"role": "user", "content": content} for content in contents]
        return "/v1/messages", scope | {"conversation": f"c-{number % 3}", "messages": said}, key
    return "/v1/memories", scope | {"memories": [{"content": content} for content in contents]}, key


async def write_for_ever(http: httpx.AsyncClient, ledger: Ledger, mark: str, number: int, draw: random.Random) -> None:
    """Write under a key until it is acknowledged, then go on to the next one."""
    while True:
        path, body, key = draw_write(draw, mark, number)
        while True:
            answer = await ledger.ask(http.post(path, json=body, headers={"Idempotency-Key": key}))
            if answer.status_code == 201:
                note_promises(ledger, path, body, answer.json())
                break
            await asyncio.sleep(0.05)


def note_promises(ledger: Ledger, path: str, body: Mapping, answer: Mapping) -> None:
    name = path.rpartition("/")[2]
    ledger.promised |= {sent["content"]: kept["id"] for sent, kept in zip(body[name], answer[name], strict=True)}


async def read_for_ever(http: httpx.AsyncClient, ledger: Ledger, mark: str, number: int) -> None:
    """Recall in a scope that every tenant has under the same name."""
    while True:
        body = {"agent": f"agent-{number % 3}", "text": f"{mark} anything"}
        answer = await ledger.ask(http.post("/v1/recall", json=body))
        if answer.status_code == 200:
            contents = [hit["memory"]["content"] for hit in answer.json()["hits"]]
            ledger.shown += len(contents)
            ledger.foreign += [content for content in contents if not content.startswith(f"{mark} ")]
        await asyncio.sleep(0.05)


@asynccontextmanager
async def calling(clients: Mapping[str, httpx.AsyncClient], load: Load = USUAL_LOAD):
    """Keep writers and readers of each tenant busy for as long as the block lasts; all that it says bears its mark."""
    ledger, tasks = Ledger(), []
    for mark, http in clients.items():
        for number in range(load.writers):
            draw = random.Random(f"{load.seed} {mark} {number}")
            tasks.append(asyncio.create_task(write_for_ever(http, ledger, mark, number, draw)))
        tasks += [asyncio.create_task(read_for_ever(http, ledger, mark, number)) for number in range(load.readers)]
    try:
        yield ledger
    finally:
        # What is answered to a request that we call off ourselves says nothing about the service.
        ledger.closed = True
        await stop(tasks)
    assert [task.exception() for task in tasks if not task.cancelled()] == []


@asynccontextmanager
async def traffic(running, load: Load = USUAL_LOAD, tenants: Sequence[str] = ("default",)):
    """Keep callers of a service in this process busy."""
    async with AsyncExitStack() as stack:
        clients = {}
        for tenant in tenants:
            _, secret = await new_key(running, tenant)
            clients[tenant] = await stack.enter_async_context(http_client(running, secret))
        yield await stack.enter_async_context(calling(clients, load))


async def stop(tasks: Sequence[asyncio.Task]) -> None:
    """Cancel until all have ended: asyncio.wait_for of Python 3.11 can swallow a cancellation."""
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=0.2)


def find_losses(owner: psycopg.Connection, promised: Mapping[str, str]) -> list[str]:
    """List what was acknowledged and is not there once under its id, and what is there twice."""
    stored = {content: (times, identity) for content, times, identity in owner.execute(STORED)}
    lost = [content for content, identity in promised.items() if stored.get(content) != (1, identity)]
    return lost + [content for content, (times, _) in stored.items() if times > 1 and content not in promised]


def check_promises(owner: psycopg.Connection, ledger: Ledger) -> None:
    """See that all that was acknowledged is there, once, whole and where it belongs, and that nothing else was said."""
    assert set(ledger.codes()) <= ALLOWED, ledger.codes()
    assert find_losses(owner, ledger.promised) == []
    assert ledger.foreign == []
    wrong = {
        name: owner.execute(query).fetchone()[0]
        for name, query in {
            "without terms": WITHOUT_TERMS, "without a vector": WITHOUT_VECTOR, "miscounted": MISCOUNTED,
            "gaps": GAPS, "orphans": ORPHANS, "mixed": MIXED,
        }.items()
    }  # fmt: skip
    assert {name: number for name, number in wrong.items() if number} == {}


def check_pages(owner: psycopg.Connection) -> None:
    """See that every page of every table and B-tree is what it must be."""
    owner.execute("create extension if not exists amcheck")
    owner.execute(INDEXES)
    assert owner.execute(HEAPS).fetchone() == (0,)
