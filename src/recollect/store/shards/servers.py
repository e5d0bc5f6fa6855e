"""Lend the database in which a scope or a tenant lies: the one server, or that shard of several which serves it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

from recollect.core.service.numbers import bucket_of, bucket_of_number, tenant_of
from recollect.errors import SetupError, UnavailableError
from recollect.models.service import Scope
from recollect.models.shards import OWN_BUCKET, Shard
from recollect.store.database.pool import Connection, Database, FollowedLog
from recollect.store.database.replicas import ReplicaDatabase, Replicas
from recollect.store.shards.map import ShardMap


@dataclass(frozen=True, slots=True)
class OpenServer:
    """One server: its name, and its connections for no scope in particular."""

    name: str
    database: Database


class Servers(Protocol):
    """Where the rows are."""

    async def of_scope(self, scope: Scope) -> Database:
        """Lend the database of a scope."""
        ...

    async def of_number(self, scope_id: int) -> Database:
        """Lend the database of a scope by its number."""
        ...

    async def home(self, tenant_id: int) -> Database:
        """Lend the database of what belongs to a tenant and to no scope."""
        ...

    async def each(self, tenant_id: int) -> Sequence[Database]:
        """Lend a database for each part of a tenant, its home first: through one only that part is seen."""
        ...

    async def read_anew(self, tenant_id: int) -> None:
        """Find out where a tenant has gone."""
        ...

    async def all(self) -> Sequence[OpenServer]:
        """List every server; if one does not answer, raise UnavailableError."""
        ...

    async def answering(self) -> Sequence[OpenServer]:
        """List every server that answers."""
        ...

    def statistics(self) -> Mapping[str, Mapping[str, int]]:
        """Return the counters of the connections that are open, by server."""
        ...

    def choose_replica(self, database: Database, max_staleness: float | None) -> ReplicaDatabase | None:
        """Choose a replica for a call that reads in a database; None if that itself is to be asked."""
        ...


@dataclass(frozen=True, slots=True)
class OneServer:
    """The usual case: everything is in one database."""

    database: Database
    replicas: Replicas | None = None

    async def of_scope(self, scope: Scope) -> Database:  # noqa: ARG002 - the protocol's
        """Lend the database."""
        return self.database

    async def of_number(self, scope_id: int) -> Database:  # noqa: ARG002 - the protocol's
        """Lend the database."""
        return self.database

    async def home(self, tenant_id: int) -> Database:  # noqa: ARG002 - the protocol's
        """Lend the database."""
        return self.database

    async def each(self, tenant_id: int) -> Sequence[Database]:  # noqa: ARG002 - the protocol's
        """Lend the database."""
        return (self.database,)

    async def read_anew(self, tenant_id: int) -> None:
        """Do nothing: nothing can have gone anywhere."""

    async def all(self) -> Sequence[OpenServer]:
        """List the server."""
        return (OpenServer("", self.database),)

    async def answering(self) -> Sequence[OpenServer]:
        """List the server."""
        return await self.all()

    def statistics(self) -> Mapping[str, Mapping[str, int]]:
        """Return the counters of the connections."""
        return {"": self.database.statistics()}

    def choose_replica(self, database: Database, max_staleness: float | None) -> ReplicaDatabase | None:
        """Choose one of the server's replicas, if it has any."""
        return self.replicas.choose(database, max_staleness) if self.replicas else None


class NoServer(Database):
    """Stands where no scope is chosen yet among several servers: it has no connections to lend."""

    def __init__(self) -> None:
        self.shard, self.log, self.erasures = 0, None, None
        self.deadline_seconds = 0.0
        self.milliseconds = "0"
        self.direct = ""

    def statistics(self) -> dict[str, int]:
        """Count nothing."""
        return {}

    @asynccontextmanager
    async def statement(self) -> AsyncIterator[Connection]:
        """Refuse: there is no server to ask."""
        raise SetupError("With several servers this is asked of each of them: name a shard, or a tenant.")
        yield


class ManyServers:
    """Shards, each with connections of its own, which are made when the shard is first needed."""

    def __init__(
        self,
        shard_map: ShardMap,
        connect: Callable[[Shard], Awaitable[Database]],
        connect_replica: Callable[[str], Awaitable[Database]],
    ) -> None:
        self._map = shard_map
        self._connect = connect
        self._connect_replica = connect_replica
        self._replicas: dict[int, Replicas] = {}
        self._open: dict[int, tuple[Shard, Database]] = {}
        self._turns: dict[int, asyncio.Lock] = {}

    async def of_scope(self, scope: Scope) -> Database:
        """Lend the database of the shard that serves a scope's bucket, by the generation that is known of it."""
        return await self._placed(scope.tenant_id, bucket_of(scope.agent, scope.user))

    async def of_number(self, scope_id: int) -> Database:
        """Lend the database of the shard that serves the bucket of a scope's number."""
        return await self._placed(tenant_of(scope_id), bucket_of_number(scope_id))

    async def home(self, tenant_id: int) -> Database:
        """Lend the database of a tenant's home shard."""
        return await self._placed(tenant_id, OWN_BUCKET)

    async def each(self, tenant_id: int) -> Sequence[Database]:
        """Lend a database for each placement of a tenant, by the order of buckets."""
        placed = await self._map.find(tenant_id)
        return [await self._placed(tenant_id, each.first_bucket) for each in placed.placements]

    async def read_anew(self, tenant_id: int) -> None:
        """Ask the catalog where a tenant lies now."""
        await self._map.read_anew(tenant_id)

    async def all(self) -> Sequence[OpenServer]:
        """List all shards; raise if one does not answer."""
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
        """Return the counters of the connections that are open, by shard."""
        return {shard.name: database.statistics() for shard, database in self._open.values()}

    def choose_replica(self, database: Database, max_staleness: float | None) -> ReplicaDatabase | None:
        """Choose one of a shard's replicas, if it has any."""
        replicas = self._replicas.get(database.shard)
        return replicas.choose(database, max_staleness) if replicas else None

    async def close(self) -> None:
        """Close all connections."""
        for replicas in self._replicas.values():
            await replicas.close()
        for _, database in self._open.values():
            await database.close()

    async def _placed(self, tenant_id: int, bucket: int) -> Database:
        placement = (await self._map.find(tenant_id)).find(bucket)
        return (await self._of(placement.shard_id)).used(placed=(bucket, placement.generation))

    async def _of(self, shard_id: int) -> Database:
        shard = self._map.shards[shard_id]
        known = self._open.get(shard_id)
        if known is not None and known[0].is_reached_like(shard):
            return known[1]
        # One shard that does not answer must not hold up the others.
        async with self._turns.setdefault(shard_id, asyncio.Lock()):
            known = self._open.get(shard_id)
            if known is None or not known[0].is_reached_like(shard):
                self._open[shard_id] = (shard, await self._reach(shard))
                before = self._replicas.pop(shard_id, None)
                if shard.replicas:
                    self._replicas[shard_id] = Replicas(shard.replicas, self._connect_replica)
                if before is not None:
                    await before.close()
                if known is not None:
                    await known[1].close()
        return self._open[shard_id][1]

    async def _reach(self, shard: Shard) -> Database:
        try:
            log = FollowedLog() if shard.replicas else None
            return (await self._connect(shard)).used(shard=shard.id, log=log)
        except SetupError as problem:
            raise UnavailableError(f"The shard {shard.name} does not answer; try again.") from problem


def one_per_server(databases: Sequence[Database]) -> list[Database]:
    """Leave out those that lie on the same server as one before."""
    return [each for place, each in enumerate(databases) if not any(map(each.is_same, databases[:place]))]
