"""Two servers that Patroni looks after: it makes one the standby of the other, and promotes it when the other is lost.

etcd is Debian's, Patroni that of the lock file, PostgreSQL that of the wheel.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import yaml
from psycopg.conninfo import make_conninfo

from recollect.store.embedded.account import choose_account, find_programs
from support.programs.debian import find_program
from support.programs.folders import find_memory, open_folder
from support.programs.ports import free_port
from support.programs.programs import plain_environment

PATIENCE_SECONDS = 120
# The shortest that Patroni admits.
TIMES = {"ttl": 20, "loop_wait": 1, "retry_timeout": 3}
REPAIRS = ("use_pg_rewind", "remove_data_directory_on_rewind_failure", "remove_data_directory_on_diverged_timelines")
TRUSTED = ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]


@dataclass
class Node:
    """One server and its Patroni."""

    folder: Path
    port: int = field(default_factory=free_port)
    watched: int = field(default_factory=free_port)
    """The port on which Patroni tells of itself."""
    process: subprocess.Popen[bytes] | None = None

    @property
    def configuration(self) -> Path:
        return self.folder / "patroni.yml"

    def start(self) -> None:
        """Start Patroni, which starts the server."""
        with (self.folder / "patroni.log").open("ab") as log:
            command = [*as_account(), sys.executable, "-m", "patroni", str(self.configuration)]
            own = plain_environment() | {"HOME": str(self.folder)}
            self.process = subprocess.Popen(command, cwd="/", env=own, stdout=log, stderr=log, start_new_session=True)

    def is_leader(self) -> bool:
        """Tell whether it is the one that is written to, as Patroni says."""
        return is_well(f"http://127.0.0.1:{self.watched}/primary")

    def is_confirming(self) -> bool:
        """Tell whether it is the standby that Patroni would promote, because nothing is acknowledged without it."""
        return is_well(f"http://127.0.0.1:{self.watched}/sync")

    def servers(self) -> list[psutil.Process]:
        """List the processes of the server: they work in its data directory."""
        return [each for each in psutil.process_iter() if works_in(each, self.folder / "postgres")]

    def kill(self, *, patroni: bool = True) -> None:
        """Kill every process of the server at once, and Patroni with it, like a power cut; or the server alone."""
        if patroni:
            end(self.process, signal.SIGKILL)
        while servers := self.servers():
            for each in servers:
                send(each, signal.SIGSTOP)
            for each in servers:
                send(each, signal.SIGKILL)
            time.sleep(0.02)


class PatroniPair:
    """A pair of servers, found by one address."""

    def __init__(self, folder: Path, settings: Mapping[str, str], etcd: int) -> None:
        self.nodes = [Node(folder / name) for name in ("one", "two")]
        for node in self.nodes:
            node.folder.mkdir()
            choose_account().claim(node.folder)
            node.configuration.write_text(yaml.safe_dump(configure(node, settings, etcd)), encoding="utf-8")
            node.configuration.chmod(0o644)

    def start(self) -> None:
        """Start one after the other, so that the first is the first to be written to."""
        for node in self.nodes:
            node.start()
            wait_until(lambda: any(each.is_leader() for each in self.nodes), self.tail)
        self.repaired()

    def find_leader(self) -> Node:
        """Find the one that is written to."""
        wait_until(lambda: any(each.is_leader() for each in self.nodes), self.tail)
        return next(each for each in self.nodes if each.is_leader())

    def dsn(self, database: str = "postgres", user: str = "postgres") -> str:
        """Say how to connect to whoever of both is written to."""
        hosts, ports = ",".join("127.0.0.1" for _ in self.nodes), ",".join(str(each.port) for each in self.nodes)
        named = {"dbname": database, "user": user, "target_session_attrs": "read-write"}
        return make_conninfo(host=hosts, port=ports, **named)

    def repaired(self) -> None:
        """Wait until what is written is confirmed by a standby."""
        wait_until(lambda: any(each.is_confirming() for each in self.nodes), self.tail)

    def tail(self) -> str:
        """Read the last lines of the logs."""
        return "\n".join(tail(node.folder / "patroni.log") for node in self.nodes)

    def stop(self) -> None:
        """End all; nobody needs the data any more."""
        for node in self.nodes:
            node.kill()


def configure(node: Node, settings: Mapping[str, str], etcd: int) -> dict[str, Any]:
    """Give what Patroni reads: no write is acknowledged that only one server has, and who was lost comes back."""
    shared = TIMES | {"synchronous_mode": True, "primary_start_timeout": 0}
    # pg_rewind copies pages while they are written: without their full images what it makes is not sound.
    parameters = dict(settings) | {"full_page_writes": "on"}
    return {
        "scope": "recollect",
        "name": node.folder.name,
        "restapi": {"listen": f"127.0.0.1:{node.watched}", "connect_address": f"127.0.0.1:{node.watched}"},
        "etcd3": {"host": f"127.0.0.1:{etcd}"},
        "bootstrap": {
            "dcs": shared | {"postgresql": {"use_pg_rewind": True, "parameters": parameters}},
            "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, "data-checksums"],
        },
        "postgresql": dict.fromkeys(REPAIRS, True)
        | {
            "listen": f"127.0.0.1:{node.port}",
            "connect_address": f"127.0.0.1:{node.port}",
            "data_dir": str(node.folder / "postgres"),
            "bin_dir": str(find_programs()),
            "pgpass": str(node.folder / "pgpass"),
            "pg_hba": TRUSTED,
            "authentication": {"superuser": {"username": "postgres"}, "replication": {"username": "postgres"}},
            "parameters": {"unix_socket_directories": str(node.folder)},
        },
    }


@contextmanager
def looked_after(settings: Mapping[str, str]) -> Iterator[PatroniPair]:
    """Run a pair of servers with Patroni and etcd."""
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder("patroni", find_memory()))
        pair = PatroniPair(folder, settings, stack.enter_context(agreeing(folder)))
        stack.callback(pair.stop)
        pair.start()
        yield pair


@contextmanager
def agreeing(folder: Path) -> Iterator[int]:
    """Run etcd, and give its port."""
    programs = folder / "etcd"
    programs.mkdir()
    command = find_program("etcd", ("etcd-server",), programs)
    port, other = free_port(), free_port()
    client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{other}"
    options = {
        "name": "etcd",
        "data-dir": programs / "data",
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"etcd={peer}",
    }
    flags = [f"--{name}={value}" for name, value in options.items()]
    with (folder / "etcd.log").open("wb") as log:
        process = subprocess.Popen([*command, *flags], stdout=log, stderr=log)
    try:
        wait_until(
            lambda: is_well(f"{client}/health"), lambda: (folder / "etcd.log").read_text(errors="replace")[-2000:]
        )
        yield port
    finally:
        end(process, signal.SIGTERM)


def tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-15:])


def is_well(url: str) -> bool:
    """Tell whether somebody answers there, and with yes."""
    try:
        return httpx.get(url, timeout=5, trust_env=False).is_success
    except httpx.TransportError:
        return False


def as_account() -> list[str]:
    """Give what runs a program as the account of the servers, which may read whatever this process may."""
    if os.geteuid() != 0:
        return []
    account = choose_account()
    # The interpreter may lie where that account cannot enter; PostgreSQL only refuses to run as root.
    passing = ("--inh-caps=+dac_override", "--ambient-caps=+dac_override")
    return ["setpriv", f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups", *passing]


def works_in(process: psutil.Process, folder: Path) -> bool:
    try:
        return process.cwd() == str(folder)
    except psutil.Error:
        return False


def send(process: psutil.Process, number: int) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return


def end(process: subprocess.Popen[bytes] | None, number: int) -> None:
    """Send a signal to a process of our own, and wait until it has ended."""
    if process is not None and process.poll() is None:
        process.send_signal(number)
        process.wait(60)


def wait_until(happened, tell) -> None:
    """Wait for what takes its time, and tell what is known if it never comes."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        assert time.monotonic() < until, tell()
        time.sleep(0.1)
