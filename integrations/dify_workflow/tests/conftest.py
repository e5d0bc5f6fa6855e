"""A real server to ask, Dify's engine to ask it by, and minds whose vectors and access times are known."""

from __future__ import annotations

import os
import random
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from uuid import uuid4

import httpx
import pytest
import yaml
from engine import Ran, configured, run
from reference import Row
from sandbox import Sandbox, listening

# The engine reads its file again for every run: the same grammar, parsed in C.
yaml.SafeLoader = yaml.CSafeLoader
# It also makes a client for every request: each would read all certificates, and nothing here speaks TLS.
ssl.create_default_context = cache(ssl.create_default_context)

DIMENSIONS = 384
PAGE = 192
BEGIN = datetime(2026, 2, 13, 6, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Server:
    """Recollect over HTTP, without its client: what any program may send."""

    url: str
    key: str
    http: httpx.Client

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        answer = self.http.post(path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def read(self, agent: str, user: str = "") -> list[dict[str, Any]]:
        """Read all memories of a scope, of 200 at most."""
        answer = self.http.get("/v1/memories", params={"agent": agent, "user": user, "limit": 200})
        assert answer.is_success, answer.text
        return answer.json()["memories"]

    def find_vector(self, text: str) -> tuple[float, ...]:
        """Learn a text's vector from outside: its cosine with each axis is its coordinate there."""
        found: dict[int, float] = {}
        suffix = uuid4().hex
        for first in range(0, DIMENSIONS, PAGE):
            agent = f"axes-{first}-{suffix}"
            axes = range(first, first + PAGE)
            memories = [{"content": str(axis), "embedding": along({axis: 1.0})} for axis in axes]
            self.post("/v1/memories", {"agent": agent, "memories": memories})
            cue = {"agent": agent, "text": text, "channels": ["vector"], "limit": PAGE, "touch": False}
            for hit in self.post("/v1/recall", cue)["hits"]:
                found[int(hit["memory"]["content"])] = hit["channels"]["vector"]["score"]
        return tuple(found[axis] for axis in range(DIMENSIONS))


def along(axes: Mapping[int, float]) -> list[float]:
    """Make a vector from its coordinates that are not 0."""
    return [axes.get(axis, 0.0) for axis in range(DIMENSIONS)]


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    if "RECOLLECT_URL" not in os.environ:
        pytest.skip("RECOLLECT_URL and RECOLLECT_KEY do not say where a server is")
    url, key = os.environ["RECOLLECT_URL"], os.environ["RECOLLECT_KEY"]
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False) as http:
        yield Server(url, key, http)


@pytest.fixture(scope="session")
def sandbox() -> Iterator[str]:
    with listening(Sandbox) as url:
        yield url


@pytest.fixture(scope="session")
def dsl(server: Server) -> str:
    return configured(server.url, server.key)


@pytest.fixture(scope="session")
def ask(dsl: str, sandbox: str) -> Callable[..., Ran]:
    """Run the workflow with the real server."""
    return lambda **inputs: run(dsl, sandbox, inputs)


@dataclass(frozen=True, slots=True)
class Persona:
    """Somebody with memories: by the name that people use, and by that of the agent."""

    name: str
    agent: str
    vectors: Mapping[str, tuple[float, ...]]
    server: Server

    def rows(self) -> list[Row]:
        """Read what is stored now, with the vectors that were given."""
        return [
            Row(
                id=memory["id"],
                type=memory["kind"],
                description=memory["content"],
                poignancy=memory["importance"],
                embedding=self.vectors[memory["id"]],
                last_accessed=memory["last_accessed_at"],
            )
            for memory in self.server.read(self.agent)
        ]


@pytest.fixture
def persona(server: Server) -> Persona:
    """Somebody with 40 memories that can come to mind, 4 idle ones and 3 chats; some were accessed since."""
    chance = random.Random(20260213)
    suffix = uuid4().hex[:8]
    agent = f"Isabella Rodriguez {suffix}"
    memories = [compose(chance, number) for number in range(47)]
    receipts = server.post("/v1/memories", {"agent": agent, "memories": memories})["memories"]
    vectors = {receipt["id"]: tuple(memory["embedding"]) for receipt, memory in zip(receipts, memories, strict=True)}
    for step, number in enumerate((3, 17, 30)):
        moment = (BEGIN + timedelta(days=1, hours=step)).isoformat()
        cue = {"agent": agent, "embedding": memories[number]["embedding"], "channels": ["vector"], "limit": 1}
        touched = server.post("/v1/recall", cue | {"now": moment})["accessed"]
        assert touched == [receipts[number]["id"]]
    return Persona(f"  Isabella   Rodriguez {suffix}", agent, vectors, server)


def compose(chance: random.Random, number: int) -> dict[str, Any]:
    """Make up a memory; its vector is one that every precision holds exactly."""
    axes = chance.sample(range(DIMENSIONS), 4)
    made = {
        "content": f"Isabella plans part {number} of the party",
        "kind": "thought" if number % 4 == 0 else "event",
        "importance": float(chance.randint(1, 10)),
        "occurred_at": (BEGIN + timedelta(minutes=chance.randrange(47) * 47 + number)).isoformat(),
        "embedding": along({axis: chance.choice((-0.5, 0.5)) for axis in axes}),
    }
    if number >= 44:
        return made | {"content": f"They talk about part {number}", "kind": "chat"}
    if number >= 40:
        idle = {"subject": f"bed {number}", "predicate": "is", "object": "idle"}
        return made | {"content": f"bed {number} is idle", "kind": "event", "importance": 10.0, **idle}
    return made
