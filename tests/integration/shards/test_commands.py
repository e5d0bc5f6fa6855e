"""The commands for several servers, from an empty catalog to a shard that is taken out of use."""

from uuid import uuid4

import pytest

from recollect.store.database.ownership import ensure_database
from support.programs.command_line import run
from support.shards.shards import NAMES, started


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
    given = {
        "shards__catalog_url": servers[0].dsn(name, "recollect_service"),
        "shards__owner_catalog_url": servers[0].dsn(name),
    }
    given |= {"embedder": "fake", "shards__map_file": str(tmp_path / "map.json")}
    return {f"RECOLLECT_{name.upper()}": value for name, value in given.items()}


async def add(servers, settings):
    for name, server in zip(NAMES, servers, strict=False):
        database = f"{name}_{uuid4().hex[:8]}"
        await ensure_database(server.dsn(), database)
        addresses = ("--service", server.dsn(database, "recollect_service"), "--owner", server.dsn(database))
        assert "is in the catalog" in run("admin", "shard", "add", name, *addresses, settings=settings)


def rows(settings):
    listed = [line.split("│") for line in run("admin", "shard", "list", settings=settings).splitlines() if "│" in line]
    return {cells[1].strip(): tuple(cell.strip() for cell in cells[2:5]) for cells in listed}


async def test_servers_are_added_used_and_drained(servers, settings):
    await add(servers, settings)
    assert rows(settings) == {"north": ("open", "0", "0"), "south": ("open", "0", "0")}
    for tenant in ("one", "two"):
        scope = ("--agent", "ada", "--tenant", tenant)
        run("remember", f"The word of {tenant}.", *scope, settings=settings)
    assert rows(settings) == {"north": ("open", "1", "4,097"), "south": ("open", "1", "4,097")}
    assert "no more tenants" in run("admin", "shard", "drain", "south", settings=settings)
    assert rows(settings)["south"] == ("draining", "1", "4,097")
    run("remember", "A word.", "--agent", "ada", "--tenant", "three", settings=settings)
    assert rows(settings)["north"] == ("open", "2", "8,194")
    assert "open" in run("admin", "shard", "open", "south", settings=settings)
    for tenant in ("one", "two"):
        said = run("recall", "word", "--agent", "ada", "--tenant", tenant, settings=settings)
        assert f"The word of {tenant}." in said
    assert "up to date" in run("admin", "migrate", settings=settings)
    assert "fake" in run("admin", "embeddings", "list", settings=settings)


def test_without_a_catalog_there_is_nothing_to_look_after():
    assert "RECOLLECT_SHARDS__CATALOG_URL" in run("admin", "shard", "list", settings={}, fails=True)
