"""PgBouncer in transaction mode, as Debian ships it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from recollect.store.embedded.account import choose_account
from support.programs.debian import find_program
from support.programs.folders import open_folder
from support.programs.ports import free_port
from support.programs.waiting import until

PACKAGES = ("pgbouncer", "libevent-2.1-7", "libc-ares2")
CONFIGURATION = """
[databases]
{database} = host={host} port={port} user={user} dbname={database}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listening}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {servers}
server_login_retry = 1
"""


class Pooler:
    """A PgBouncer before a database, which can be killed and comes back under the same address."""

    def __init__(self, dsn: str, servers: int, folder: Path) -> None:
        place, listening = conninfo_to_dict(dsn), free_port()
        configuration = folder / "pgbouncer.ini"
        configuration.write_text(
            CONFIGURATION.format(
                database=place["dbname"],
                host=place["host"],
                port=place["port"],
                user=place["user"],
                listening=listening,
                servers=servers,
            ),
            encoding="utf-8",
        )
        self._command = [*find_program("pgbouncer", PACKAGES, folder), str(configuration)]
        self.address = make_conninfo(dsn, host="127.0.0.1", port=str(listening))

    async def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = launch(self._command)
        await until(lambda: answers(self.address))

    def end(self, how: int = signal.SIGTERM) -> None:
        """End it by a signal."""
        self._process.send_signal(how)
        self._process.wait(30)


@asynccontextmanager
async def running_pooler(dsn: str, servers: int) -> AsyncIterator[Pooler]:
    """Run PgBouncer before a database, with so many connections to the server."""
    with open_folder("pooler") as folder:
        pooler = Pooler(dsn, servers, folder)
        await pooler.start()
        try:
            yield pooler
        finally:
            pooler.end()


@asynccontextmanager
async def pooled(dsn: str, servers: int) -> AsyncIterator[str]:
    """Run PgBouncer before a database, and give the address of it."""
    async with running_pooler(dsn, servers) as pooler:
        yield pooler.address


def launch(command: list[str]) -> subprocess.Popen[bytes]:
    """Start a program as the account that runs the database, which alone may enter the folder of its socket."""
    account = choose_account()
    identity = {"user": account.uid, "group": account.gid, "extra_groups": []} if os.geteuid() == 0 else {}
    return subprocess.Popen(command, **identity, stderr=subprocess.DEVNULL)


def answers(dsn: str) -> bool:
    """Tell whether somebody answers there."""
    try:
        psycopg.connect(dsn, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True
