"""Clients without a valid key that ask as fast as they are answered, and a tenant's client beside them."""

from __future__ import annotations

import asyncio
import json
import random
import secrets
import time
from collections import Counter
from collections.abc import Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from recollect.core.service.secrets import RANDOM_BYTES, write_secret

RECALL = {"agent": "ada", "text": "plants", "touch": False}
PROBE = "/health/ready"
Maker = Callable[[random.Random], bytes]


def write_request(method: str, path: str, key: str = "", body: object = None, more: str = "") -> bytes:
    """Write a request as it is sent."""
    content = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    lines += [f"Authorization: Bearer {key}"] if key else []
    lines += [f"Content-Type: application/json\r\nContent-Length: {len(content)}"] if content else []
    return ("\r\n".join(lines) + f"\r\n{more}\r\n").encode() + content


def well_formed(chance: random.Random) -> str:
    """Make a secret that looks like a key of tenant 1, and is none."""
    return write_secret(1, chance.randbytes(RANDOM_BYTES))


WRONG = well_formed(random.Random(secrets.randbits(64)))
BROWSE = "/v1/memories?agent=ada"
FLOODS: dict[str, Maker] = {
    "malformed keys": lambda chance: write_request("GET", BROWSE, f"rec_{chance.random()}"),
    "one wrong key": lambda _: write_request("GET", BROWSE, WRONG),
    "well-formed keys": lambda chance: write_request("GET", BROWSE, well_formed(chance)),
    "no key": lambda _: write_request("POST", "/v1/recall", body=RECALL),
    "/metrics": lambda _: write_request("GET", "/metrics"),
    "/health/ready": lambda _: write_request("GET", "/health/ready"),
    "/openapi.json": lambda _: write_request("GET", "/openapi.json"),
    "/openapi.json?": lambda chance: write_request("GET", f"/openapi.json?{chance.random()}"),
}


class Connection:
    """A connection that is opened again where the server has closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: bytes) -> int:
        """Send a request, and return the status of its answer."""
        if self._open is None:
            self._open = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._open
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        fields = dict(line.partition(b":")[::2] for line in head.split(b"\r\n")[1:])
        await reader.readexactly(int(fields.get(b"content-length", b"0")))
        if fields.get(b"connection", b"").strip() == b"close":
            self.close()
        return int(head.split(b" ")[1])

    def close(self) -> None:
        """Close it."""
        if self._open is not None:
            self._open[1].close()
            self._open = None


async def keep_asking(port: int, make: Callable[[], bytes], answers: Counter[int | str]) -> None:
    """Ask until cancelled, as fast as one is answered; count the answers."""
    connection = Connection(port)
    try:
        while True:
            try:
                answers[await connection.ask(make())] += 1
            except (OSError, asyncio.IncompleteReadError) as problem:
                answers[type(problem).__name__] += 1
                connection.close()
                await asyncio.sleep(0.05)
    finally:
        connection.close()


async def probe(port: int, seconds: float, pause: float, answers: Counter[int | str]) -> None:
    """Ask until cancelled whether the service is ready, as a balancer does: over a connection of its own each time."""
    while True:
        connection = Connection(port)
        try:
            async with asyncio.timeout(seconds):
                answers[await connection.ask(write_request("GET", PROBE))] += 1
        except (OSError, asyncio.IncompleteReadError) as problem:
            answers[type(problem).__name__] += 1
        finally:
            connection.close()
        await asyncio.sleep(pause)


@asynccontextmanager
async def background(*work):
    """Run coroutines during the block, and end them."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)


@dataclass
class Figures:
    """What a tenant's client got alone and during a flood, and what the others were answered."""

    alone: int = 0
    flooded: int = 0
    refused: Counter[int | str] = field(default_factory=Counter)
    strangers: Counter[int | str] = field(default_factory=Counter)
    probes: Counter[int | str] = field(default_factory=Counter)

    @property
    def share(self) -> float:
        return self.flooded / max(self.alone, 1)

    def tell(self) -> str:
        own = f"{self.flooded} recalls of {self.alone} alone ({self.share:.0%})"
        return f"{own}, probes {dict(self.probes)}, others {dict(self.strangers)}"


@dataclass(frozen=True)
class Trial:
    """How a flood is tried: its makers, how many clients, for how long in turns with nobody, and its probes."""

    makers: tuple[Maker, ...]
    clients: int
    rounds: int
    seconds: float
    probe_seconds: float = 60.0
    probe_pause: float = 0.1
    settle_seconds: float = 0.3


async def try_flood(port: int, key: str, trial: Trial, seed: int, probe_port: int = 0) -> Figures:
    """Count what a tenant's one client gets alone and during a flood, in turns."""
    figures, chance = Figures(), random.Random(seed)

    async def count(answers: Counter[int | str]) -> int:
        async with background(keep_asking(port, lambda: write_request("POST", "/v1/recall", key, RECALL), answers)):
            await asyncio.sleep(trial.settle_seconds)
            before, began = answers[200], time.monotonic()
            await asyncio.sleep(trial.seconds)
            # A busy machine may wake late: what counts is the rate.
            return round((answers[200] - before) * trial.seconds / (time.monotonic() - began))

    for _ in range(trial.rounds):
        quiet, flooded = Counter(), Counter()
        figures.alone += await count(quiet)
        strangers = [
            keep_asking(port, lambda make=make: make(chance), figures.strangers)
            for make in (trial.makers * trial.clients)[: trial.clients]
        ]
        probing = probe(probe_port or port, trial.probe_seconds, trial.probe_pause, figures.probes)
        async with background(*strangers, probing):
            figures.flooded += await count(flooded)
        figures.refused += quiet + flooded
    return figures
