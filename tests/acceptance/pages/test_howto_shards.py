"""The pages on several servers: their commands run in their order, and do what the pages say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import psycopg
import pytest

from support.programs.command_line import run
from support.shards.shards import lay_out

HOWTO = Path(__file__).parents[3] / "docs" / "howto"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(page):
    text = (HOWTO / page).read_text(encoding="utf-8").replace("\\\n", "")
    lines = [line for block in BLOCK.findall(text) for line in block.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("recollect ")]


@pytest.fixture
async def layout(cluster, clones):
    return await lay_out(cluster, clones)


@pytest.fixture
def settings(layout, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = {"shards__catalog_url": layout.service, "shards__owner_catalog_url": layout.owner, "embedder": "fake"}
    given |= {"shards__map_file": str(tmp_path / "map.json")}
    return {f"RECOLLECT_{name.upper()}": value for name, value in given.items()}


def count(layout):
    counted = {}
    for name, (_, owner) in layout.shards.items():
        with psycopg.connect(owner) as connection:
            counted[name] = connection.execute("select count(*) from memories").fetchone()[0]
    return counted


@pytest.mark.parametrize("page", ["move-tenant", "shards"])
def test_the_pages_have_the_same_commands(page):
    assert commands(f"{page}.md") == commands(f"{page}.zh.md")


def test_a_tenant_is_moved_as_the_page_says(layout, settings):
    scope = ("--tenant", "acme", "--agent", "ada", "--user", "li")
    run("remember", *scope, "Li drinks tea.", settings=settings)
    run("admin", "keys", "create", "app", "--tenant", "acme", settings=settings)
    keys = run("admin", "keys", "list", "--tenant", "acme", settings=settings)
    assert count(layout) == {"north": 1, "south": 0}
    suspend, *others, resume = commands("move-tenant.md")
    assert "suspended" in run(*suspend, settings=settings)
    assert "suspended" in run("remember", *scope, "Too late.", settings=settings, fails=True)
    for words in others:
        run(*words, settings=settings)
    assert "suspended" in run("remember", *scope, "Too early.", settings=settings, fails=True)
    assert "tea" in run("recall", *scope, "tea", settings=settings)
    run(*resume, settings=settings)
    run("remember", *scope, "Li drinks coffee.", settings=settings)
    assert count(layout) == {"north": 1, "south": 2}
    assert run("admin", "keys", "list", "--tenant", "acme", settings=settings) == keys
    assert (Path("acme.jsonl").stat().st_mode & 0o777) == 0o600


def test_tenants_are_placed_as_the_page_says(layout, settings):
    placing = [words for words in commands("shards.md") if words[2] in {"place", "drain"}]
    assert len(placing) == 3
    for words in placing:
        run(*words, settings=settings)
    with psycopg.connect(layout.owner) as catalog:
        query = "select name, first_bucket, last_bucket, shard_id from placements join tenants on id = tenant_id"
        placed = sorted(catalog.execute(query).fetchall())
    assert placed == [("acme", -1, 4095, 2), ("whale", -1, 2047, 1), ("whale", 2048, 4095, 2)]
