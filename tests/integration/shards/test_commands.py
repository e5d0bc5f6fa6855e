"""The commands for several servers, from an empty catalog to a shard that is taken out of use."""

from uuid import uuid4

import psycopg
import pytest

from command_line import run
from recollect.store.database.ownership import ensure_database
from shards import NAMES, started


@pytest.fixture(scope="module")
def servers():
    """Two servers with a log that can be followed."""
    with started(*NAMES[:2]) as running:
        yield running


@pytest.fixture
async def settings(servers, tmp_path):
    """What a program must know that goes by a catalog, which is empty."""
    name = f"catalog_{uuid4().hex[:8]}"
    await ensure_database(servers[0].dsn(), name)
    given = {"catalog_url": servers[0].dsn(name, "recollect_service"), "owner_catalog_url": servers[0].dsn(name)}
    given |= {"embedder": "fake", "map_file": str(tmp_path / "map.json")}
    return {f"RECOLLECT_{name.upper()}": value for name, value in given.items()}


async def add(servers, settings):
    for name, server in zip(NAMES, servers, strict=False):
        database = f"{name}_{uuid4().hex[:8]}"
        await ensure_database(server.dsn(), database)
        addresses = ("--service", server.dsn(database, "recollect_service"), "--owner", server.dsn(database))
        assert "is in the catalog" in run("shard", "add", name, *addresses, settings=settings)


def rows(settings):
    listed = [line.split("│") for line in run("shard", "list", settings=settings).splitlines() if "│" in line]
    return {cells[1].strip(): tuple(cell.strip() for cell in cells[2:5]) for cells in listed}


async def test_servers_are_entered_used_moved_between_and_drained(servers, settings):
    await add(servers, settings)
    assert rows(settings) == {"north": ("open", "0", "0"), "south": ("open", "0", "0")}
    for tenant in ("one", "two"):
        scope = ("--agent", "ada", "--tenant", tenant)
        run("remember", f"The word of {tenant}.", *scope, settings=settings)
    assert rows(settings) == {"north": ("open", "1", "4,097"), "south": ("open", "1", "4,097")}
    finish_fills(servers, settings)
    assert "Buckets 2048 to 4095" in run(
        "shard", "move", "one", "--to", "south", "--buckets", "2048-4095", settings=settings
    )
    assert rows(settings)["south"] == ("open", "2", "6,145")
    assert "served by south" in run("shard", "move", "one", "--to", "south", settings=settings)
    assert "0 parts" in run("shard", "clean", settings=settings)
    assert "3 parts" in run("shard", "drain", "south", settings=settings)
    assert rows(settings) == {"north": ("open", "2", "8,194"), "south": ("draining", "0", "0")}
    assert "open" in run("shard", "open", "south", settings=settings)
    for tenant in ("one", "two"):
        said = run("recall", "word", "--agent", "ada", "--tenant", tenant, settings=settings)
        assert f"The word of {tenant}." in said
    assert "up to date" in run("migrate", settings=settings)
    assert "fake" in run("space", "list", settings=settings)


def finish_fills(servers, settings):
    """Do what a worker would: nothing is there to be filled."""
    with psycopg.connect(settings["RECOLLECT_OWNER_CATALOG_URL"]) as catalog:
        owners = [owner for (owner,) in catalog.execute("select owner_address from shards").fetchall()]
    for owner in owners:
        with psycopg.connect(owner, autocommit=True) as connection:
            connection.execute("delete from procrastinate_jobs where task_name = 'fill'")


async def test_nothing_is_migrated_while_a_tenant_moves(servers, settings):
    await add(servers, settings)
    run("remember", "A word.", "--agent", "ada", "--tenant", "one", settings=settings)
    with psycopg.connect(settings["RECOLLECT_OWNER_CATALOG_URL"], autocommit=True) as catalog:
        catalog.execute(
            "insert into moves (tenant_id, first_bucket, last_bucket, source, target) values (1, -1, 4095, 1, 2)"
        )
    assert "shard stop" in run("migrate", settings=settings, fails=True)
    assert "stopped" in run("shard", "stop", "one", settings=settings)
    assert "up to date" in run("migrate", settings=settings)


async def test_a_move_is_refused_that_names_nothing_it_could_move(servers, settings):
    await add(servers, settings)
    run("remember", "A word.", "--agent", "ada", "--tenant", "one", settings=settings)
    for words, reason in {
        ("nobody", "--to", "south"): "no tenant",
        ("one", "--to", "east"): "no shard east",
        ("one", "--to", "south", "--buckets", "9-3"): "buckets must be a range",
    }.items():
        assert reason in run("shard", "move", *words, settings=settings, fails=True)


def test_without_a_catalog_there_is_nothing_to_look_after():
    assert "RECOLLECT_CATALOG_URL" in run("shard", "list", settings={}, fails=True)
