"""Ready is who can serve: the schema fits, the role is bound, and a busy pool does not keep it from being told."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from conftest import addresses_of, copy_migrations, execute, http_client
from recollect.errors import SchemaError, SetupError
from recollect.mind.service import Addresses
from recollect.store.database import migrate as module
from recollect.store.database.migrate import migrate
from recollect.wiring import connected
from support.database.clones import NUMBERS
from support.programs import command_line
from support.programs.waiting import until_blocked
from support.service.made_settings import make_settings

NEWEST = module.number_of(module.list_migrations()[-1].name)
LATER = "insert into schema_migrations (name, checksum, oldest_program) values ('9000_later', 'x', %s)"
UNRELEASED = "created by an unreleased version"
MIGRATE = "Run `recollect admin migrate`"


@pytest.fixture
def bare(cluster, template):
    """The addresses of a database that nobody has migrated; the roles exist already."""
    name = f"bare_{next(NUMBERS)}"
    execute(cluster, f"create database {name}")
    yield addresses_of(cluster, name)
    execute(cluster, f"drop database {name} with (force)")


def opened(addresses, **settings):
    return connected(make_settings(embedder="none", **settings), addresses, None)


async def refusal(addresses):
    """Say why a database is not opened."""
    with pytest.raises(SetupError) as caught:
        async with opened(addresses):
            pass
    return str(caught.value)


async def not_ready(recollect):
    """Say why a running service is not ready; it must not ask anybody to try again."""
    async with http_client(recollect, "") as http:
        answer = await http.get("/health/ready")
    assert (answer.status_code, answer.json()["code"]) == (503, "setup")
    assert "retry-after" not in answer.headers
    assert "try again" not in answer.text.lower()
    return answer.json()["detail"]


@pytest.mark.promise("A program does not serve a schema that lacks one of its migrations")
async def test_a_database_that_was_never_migrated_is_refused(bare):
    assert MIGRATE in await refusal(bare)
    for command in (("serve",), ("worker",)):
        settings = command_line.settings_of(bare, port="0")
        ended = await asyncio.to_thread(command_line.call, *command, settings=settings)
        assert ended.code == 1
        assert len(ended.said.splitlines()) == 1
        assert MIGRATE in ended.said


async def test_a_schema_that_lacks_the_newest_migration_is_refused(bare, tmp_path, monkeypatch):
    copy_migrations(tmp_path, last=-1)
    with monkeypatch.context() as patched:
        patched.setattr(module, "FOLDER", tmp_path)
        await migrate(bare.owner)
    assert MIGRATE in await refusal(bare)
    await migrate(bare.owner)
    async with opened(bare) as recollect:
        await recollect.ready()


async def test_a_missing_step_of_the_job_engine_counts_as_missing(addresses, owner):
    owner.execute("delete from schema_migrations where name = (select max(name) from schema_migrations)")
    assert "procrastinate/" in await refusal(addresses)


@pytest.mark.promise("A program does not run on a database that other files than its own have made")
@pytest.mark.parametrize("change", ["set checksum = 'x'", "set name = '0002_others'"])
async def test_a_database_of_an_unreleased_version_is_refused(addresses, owner, change):
    async with opened(addresses) as recollect:
        owner.execute(f"update schema_migrations {change} where name = '0002_memories'")
        assert UNRELEASED in await not_ready(recollect)
    for command in (("admin", "migrate"), ("serve",), ("worker",)):
        settings = command_line.settings_of(addresses, port="0")
        ended = await asyncio.to_thread(command_line.call, *command, settings=settings)
        assert ended.code == 1
        assert len(ended.said.splitlines()) == 1
        assert UNRELEASED in ended.said


async def test_a_schema_that_may_not_be_read_is_to_be_migrated(addresses, owner):
    owner.execute("revoke select on schema_migrations from recollect_service")
    assert MIGRATE in await refusal(addresses)
    assert await migrate(addresses.owner) == []
    async with opened(addresses) as recollect:
        await recollect.ready()


async def test_what_a_migration_admits_is_stored_beside_its_name(addresses, owner, tmp_path, monkeypatch):
    copy_migrations(tmp_path)
    (tmp_path / "9000_later.sql").write_text("-- admits programs from: 0024\nselect 1", encoding="utf-8")
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    await migrate(addresses.owner)
    ask = "select oldest_program from schema_migrations where name = '9000_later'"
    assert owner.execute(ask).fetchone() == (24,)


async def test_a_newer_schema_is_served_if_it_admits_the_program(addresses, owner):
    owner.execute(LATER, [NEWEST])
    async with opened(addresses) as recollect:
        await recollect.ready()
        owner.execute("update schema_migrations set oldest_program = %s where name = '9000_later'", [NEWEST + 1])
        assert "Upgrade Recollect." in await not_ready(recollect)
    assert "Upgrade Recollect." in await refusal(addresses)


async def test_a_running_service_is_not_ready_while_a_migration_is_missing(recollect, owner):
    owner.execute("delete from schema_migrations where name = '0002_memories'")
    assert MIGRATE in await not_ready(recollect)


@pytest.mark.parametrize(
    "change",
    [
        "do $$ declare one regprocedure; begin for one in select oid from pg_proc where proname = 'authorize' loop "
        "execute format('drop function %s', one); end loop; end $$",
        "alter table scopes rename to spheres",
        "alter table scopes rename column agent to persona",
    ],
)
async def test_a_request_that_the_schema_does_not_fit_is_not_to_be_tried_again(recollect, http, owner, change):
    owner.execute(change)
    answer = await http.post("/v1/recall", json={"agent": "ada", "text": "x"})
    assert (answer.status_code, answer.json()["code"]) == (500, "setup")
    assert MIGRATE in answer.json()["detail"]
    assert "try again" not in answer.text.lower()
    assert "retry-after" not in answer.headers


@pytest.mark.promise("A service whose connections are all in use still says that it is ready")
async def test_a_full_pool_does_not_keep_from_being_ready(addresses):
    async with (
        opened(addresses, pool_size=1, request_timeout_seconds=60) as recollect,
        http_client(recollect, "") as http,
        recollect.parts.database.statement(),
    ):
        # Nothing gives the connection back before there is an answer.
        assert (await http.get("/health/ready")).json()["status"] == "ok"


async def test_a_locked_table_does_not_keep_from_being_ready(addresses, owner):
    async with opened(addresses, pool_size=2, request_timeout_seconds=60) as recollect:
        mind = await recollect.mind("ada")
        await mind.remember("before the lock")
        with psycopg.connect(addresses.owner) as blocker:
            blocker.execute("lock table memories, memory_terms, scopes in access exclusive mode")
            recalls = [asyncio.create_task(mind.recall(f"cue {number}")) for number in range(4)]
            await until_blocked(owner, recalls[0])
            await recollect.ready()
        await asyncio.gather(*recalls)


async def test_a_lost_connection_is_made_again(recollect, owner):
    mine = "select pid from pg_stat_activity where datname = current_database() and usename = 'recollect_service'"
    for (pid,) in owner.execute(mine).fetchall():
        owner.execute("select pg_terminate_backend(%s, 10000)", [pid])
    await recollect.ready()


@pytest.mark.promise("No role that passes row-level security serves requests")
async def test_a_role_that_passes_row_level_security_is_refused(cluster, addresses, owner):
    database = owner.info.dbname
    owner.execute("do $$ begin create role passing login bypassrls; exception when duplicate_object then null; end $$")
    owner.execute("do $$ begin create role landlady login; exception when duplicate_object then null; end $$")
    owner.execute(
        "do $$ begin create role her_clerk login in role landlady; exception when duplicate_object then null; end $$"
    )
    owner.execute("grant recollect_service to passing, landlady")
    owner.execute("alter table memories owner to landlady")
    for role in ("postgres", "passing", "landlady", "her_clerk"):
        said = await refusal(Addresses(cluster.dsn(database, role), addresses.owner))
        assert f"the role {role}," in said
        assert "recollect_service" in said
        assert "deploy/roles.sql" in said
    async with opened(addresses):
        pass


async def test_the_library_refuses_likewise(addresses):
    with pytest.raises(SchemaError, match=MIGRATE), psycopg.connect(addresses.owner, autocommit=True) as owner:
        owner.execute("drop table schema_migrations")
        async with opened(addresses):
            pass
