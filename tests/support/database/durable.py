"""A PostgreSQL of a test's own that waits for its disk, and a service on it: for faults that no other test may feel."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import psycopg

from conftest import addresses_of, execute
from recollect.llm.fake import FakeEmbedder
from recollect.store.embedded.cluster import Cluster
from recollect.wiring import connected, prepare
from support.service.made_settings import make_settings

DATABASE = "faults"
DURABLE = {
    "fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "shared_buffers": "32MB",
    "min_wal_size": "32MB", "max_wal_size": "64MB", "max_connections": "40",
}  # fmt: skip


def make_durable(data: Path, **settings: str) -> Cluster:
    """Start a server that nobody else uses, with a database that is prepared for the service."""
    cluster = Cluster(data, settings=DURABLE | settings).start()
    execute(cluster, f"create database {DATABASE}")
    with asyncio.Runner() as runner:
        runner.run(prepare(addresses_of(cluster, DATABASE), FakeEmbedder()))
    return cluster


@asynccontextmanager
async def durable(data: Path, **settings: str) -> AsyncIterator[Cluster]:
    """Run such a server for as long as the block lasts."""
    cluster = await asyncio.to_thread(make_durable, data, **settings)
    try:
        yield cluster
    finally:
        await asyncio.to_thread(cluster.kill)
        leave(cluster)


def leave(cluster: Cluster) -> None:
    """Close what this process holds open in the folder of a server, so that its disk can be taken away."""
    cluster._membership.release_lock()


def connect(cluster: Cluster) -> psycopg.Connection:
    """Connect as the owner, who sees everything."""
    return psycopg.connect(cluster.dsn(DATABASE), autocommit=True)


def service(cluster: Cluster, deadline: float = 2.0, through: str | None = None):
    """Run a service on the database, with little time for a request, and through somebody else if asked."""
    settings = make_settings(
        embedder="fake",
        request_timeout_seconds=deadline,
        embedding__wait_timeout_seconds=1,
        pool_size=6,
        postgres__max_requests=64,
    )
    addresses = addresses_of(cluster, DATABASE)
    return connected(settings, replace(addresses, service=through or addresses.service), FakeEmbedder())


def move_log(cluster: Cluster, place: Path) -> None:
    """Give the write-ahead log of a server a disk of its own."""
    cluster.stop()
    log = cluster.data / "postgres" / "pg_wal"
    # Unlike shutil, it keeps the owner.
    subprocess.run(["mv", log, place], check=True)
    log.symlink_to(place / "pg_wal")
    cluster.start()
