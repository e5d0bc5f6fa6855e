"""No password is stored: addresses have none, and libpq reads them from a passfile."""

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from conftest import QUICK
from recollect.store.database.ownership import ensure_database
from recollect.store.embedded.cluster import Cluster
from support.programs.command_line import run
from support.programs.folders import open_folder
from support.programs.ports import free_port

SECRET = "kept-in-a-passfile"
STORED = "select service_address || owner_address || direct_address from {} order by 1"


@pytest.fixture(scope="module")
def guarded():
    """A server that lets nobody in without a password."""
    with open_folder("guarded") as folder, Cluster(folder / "postgres", port=free_port(), settings=QUICK) as started:
        yield started


def address(cluster, database, role="postgres"):
    return make_conninfo(host="127.0.0.1", port=cluster.port, dbname=database, user=role)


async def test_no_password_is_in_the_catalog_the_map_or_a_server(guarded, tmp_path):
    passfile, own = tmp_path / "passfile", (guarded.data / "password").read_text().strip()
    passfile.write_text(f"127.0.0.1:{guarded.port}:*:postgres:{own}\n127.0.0.1:{guarded.port}:*:*:{SECRET}\n")
    passfile.chmod(0o600)
    for name in ("catalog", "north", "south"):
        await ensure_database(guarded.dsn(), name)
    with psycopg.connect(guarded.dsn(), autocommit=True) as owner:
        owner.execute(f"create role recollect_service login password '{SECRET}'")
    settings = {
        "RECOLLECT_SHARDS__CATALOG_URL": address(guarded, "catalog", "recollect_service"),
        "RECOLLECT_SHARDS__OWNER_CATALOG_URL": address(guarded, "catalog"),
        "RECOLLECT_EMBEDDER": "fake",
        "RECOLLECT_SHARDS__MAP_FILE": str(tmp_path / "map.json"),
    }
    service, owner = address(guarded, "north", "recollect_service"), address(guarded, "north")
    words = ("admin", "shard", "add", "north", "--owner", owner, "--service")
    open_settings = {**settings, "PGPASSFILE": str(passfile)}
    assert "PGPASSFILE" in run(*words, f"{service} password={SECRET}", settings=open_settings, fails=True)
    assert "password" in run(*words, service, settings=settings, fails=True)
    for name in ("north", "south"):
        given = ("--service", address(guarded, name, "recollect_service"), "--owner", address(guarded, name))
        run("admin", "shard", "add", name, *given, settings=open_settings)
    scope = ("--agent", "ada", "--tenant", "one")
    run("remember", "The word of one.", *scope, settings=open_settings)
    assert "The word of one." in run("recall", "word", *scope, settings=open_settings)
    assert "agree" in run("admin", "shard", "check", "--repair", settings=open_settings)
    stored = (tmp_path / "map.json").read_text()
    for database, table in (("catalog", "shards"), ("north", "known_shards"), ("south", "known_shards")):
        with psycopg.connect(make_conninfo(guarded.dsn(), dbname=database)) as connection:
            rows = connection.execute(STORED.format(table)).fetchall()
        assert len(rows) == 2
        stored += str(rows)
    assert "recollect_service" in stored
    assert not any(word in stored for word in ("password", SECRET, own))
