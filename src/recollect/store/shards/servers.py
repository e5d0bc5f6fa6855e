"""Provide the database of a scope or a tenant: the only server, or the shard that serves it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

from recollect.core.service.numbers import bucket_of, bucket_of_number, tenant_of
from recollect.errors import SetupError, UnavailableError, WrongServerError
from recollect.models.service import Scope
from recollect.models.shards import OWN_BUCKET, Shard
from recollect.store.database.identity import ServerCheck
from recollect.store.database.pool import Connection, Database
from recollect.store.shards.map import ShardMap

UNREACHED = "The shard {} does not answer; try again."
PAUSE_SECONDS = 0.1
"""Time between two tries to connect to a shard at whose address another server was found."""


@dataclass(frozen=True, slots=True)
class OpenServer:
    """A server: its name, and its connections, which are bound to no scope."""

    name: str
    database: Database


class Servers(Protocol):
    """The servers with the rows."""

    async def for_scope(self, scope: Scope) -> Database:
        """Return the database of a scope."""
        ...

    async def by_scope_id(self, scope_id: int) -> Database:
        """Return the database of a scope by its number."""
        ...

    async def home(self, tenant_id: int) -> Database:
        """Return the database for data of a tenant that belongs to no scope."""
        ...

    async def each(self, tenant_id: int) -> Sequence[Database]:
        """Return a database for each part of a tenant, its home first: each shows only its part."""
        ...

    async def kept(self, tenant_id: int) -> Sequence[Database]:
        """Return the databases of all servers that may have rows of a tenant, served or not.

        Raises UnavailableError if a server is down.
        """
        ...

    async def read_anew(self, tenant_id: int) -> None:
        """Refresh the placement of a tenant."""
        ...

    async def all(self) -> Sequence[OpenServer]:
        """List all servers; raise UnavailableError if one does not answer."""
        ...

    async def answering(self) -> Sequence[OpenServer]:
        """List all servers that answer."""
        ...

    def statistics(self) -> Mapping[str, Mapping[str, int]]:
        """Return the counters of the open connections, by server."""
        ...


@dataclass(frozen=True, slots=True)
class SingleServer:
    """The default: all data is in one database."""

    database: Database

    async def for_scope(self, scope: Scope) -> Database:  # noqa: ARG002 - the protocol's
        """Return the database."""
        return self.database

    async def by_scope_id(self, scope_id: int) -> Database:  # noqa: ARG002 - the protocol's
        """Return the database."""
        return self.database

    async def home(self, tenant_id: int) -> Database:  # noqa: ARG002 - the protocol's
        """Return the database."""
        return self.database

    async def each(self, tenant_id: int) -> Sequence[Database]:  # noqa: ARG002 - the protocol's
        """Return the database."""
        return (self.database,)

    async def kept(self, tenant_id: int) -> Sequence[Database]:  # noqa: ARG002 - the protocol's
        """Return the database."""
        return (self.database,)

    async def read_anew(self, tenant_id: int) -> None:
        """Do nothing: the placement cannot change."""

    async def all(self) -> Sequence[OpenServer]:
        """List the server."""
        return (OpenServer("", self.database),)

    async def answering(self) -> Sequence[OpenServer]:
        """List the server."""
        return await self.all()

    def statistics(self) -> Mapping[str, Mapping[str, int]]:
        """Return the counters of the connections."""
        return {"": self.database.statistics()}


class UnboundServer(Database):
    """A placeholder while no scope among several servers is chosen: it has no connections."""

    def __init__(self) -> None:
        self.shard, self.erasures, self.server = 0, None, ServerCheck()
        self.deadline_seconds = 0.0
        self.milliseconds = "0"
        self.direct = ""

    def statistics(self) -> dict[str, int]:
        """Return no counters."""
        return {}

    @asynccontextmanager
    async def statement(self) -> AsyncIterator[Connection]:
        """Raise an error: there is no server to query."""
        raise SetupError("This needs one server: name a shard or a tenant.")
        yield


class ShardedServers:
    """Shards with separate connections, which are opened when a shard is first needed."""

    def __init__(
        self,
        shard_map: ShardMap,
        connect: Callable[[Shard], Awaitable[Database]],
    ) -> None:
        self._map = shard_map
        self._connect = connect
        self._open: dict[int, tuple[Shard, Database]] = {}
        self._turns: dict[int, asyncio.Lock] = {}
        self._refused: dict[int, tuple[Shard, float]] = {}
        """Shards at whose address another server was found, and the time of the next try."""

    async def for_scope(self, scope: Scope) -> Database:
        """Return the database of the shard that serves a scope's bucket, with the known generation."""
        return await self._placed(scope.tenant_id, bucket_of(scope.agent, scope.user))

    async def by_scope_id(self, scope_id: int) -> Database:
        """Return the database of the shard that serves the bucket of a scope's number."""
        return await self._placed(tenant_of(scope_id), bucket_of_number(scope_id))

    async def home(self, tenant_id: int) -> Database:
        """Return the database of a tenant's home shard."""
        return await self._placed(tenant_id, OWN_BUCKET)

    async def each(self, tenant_id: int) -> Sequence[Database]:
        """Return a database for each placement of a tenant, in the order of buckets."""
        placed = await self._map.find_tenant_placement(tenant_id)
        return [await self._placed(tenant_id, each.first_bucket) for each in placed.placements]

    async def kept(self, tenant_id: int) -> Sequence[Database]:  # noqa: ARG002 - any server may have rows
        """Return the databases of all shards without placements: rows stay on shards that served a tenant before."""
        return [each.database.used(unserved=True) for each in await self.all()]

    async def read_anew(self, tenant_id: int) -> None:
        """Ask the catalog for the current placement of a tenant."""
        await self._map.read_anew(tenant_id)

    async def all(self) -> Sequence[OpenServer]:
        """List all shards; raise an error if one does not answer."""
        shards = list(self._map.shards.values())
        return [OpenServer(shard.name, await self._of(shard.id)) for shard in shards]

    async def answering(self) -> Sequence[OpenServer]:
        """List all shards that answer."""
        servers: list[OpenServer] = []
        for shard in list(self._map.shards.values()):
            with suppress(UnavailableError):
                servers.append(OpenServer(shard.name, await self._of(shard.id)))
        return servers

    def statistics(self) -> Mapping[str, Mapping[str, int]]:
        """Return the counters of the open connections, by shard."""
        return {shard.name: database.statistics() for shard, database in self._open.values()}

    async def close_databases(self) -> None:
        """Close all connections."""
        for _, database in self._open.values():
            await database.close()

    async def _placed(self, tenant_id: int, bucket: int) -> Database:
        placement = (await self._map.find_tenant_placement(tenant_id)).find_placement(bucket)
        return (await self._of(placement.shard_id)).used(placed=(placement.first_bucket, placement.generation))

    async def _of(self, shard_id: int) -> Database:
        shard = self._map.shards[shard_id]
        known = self._open.get(shard_id)
        if known is not None and is_usable(known, shard):
            return known[1]
        # A shard that does not answer must not block the others.
        async with self._turns.setdefault(shard_id, asyncio.Lock()):
            known = self._open.get(shard_id)
            if known is None or not is_usable(known, shard):
                self._open[shard_id] = (shard, await self._reach(shard))
                if known is not None:
                    await known[1].close()
        return self._open[shard_id][1]

    async def _reach(self, shard: Shard) -> Database:
        before, until = self._refused.get(shard.id, (shard, 0.0))
        if before.has_same_addresses(shard) and time.monotonic() < until:
            raise UnavailableError(UNREACHED.format(shard.name))
        try:
            return (await self._connect(shard)).used(shard=shard.id)
        except SetupError as problem:
            if isinstance(problem, WrongServerError):
                self._refused[shard.id] = (shard, time.monotonic() + PAUSE_SECONDS)
            raise UnavailableError(UNREACHED.format(shard.name)) from problem


def is_usable(known: tuple[Shard, Database], shard: Shard) -> bool:
    """Return whether open connections lead to a shard as the map has it now."""
    return known[0].has_same_addresses(shard) and not known[1].server.refused


def once_per_server(databases: Sequence[Database]) -> list[Database]:
    """Remove databases on the same server as an earlier one."""
    return [each for place, each in enumerate(databases) if not any(map(each.is_same, databases[:place]))]
