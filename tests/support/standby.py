"""A real replica of a real server: copied by pg_basebackup, and fed by streaming."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from recollect.store.embedded.account import choose_account, reachable_programs
from recollect.store.embedded.cluster import Cluster

PATIENCE_SECONDS = 60


def copy_cluster(primary: Cluster, folder: Path, settings: Mapping[str, str]) -> Cluster:
    """Copy a server's data; started, the copy follows the server."""
    account = choose_account()
    folder.mkdir()
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


@contextmanager
def replicated(primary: Cluster, folder: Path, settings: Mapping[str, str]) -> Iterator[Cluster]:
    """Run a replica of a server."""
    with copy_cluster(primary, folder, settings) as standby:
        yield standby


def ask(cluster: Cluster, query: str, database: str = "postgres"):
    """Ask a server one thing, as its owner."""
    with psycopg.connect(cluster.dsn(database), autocommit=True) as connection:
        return connection.execute(query).fetchone()[0]


def catch_up(primary: Cluster, standby: Cluster) -> None:
    """Wait until a replica has replayed all that its server has written."""
    reached = ask(primary, "select pg_current_wal_flush_lsn()::text")
    until = time.monotonic() + PATIENCE_SECONDS
    while not ask(standby, f"select pg_last_wal_replay_lsn() >= '{reached}'"):
        assert time.monotonic() < until, "the replica does not follow"
        time.sleep(0.01)
