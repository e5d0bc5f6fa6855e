"""Migrations on a real PostgreSQL: forward, once, by anybody who owns the database."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from conftest import QUICK, copy_migrations, execute
from recollect.errors import SchemaError, SetupError
from recollect.llm.fake import FakeEmbedder
from recollect.mind.service import Addresses
from recollect.settings import Settings
from recollect.store.database import migrate as module
from recollect.store.database.migrate import migrate
from recollect.store.database.ownership import ensure_tenant, number_tenants_from
from recollect.store.embedded.cluster import Cluster
from recollect.wiring import connected, prepare
from schema import SCHEMA, dump
from support.database.clones import NUMBERS
from support.programs.folders import open_folder


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
    assert max(applied, key=len) == [step.name for step in module.list_migrations()]
    assert await migrate(empty) == []


async def test_no_key_comes_from_a_sequence_of_the_server(empty):
    """A row keeps its key when it is moved to another server, which would count for itself."""
    await migrate(empty)
    with psycopg.connect(empty, autocommit=True) as connection:
        found = connection.execute("select sequencename from pg_sequences where schemaname = 'public'").fetchall()
    assert {name for (name,) in found if not name.startswith("procrastinate_")} == set()


async def test_tenants_are_numbered_in_blocks(empty):
    await migrate(empty)
    assert [await ensure_tenant(empty, name) for name in ("a", "b", "a", "c")] == [1, 2, 1, 3]
    with pytest.raises(SetupError, match="already start at block 0"):
        await number_tenants_from(empty, 5)
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute("update tenant_blocks set used = 1024")
    assert [await ensure_tenant(empty, name) for name in ("d", "e", "a")] == [1024, 1025, 1]


@pytest.mark.promise("Servers that number their tenants from blocks of their own give no number twice")
async def test_another_server_numbers_tenants_from_a_block_of_its_own(empty):
    await migrate(empty)
    await number_tenants_from(empty, 5)
    await number_tenants_from(empty, 5)
    numbers = await asyncio.gather(*(ensure_tenant(empty, f"tenant {number}") for number in range(6)))
    assert sorted(numbers) == [5120, 5121, 5122, 5123, 5124, 5125]


@pytest.mark.parametrize(
    "change",
    [
        "update schema_migrations set checksum = 'x' where name = '0002_memories'",
        "update schema_migrations set name = '0002_others' where name = '0002_memories'",
        "insert into schema_migrations (name, checksum) values ('0001_tenants', 'x')",
    ],
)
async def test_a_database_of_other_files_is_left_alone(empty, change):
    await migrate(empty)
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute(change)
        before = connection.execute("select name, checksum from schema_migrations order by name").fetchall()
        with pytest.raises(SchemaError, match="created by an unreleased version"):
            await migrate(empty)
        assert connection.execute("select name, checksum from schema_migrations order by name").fetchall() == before


async def test_an_edited_step_of_the_job_engine_is_named(empty):
    await migrate(empty)
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute("update schema_migrations set checksum = 'x' where name like 'procrastinate/%'")
    with pytest.raises(SetupError, match=r"procrastinate/.* was changed"):
        await migrate(empty)


def test_every_file_is_named_for_a_room():
    rooms = {path.name for path in module.FOLDER.parents[1].iterdir() if path.is_dir()} | {"compat"}
    for number, step in enumerate(module.list_migrations(), 1):
        assert module.number_of(step.name) == number
        assert step.name.split("_")[1] in rooms, step.name


@pytest.mark.promise("A migration that fails leaves nothing behind")
async def test_a_failing_migration_leaves_nothing_behind(empty, tmp_path, monkeypatch):
    copy_migrations(tmp_path)
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
    copy_migrations(tmp_path)
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
        assert len(await recollect.operator.spaces.index_large_scopes(1)) == 1
    with psycopg.connect(addresses.owner, autocommit=True) as connection:
        assert connection.execute("select count(*) from memories").fetchone() == (0,), "the owner is bound too"


async def test_a_server_that_does_not_answer_is_named():
    with pytest.raises(SetupError, match="does not answer"):
        await migrate("host=127.0.0.1 port=1 connect_timeout=2")
