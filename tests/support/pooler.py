"""PgBouncer in transaction mode, as Debian ships it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from debian import find_program
from folders import open_folder
from ports import free_port
from recollect.store.embedded.account import choose_account
from waiting import until

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


@asynccontextmanager
async def pooled(dsn: str, servers: int) -> AsyncIterator[str]:
    """Run PgBouncer before a database, with so many connections to the server, and give the address of it."""
    place, listening = conninfo_to_dict(dsn), free_port()
    with open_folder("pooler") as folder:
        command = find_program("pgbouncer", PACKAGES, folder)
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
        process = launch([*command, str(configuration)])
        try:
            address = make_conninfo(dsn, host="127.0.0.1", port=str(listening))
            await until(lambda: answers(address))
            yield address
        finally:
            process.terminate()
            process.wait(30)


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
