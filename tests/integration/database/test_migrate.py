"""Migrations on a real PostgreSQL: forward, once, by anybody who owns the database."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from clones import NUMBERS
from conftest import QUICK, execute
from folders import open_folder
from recollect.errors import SetupError
from recollect.llm.fake import FakeEmbedder
from recollect.mind.service import Addresses
from recollect.settings import Settings
from recollect.store.database import migrate as module
from recollect.store.database.migrate import migrate
from recollect.store.embedded.cluster import Cluster
from recollect.wiring import connected, prepare
from schema import SCHEMA, dump


@pytest.fixture
def empty(cluster):
    name = f"empty_{next(NUMBERS)}"
    execute(cluster, f"create database {name}")
    yield cluster.dsn(name)
    execute(cluster, f"drop database {name} with (force)")


async def test_schema_file_equals_all_migrations(empty, cluster):
    await migrate(empty)
    assert dump(empty) == SCHEMA.read_text(encoding="utf-8"), "run `make schema` and commit the file"


async def test_schema_file_can_be_applied_as_it_stands(empty):
    with psycopg.connect(empty, autocommit=True) as connection:
        for extension in ("vector", "ltree", "btree_gist", "pg_trgm"):
            connection.execute(f"create extension {extension}")
        connection.execute("set check_function_bodies = off")
        connection.execute(SCHEMA.read_text(encoding="utf-8"))
    assert dump(empty) == SCHEMA.read_text(encoding="utf-8")


@pytest.mark.promise("Many migrators at once apply every step once")
async def test_many_migrators_at_once_apply_every_step_once(empty):
    applied = await asyncio.gather(*(migrate(empty) for _ in range(5)))
    assert sorted(map(len, applied))[:4] == [0, 0, 0, 0]
    assert max(applied, key=len) == [step.name for step in module.own_migrations()]
    assert await migrate(empty) == []


async def test_an_edited_migration_stops_the_next_run(empty):
    await migrate(empty)
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute("update schema_migrations set checksum = 'x' where name = '0002_memories'")
    with pytest.raises(SetupError, match="0002_memories was changed"):
        await migrate(empty)


@pytest.mark.promise("A migration that fails leaves nothing behind")
async def test_a_failing_migration_leaves_nothing_behind(empty, tmp_path, monkeypatch):
    for step in module.own_migrations():
        (tmp_path / f"{step.name}.sql").write_text(step.text, encoding="utf-8")
    (tmp_path / "0099_broken.sql").write_text("create table half_done (); select 1 / 0;", encoding="utf-8")
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    with pytest.raises(psycopg.errors.DivisionByZero):
        await migrate(empty)
    with psycopg.connect(empty, autocommit=True) as connection:
        assert connection.execute("select to_regclass('half_done')").fetchone() == (None,)
    (tmp_path / "0099_broken.sql").write_text("create table whole ();", encoding="utf-8")
    assert await migrate(empty) == ["0099_broken"]


async def test_steps_outside_a_transaction_can_build_indexes_concurrently(empty, tmp_path, monkeypatch):
    await migrate(empty)
    text = "-- no-transaction\ncreate index concurrently extra on memories (scope_id, created_at)"
    (tmp_path / "0100_index.sql").write_text(text, encoding="utf-8")
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    assert await migrate(empty) == ["0100_index"]


@pytest.fixture
def untouched():
    """A server where nobody has migrated anything yet, so that the roles do not exist."""
    with open_folder("untouched") as folder, Cluster(folder / "postgres", settings=QUICK) as started:
        yield started


async def test_an_owner_who_is_no_superuser_can_migrate_and_serve(untouched):
    execute(untouched, "create role landlord login createrole")
    execute(untouched, "create database owned owner landlord")
    with psycopg.connect(untouched.dsn("owned"), autocommit=True) as connection:
        connection.execute("create extension vector")  # not a trusted extension: an administrator installs it
    addresses = Addresses(untouched.dsn("owned", "recollect_service"), untouched.dsn("owned", "landlord"))
    await prepare(addresses, FakeEmbedder())
    async with connected(Settings(embedder="fake"), addresses, FakeEmbedder()) as recollect:
        mind = await recollect.mind("ada")
        await mind.remember("张伟 works here")
        assert len((await mind.recall("张伟")).hits) == 1
        assert await recollect.operator.first_key("default")
        assert len(await recollect.operator.index_large_scopes(1)) == 1
    with psycopg.connect(addresses.owner, autocommit=True) as connection:
        assert connection.execute("select count(*) from memories").fetchone() == (0,), "the owner is bound too"


async def test_old_talk_is_not_enriched_because_an_owner_who_is_no_superuser_upgrades(untouched, tmp_path, monkeypatch):
    """Forced row-level security hides every row from such an owner: an update would pass over all of them."""
    execute(untouched, "create role landlord login createrole")
    execute(untouched, "create database owned owner landlord")
    with psycopg.connect(untouched.dsn("owned"), autocommit=True) as connection:
        connection.execute("create extension vector")
    owner, steps = untouched.dsn("owned", "landlord"), module.own_migrations()
    for step in steps:
        if step.name < "0012":
            (tmp_path / f"{step.name}.sql").write_text(step.text, encoding="utf-8")
    with monkeypatch.context() as patched:
        patched.setattr(module, "FOLDER", tmp_path)
        await migrate(owner)
    with psycopg.connect(untouched.dsn("owned"), autocommit=True) as connection:
        connection.execute(
            "insert into conversations (scope_id, id, last_number, created_at, updated_at, changed_at) "
            "values (1, 'old', 7, now(), now(), now())"
        )
    assert await migrate(owner) == [step.name for step in steps if step.name >= "0012"]
    with psycopg.connect(untouched.dsn("owned")) as connection:
        assert connection.execute("select segmented_number, last_number from conversations").fetchall() == [(7, 7)]


async def test_a_server_that_does_not_answer_is_named():
    with pytest.raises(SetupError, match="does not answer"):
        await migrate("host=127.0.0.1 port=1 connect_timeout=2")
