"""Callers who use a server as programs do, repeat what was not acknowledged, and note what they were told."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx

from support.programs.programs import WAIT_SECONDS

AGENTS, CONVERSATIONS, KEYS, RECENT = 3, 2, 12, 50
PAUSE_SECONDS = 0.1
LONG = "of which there is much to say " * 80
"""So long that the fake embedder takes a thread, and a write that does not wait goes on without a vector."""
WRITES = {"remember": 9, "append": 6, "state": 3, "put": 3, "forget": 3, "revoke": 1}
READS = {"recall": 4, "context": 3, "show": 1, "list_memories": 1}
UNAVAILABLE = 503


@dataclass
class Told:
    """What callers were told, which has to be true from then on."""

    deadline_seconds: float
    memories: dict[str, list[str]] = field(default_factory=dict)
    """By nonce: the ids of the batch."""
    recent: defaultdict[str, deque[str]] = field(default_factory=lambda: defaultdict(lambda: deque(maxlen=RECENT)))
    """The last nonces of each agent."""
    forgotten: set[str] = field(default_factory=set)
    """The nonces of batches that were forgotten."""
    turns: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """By nonce: ids and numbers of the question and of its answer."""
    facts: dict[str, str] = field(default_factory=dict)
    items: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """By agent, path and key: the number that was put last."""
    revoked: dict[str, str] = field(default_factory=dict)
    """Secrets of keys that were revoked, by id."""
    codes: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    """Answers that nobody may get."""
    acknowledged: int = 0
    """How many writes were."""
    cut: int = 0
    """Requests whose connection ended without an answer."""
    late: int = 0
    slowest: float = 0.0

    async def hear_more(self, count: int) -> None:
        """Wait until so many more writes are acknowledged: callers are then anywhere in their next ones."""
        wanted = self.acknowledged + count
        async with asyncio.timeout(WAIT_SECONDS):
            while self.acknowledged < wanted:  # noqa: ASYNC110 - there is no event to wait for
                await asyncio.sleep(0.005)

    def hear(self, status: int, seconds: float) -> None:
        """Note an answer, and how long it took."""
        self.codes[status] += 1
        self.slowest = max(self.slowest, seconds)
        self.late += seconds > self.deadline_seconds + 1

    def describe(self) -> str:
        """Say how much was told, and how soon."""
        return (
            f"{len(self.memories)} batches, {len(self.turns)} turns, {len(self.facts)} facts, {len(self.items)} items, "
            f"{len(self.forgotten)} forgets and {len(self.revoked)} revocations acknowledged, answers "
            f"{dict(sorted(self.codes.items()))}, {self.cut} connections cut, slowest answer {self.slowest:.1f} s, "
            f"{self.late} later than {self.deadline_seconds + 1:g} s"
        )


def texts_of(nonce: str, count: int) -> list[str]:
    """Say what a batch of memories holds; some need longer to be embedded."""
    return [f"{nonce} {part}{' ' + LONG if part == 2 else ''}" for part in range(count)]


class Visitor:
    """One caller: it does one thing after the other, each until it is acknowledged."""

    def __init__(self, http: httpx.AsyncClient, number: int, chance: random.Random, told: Told) -> None:
        self._http, self._number, self._chance, self._told = http, number, chance, told
        self._done = 0

    async def act(self, kinds: Mapping[str, int]) -> None:
        """Do one thing, drawn by its weight."""
        [kind] = self._chance.choices([*kinds], [*kinds.values()])
        self._done += 1
        await getattr(self, kind)(f"agent-{self._number % AGENTS}", f"{self._chance.getrandbits(80):020x}")

    async def remember(self, agent: str, nonce: str) -> None:
        count = self._chance.randint(1, 3)
        batch = [{"content": text, "keywords": [f"word-{count}"]} for text in texts_of(nonce, count)]
        if made := await self._write("/v1/memories", nonce, agent=agent, memories=batch):
            self._told.memories[nonce] = [each["id"] for each in made["memories"]]
            self._told.recent[agent].append(nonce)

    async def append(self, agent: str, nonce: str) -> None:
        said = {"question": f"question {nonce}", "answer": f"answer {nonce}"}
        talk = f"talk-{self._chance.randrange(CONVERSATIONS)}"
        if made := await self._write("/v1/messages", nonce, agent=agent, conversation=talk, **said):
            self._told.turns[nonce] = [(each["id"], each["number"]) for each in made["messages"]]

    async def state(self, agent: str, nonce: str) -> None:
        # A predicate of its own: no fact ends another.
        fact = {"subject": f"Person {self._number}", "predicate": f"saw {nonce}", "object": f"Thing {nonce}"}
        if made := await self._write("/v1/facts", nonce, agent=agent, facts=[fact]):
            self._told.facts[nonce] = made["facts"][0]["id"]

    async def put(self, agent: str, nonce: str) -> None:
        path, key = f"of-{self._number}", f"key-{self._chance.randrange(KEYS)}"
        put = {"op": "put", "path": [path], "key": key, "value": {"number": self._done}}
        if await self._write("/v1/items", nonce, agent=agent, operations=[put]):
            self._told.items[agent, path, key] = self._done

    async def forget(self, agent: str, _: str) -> None:
        if not (mine := self._told.recent[agent]):
            return
        # Others may forget the same at the same time, and whoever comes second finds nothing.
        nonce = self._chance.choice(mine)
        if await self._ask("POST", "/v1/forget", json={"agent": agent, "ids": self._told.memories[nonce]}):
            self._told.acknowledged += 1
            self._told.forgotten.add(nonce)

    async def revoke(self, _: str, nonce: str) -> None:
        made = await self._ask("POST", "/v1/keys", json={"name": nonce, "rights": ["read"]})
        if made and await self._ask("DELETE", f"/v1/keys/{made['key']['id']}"):
            self._told.acknowledged += 1
            self._told.revoked[made["key"]["id"]] = made["secret"]
            await self.show_revoked(made["secret"])

    async def show_revoked(self, secret: str) -> None:
        """Show a key that was revoked, until it is refused."""
        await self._ask("GET", "/v1/key", wanted=401, headers={"Authorization": f"Bearer {secret}"})

    async def recall(self, agent: str, _: str) -> None:
        await self._ask("POST", "/v1/recall", json={"agent": agent, "text": "who saw which thing yesterday?"})

    async def context(self, agent: str, _: str) -> None:
        talk = f"talk-{self._chance.randrange(CONVERSATIONS)}"
        asked = {"agent": agent, "conversation": talk, "text": "question", "budget": 1000}
        await self._ask("POST", "/v1/context", json=asked, allowed=404)

    async def show(self, agent: str, _: str) -> None:
        await self._ask("POST", "/v1/blocks", json={"agent": agent, "text": "question"})

    async def list_memories(self, agent: str, _: str) -> None:
        await self._ask("GET", "/v1/memories", params={"agent": agent, "limit": "20"})

    async def _write(self, path: str, nonce: str, **body: object) -> dict | None:
        made = await self._ask("POST", path, json=body, headers={"Idempotency-Key": nonce})
        self._told.acknowledged += made is not None
        return made

    async def _ask(
        self, method: str, path: str, *, wanted: int = 0, allowed: int = 0, **content: object
    ) -> dict | None:
        """Repeat a request until it is answered as it must be in the end; None where the answer is another."""
        while True:
            began = time.monotonic()
            try:
                answer = await self._http.request(method, path, **content)
            except httpx.TransportError:
                self._told.cut += 1
            else:
                self._told.hear(answer.status_code, time.monotonic() - began)
                if answer.status_code == wanted or (answer.is_success and not wanted):
                    return answer.json()
                if answer.status_code not in {UNAVAILABLE, allowed}:
                    self._told.wrong.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
                if answer.status_code != UNAVAILABLE:
                    return None
            await asyncio.sleep(PAUSE_SECONDS)


@asynccontextmanager
async def traffic(
    url: str, secret: str, told: Told, seed: int, *, callers: Sequence[int], kinds: Mapping[str, int]
) -> AsyncIterator[None]:
    """Keep callers of these numbers busy for the length of the block, and let each finish what it has begun."""
    over = asyncio.Event()

    async def visit(number: int) -> None:
        visitor = Visitor(http, number, random.Random(seed * 1_000 + number), told)
        while not over.is_set():
            await visitor.act(kinds)

    headers = {"Authorization": f"Bearer {secret}"}
    limits = httpx.Limits(max_connections=4 * len(callers), max_keepalive_connections=len(callers))
    patience = told.deadline_seconds + 15
    async with httpx.AsyncClient(
        base_url=url, headers=headers, timeout=patience, limits=limits, trust_env=False
    ) as http:
        tasks = [asyncio.create_task(visit(number)) for number in callers]
        try:
            yield
            over.set()
            await asyncio.gather(*tasks)
        finally:
            # Who is not answered any more would ask for ever.
            for task in tasks:
                task.cancel()
