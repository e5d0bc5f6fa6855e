"""A pair of servers under load: a service and a worker that know the addresses of both, and callers with an oracle."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import httpx
import psycopg

from conftest import addresses_of, http_client, new_key
from recollect.llm.fake import FakeEmbedder
from recollect.mind.service import Addresses
from recollect.store.database.ownership import ensure_database
from recollect.wiring import connected, prepare
from support.callers.acknowledged import ALLOWED, Ledger, Load, calling, find_losses
from support.service.made_settings import make_settings

WRITERS = 6
DATABASE = "under_load"
CHOSEN = make_settings(embedder="fake", request_timeout_seconds=5, pool_size=16, postgres__max_requests=64)


class Servers(Protocol):
    """A server and its standby, whoever of them is written to."""

    def dsn(self, database: str = "postgres", user: str = "postgres") -> str: ...


@dataclass
class LoadedPair:
    """What callers of a pair of servers were told, and what is there."""

    told: Ledger
    owner: str
    longest: float = 0.0
    """The longest time from a loss to the next acknowledged write, in seconds."""

    async def lose(self, fail_over) -> None:
        """Lose the server, wait until writes are acknowledged again, and see that nothing is lost or there twice."""
        began = time.monotonic()
        await asyncio.to_thread(fail_over)
        # Every caller may still hear of a write that was committed before.
        await self.told.hear(WRITERS + 1, 201)
        self.longest = max(self.longest, time.monotonic() - began)
        losses = self.find_losses()
        assert losses == [], losses[:5]
        assert set(self.told.codes()) <= ALLOWED

    def find_losses(self) -> list[str]:
        """List what was acknowledged and is not there once."""
        with psycopg.connect(self.owner) as owner:
            return find_losses(owner, dict(self.told.promised))

    def describe(self) -> str:
        """Tell what was found."""
        return f"lost 0, twice 0, {self.told.tell()}; acknowledged again after {self.longest:.1f} s at most"


async def make_database(server: Servers) -> None:
    """Prepare the database that is to be used."""
    await ensure_database(server.dsn(), DATABASE)
    await prepare(addresses_of(server, DATABASE), FakeEmbedder())


@asynccontextmanager
async def under_load(pair: Servers, seed: int) -> AsyncIterator[LoadedPair]:
    """Serve the database of a pair, and let callers write to it."""
    addresses = addresses_of(pair, DATABASE)
    async with serving(addresses) as http, calling({"default": http}, Load(WRITERS, 1, seed)) as told:
        await told.hear(1, 201)
        yield LoadedPair(told, addresses.owner)


@asynccontextmanager
async def serving(addresses: Addresses) -> AsyncIterator[httpx.AsyncClient]:
    """Run a service and a worker, which must outlive whatever happens."""
    async with connected(CHOSEN, addresses, FakeEmbedder()) as running:
        worker = asyncio.create_task(running.work())
        _, secret = await new_key(running)
        try:
            async with http_client(running, secret) as http:
                yield http
            assert not worker.done(), "the worker has ended"
        finally:
            worker.cancel()
            await asyncio.wait([worker])
