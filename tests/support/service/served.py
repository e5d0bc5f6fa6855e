"""A whole Recollect for programs outside: a database, `recollect serve` on a free port, and keys of two tenants."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from recollect.llm.build import build_embedder
from recollect.mind.service import Addresses
from recollect.models.service import Right
from recollect.settings import Settings
from recollect.store.embedded.cluster import Cluster
from recollect.wiring import connected, prepare
from support.programs.folders import open_folder
from support.programs.ports import free_port
from support.programs.programs import COMMAND, Program

NUMBERS = itertools.count(1)


@contextmanager
def serving(cluster: Cluster, **settings: str) -> Iterator[dict[str, str]]:
    """Serve a database of its own; give what a program needs to know, as variables of its environment."""
    database, empty = (f"served_{os.getpid()}_{next(NUMBERS)}" for _ in range(2))
    with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
        for name in (database, empty):
            connection.execute(f"create database {name}")
    addresses = Addresses(cluster.dsn(database, "recollect_service"), cluster.dsn(database))
    with asyncio.Runner() as runner:
        keys = runner.run(make_keys(addresses))
    port = free_port()
    chosen = {"database_url": addresses.service, "owner_database_url": addresses.owner, "port": str(port)} | settings
    environment = {f"RECOLLECT_{name.upper()}": value for name, value in chosen.items()}
    server = Program("serve", settings=environment, errors=None)
    try:
        server.wait_until_ready()
        yield {
            "RECOLLECT_URL": server.url,
            "RECOLLECT_KEY": keys[0],
            "RECOLLECT_OTHER_KEY": keys[1],
            "RECOLLECT_DATABASE_URL": cluster.dsn(empty),
        }
    finally:
        server.stop()
        with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
            for name in (database, empty):
                connection.execute(f"drop database {name} with (force)")


async def make_keys(addresses: Addresses) -> list[str]:
    """Prepare the database for the local model, and make two tenants with a key each."""
    settings = Settings()
    embedder = build_embedder(settings)
    assert embedder is not None, "the weights of the local model are missing: run `make setup`"
    try:
        await prepare(addresses, embedder)
        async with connected(settings, addresses, embedder) as recollect:
            return [await make_key(recollect, tenant) for tenant in ("default", "other")]
    finally:
        await embedder.close()


async def make_key(recollect, tenant: str) -> str:
    caller = await recollect.operator.act_for(tenant)
    return (await recollect.create_key(caller, "test", tuple(Right), 50))[1]


@contextmanager
def running_up(environment: dict[str, str]) -> Iterator[str]:
    """Run `recollect up` in a process of its own; give what it greets with."""
    process = subprocess.Popen([COMMAND, "up"], env=environment, stdout=subprocess.PIPE, text=True, cwd="/")
    assert process.stdout is not None
    greeting = ""
    try:
        while "Stop with" not in greeting:
            line = process.stdout.readline()
            assert line, f"`recollect up` ended early: {greeting}"
            greeting += line
        yield greeting
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def main() -> None:
    """Serve until stopped, and print the environment."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with open_folder("served") as folder, Cluster(folder / "postgres") as cluster, serving(cluster) as environment:
        for name, value in environment.items():
            print(f"export {name}='{value}'", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
