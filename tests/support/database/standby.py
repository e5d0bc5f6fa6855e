"""A real replica of a real server: copied by pg_basebackup, fed by streaming, and promoted when the server is lost."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from recollect.store.embedded.account import choose_account, reachable_programs
from recollect.store.embedded.cluster import Cluster

PATIENCE_SECONDS = 60


def copy_cluster(primary: Cluster, folder: Path, settings: Mapping[str, str]) -> Cluster:
    """Copy a server's data in place of what the folder had; started, the copy follows the server."""
    account = choose_account()
    folder.mkdir(exist_ok=True)
    shutil.rmtree(folder / "postgres", ignore_errors=True)
    (folder / "turn.lock").touch()
    for path in (folder, folder / "turn.lock"):
        account.claim(path) if path.is_dir() else path.chmod(0o600)
    place = conninfo_to_dict(primary.dsn())
    done = account.run(
        *(reachable_programs(account, primary.data) / "pg_basebackup", "-D", folder / "postgres"),
        *("-h", str(place["host"]), "-p", str(place["port"]), "-U", "postgres"),
        *("--write-recovery-conf", "--checkpoint=fast", "--wal-method=stream"),
    )
    assert done.returncode == 0, done.stdout
    return Cluster(folder, settings=settings)


class Pair:
    """A server and its standby, which change their parts at every fail-over."""

    def __init__(self, primary: Cluster, folder: Path, settings: Mapping[str, str], *, synchronous: bool) -> None:
        self.primary = primary
        self.lost: Cluster | None = None
        self._settings, self._synchronous = settings, synchronous
        self.standby = self._follow(folder)

    def dsn(self, database: str = "postgres", user: str = "postgres") -> str:
        """Say how to connect to whoever of both is written to."""
        places = sorted(server.dsn(database, user) for server in (self.primary, self.standby))
        hosts, ports = ([str(conninfo_to_dict(each)[name]) for each in places] for name in ("host", "port"))
        named = {"host": ",".join(hosts), "port": ",".join(ports), "target_session_attrs": "read-write"}
        return make_conninfo(places[0], **named)

    def freeze(self) -> None:
        """Let the standby stand still: it neither receives nor confirms anything."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on; it still reads what the network kept for it."""
        self._signal(signal.SIGCONT)

    def fail_over(self, *, restarted: bool) -> None:
        """Kill the server, and promote the standby; if restarted, it has lost what the network kept for it."""
        self.primary.kill()
        self.lost = self.primary
        if restarted:
            self.standby.kill()
            self.standby.start()
        else:
            self.thaw()
        assert ask(self.standby, f"select pg_promote(true, {PATIENCE_SECONDS})")

    def repair(self) -> None:
        """Make a standby of the server that was lost, if one was."""
        if lost := self.lost:
            self.primary, self.lost = self.standby, None
            lost.stop()
            self.standby = self._follow(lost.data)

    def stop(self) -> None:
        """Stop both; a standby that stands still would not hear of it."""
        self.thaw()
        self.standby.stop()
        self.primary.stop()

    def _signal(self, number: int) -> None:
        for pid in self.standby._server.processes():
            # A process may end by itself meanwhile.
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _follow(self, folder: Path) -> Cluster:
        # Only the server is told to wait: a copy that was told, too, would wait for nobody after its promotion.
        standby = copy_cluster(self.primary, folder, self._settings).start()
        if self._synchronous:
            with psycopg.connect(self.primary.dsn(), autocommit=True) as connection:
                connection.execute("alter system set synchronous_standby_names = '*'")
                connection.execute("select pg_reload_conf()")
        streaming = "select count(*) from pg_stat_replication where state = 'streaming' and sync_state = '{}'"
        wait_for(self.primary, streaming.format("sync" if self._synchronous else "async"))
        return standby


def wait_for(cluster: Cluster, query: str) -> None:
    """Wait until a server answers with something that is true."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not ask(cluster, query):
        if time.monotonic() > until:
            said = (cluster.data / "server.log").read_text(encoding="utf-8", errors="replace")
            raise AssertionError(f"it never came: {query}; the server says:\n{said[-2_000:]}")
        time.sleep(0.01)


def ask(cluster: Cluster, query: str, database: str = "postgres"):
    """Ask a server one thing, as its owner."""
    with psycopg.connect(cluster.dsn(database), autocommit=True) as connection:
        return connection.execute(query).fetchone()[0]
