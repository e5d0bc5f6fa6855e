"""Several servers for tests: databases of one cluster that stand for shards, and a catalog beside them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import psycopg

from conftest import QUICK
from recollect.llm.fake import FakeEmbedder
from recollect.mind.service import Addresses
from recollect.models.shards import ServerAddresses
from recollect.store.database.identity import ServerCheck
from recollect.store.database.ownership import ensure_database
from recollect.store.database.pool import Database
from recollect.store.embedded.cluster import Cluster
from recollect.store.shards import catalog
from recollect.store.shards.entry import add_shard
from recollect.store.shards.map import ShardMap
from recollect.store.shards.servers import ShardedServers
from recollect.wiring import prepare
from support.programs.folders import find_memory, open_folder

CATALOG = ("catalog_identity", "shards", "tenants", "placements")
NAMES = ("north", "south", "west")
LOGICAL = {**QUICK, "wal_level": "logical", "max_wal_senders": "10", "max_replication_slots": "10"}
"""A server whose log can be followed."""


def copy_out(connection, table):
    """Read a table as PostgreSQL writes it to a dump."""
    with connection.cursor().copy(f"copy {table} to stdout") as copy:
        yield from (bytes(block) for block in copy)


@contextmanager
def started(*names):
    """Run servers of their own, each with a log that can be followed."""
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder("shards", find_memory()))
        yield [stack.enter_context(Cluster(folder / name, settings=LOGICAL)) for name in names]


@dataclass(frozen=True, slots=True)
class Layout:
    """The addresses of a catalog and of its shards."""

    service: str
    owner: str
    shards: dict[str, tuple[str, str]]
    """By name: the addresses of the service's role and of the owner."""
    databases: list = field(default_factory=list)
    """What was made on servers of their own."""

    @asynccontextmanager
    async def serving(self, file=None) -> AsyncIterator[ShardedServers]:
        """Open the servers as a process of its own would."""
        shard_map = ShardMap(self.service, file)
        await shard_map.open()

        def connect(shard):
            return Database.open(shard.address, 4, 60, server=ServerCheck(shard.direct, shard.identity))

        servers = ShardedServers(shard_map, connect)
        try:
            yield servers
        finally:
            await servers.close_databases()
            await shard_map.stop_following()

    def settings(self, folder) -> dict[str, str]:
        """Return the environment of a command."""
        given = {"shards__catalog_url": self.service, "shards__owner_catalog_url": self.owner, "embedder": "fake"}
        given |= {"shards__map_file": str(folder / "map.json")}
        return {f"RECOLLECT_{name.upper()}": value for name, value in given.items()}

    def dump(self) -> dict[str, bytes]:
        """Copy the tables of the catalog."""
        with psycopg.connect(self.owner) as connection:
            return {table: b"".join(copy_out(connection, table)) for table in CATALOG}

    def restore(self, dump: dict[str, bytes]) -> None:
        """Put an earlier copy in the place of the catalog's tables, as the restore of a backup does."""
        with psycopg.connect(self.owner) as connection:
            connection.execute("truncate placements, tenants, shards, catalog_identity")
            for table, rows in dump.items():
                with connection.cursor().copy(f"copy {table} from stdin") as copy:
                    copy.write(rows)
            connection.execute(
                "select setval(pg_get_serial_sequence('tenants', 'id'), greatest(max(id), 1), max(id) is not null) "
                "from tenants"
            )

    def drop(self) -> None:
        """Drop the databases that were made on servers of their own."""
        for server, database in self.databases:
            with psycopg.connect(server.dsn(), autocommit=True) as connection:
                connection.execute(f"drop database {database} with (force)")

    @property
    def addresses(self) -> Addresses:
        """Return what a process needs to know."""
        return Addresses("", "", catalog=self.service, catalog_owner=self.owner)

    def split(self, tenant_id: int, source: str, target: str, first: int) -> None:
        """Give the buckets from one on of a tenant that has no rows yet to another shard."""
        with psycopg.connect(self.shards[source][1], autocommit=True) as connection:
            connection.execute(
                "update placements set last_bucket = %s, generation = 2 where tenant_id = %s", [first - 1, tenant_id]
            )
        self._serve(tenant_id, source, target, first)
        with psycopg.connect(self.owner, autocommit=True) as connection:
            connection.execute(
                "update placements set last_bucket = %s, generation = 2 where tenant_id = %s", [first - 1, tenant_id]
            )
            connection.execute(
                "insert into placements select %s, %s, 4095, id, 2 from shards where name = %s",
                [tenant_id, first, target],
            )

    def _serve(self, tenant_id: int, source: str, target: str, first: int) -> None:
        with psycopg.connect(self.shards[source][1]) as connection:
            [(name,)] = connection.execute("select name from tenants where id = %s", [tenant_id]).fetchall()
        with psycopg.connect(self.shards[target][1], autocommit=True) as connection:
            connection.execute("insert into tenants (id, name) values (%s, %s)", [tenant_id, name])
            connection.execute("insert into placements values (%s, %s, 4095, 2)", [tenant_id, first])

    def move(self, tenant_id: int, source: str, target: str) -> None:
        """Give a tenant that has no rows yet to another shard, all at once."""
        with psycopg.connect(self.shards[source][1], autocommit=True) as connection:
            connection.execute("update placements set state = 'closed' where tenant_id = %s", [tenant_id])
        self._serve(tenant_id, source, target, -1)
        with psycopg.connect(self.owner, autocommit=True) as connection:
            connection.execute(
                "update placements set generation = 2, shard_id = (select id from shards where name = %s) "
                "where tenant_id = %s",
                [target, tenant_id],
            )


async def lay_out(cluster, clones, count=2) -> Layout:
    """Make a catalog with so many shards, each of which has the newest schema."""
    name = clones.take()
    layout = Layout(cluster.dsn(name, "recollect_service"), cluster.dsn(name), {})
    with psycopg.connect(layout.owner, autocommit=True) as connection:
        # The clone has a schema; the catalog is a database without one.
        connection.execute("drop schema public cascade; create schema public; grant usage on schema public to public")
    await catalog.create_catalog(layout.owner)
    for shard in NAMES[:count]:
        database = clones.take()
        addresses = cluster.dsn(database, "recollect_service"), cluster.dsn(database)
        layout.shards[shard] = addresses
        await add_shard(layout.owner, shard, ServerAddresses(*addresses))
    return layout


async def lay_out_servers(servers, apart=None) -> Layout:
    """Make a catalog on the first of several servers, or on one apart, and a shard on each of them."""
    first, mark = apart or servers[0], uuid4().hex[:8]
    name = f"catalog_{mark}"
    await ensure_database(first.dsn(), name)
    layout = Layout(first.dsn(name, "recollect_service"), first.dsn(name), {}, [(first, name)])
    await catalog.create_catalog(layout.owner)
    for name, server in zip(NAMES, servers, strict=False):
        database = f"{name}_{mark}"
        await ensure_database(server.dsn(), database)
        addresses = server.dsn(database, "recollect_service"), server.dsn(database)
        await prepare(Addresses(*addresses), FakeEmbedder())
        with psycopg.connect(addresses[1], autocommit=True) as connection:
            # Nothing is there yet to be filled, and no worker runs.
            connection.execute("delete from procrastinate_jobs")
        layout.shards[name] = addresses
        layout.databases.append((server, database))
        await add_shard(layout.owner, name, ServerAddresses(*addresses))
    return layout


def quiet(*_):
    """Report nothing."""


def query(dsn, statement, *parameters):
    """Run one statement; return its rows, if it has any."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        found = connection.execute(statement, parameters)
        return found.fetchall() if found.description else None
