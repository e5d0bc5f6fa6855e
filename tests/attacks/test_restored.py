"""A dump by a superuser, restored beside, holds every row and every policy, and serves at once."""

from __future__ import annotations

import subprocess

import psycopg
import pytest

from conftest import PATIENT, addresses_of, execute, http_client, new_key
from recollect.models.conversations import NewMessage
from recollect.models.knowledge import NewFact
from recollect.models.memories import NewMemory, Role
from recollect.store.embedded.account import find_programs
from recollect.wiring import connected
from support.database.clones import NUMBERS
from support.service.made_settings import make_settings

TABLES = (
    "select oid::regclass::text from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace order by 1"
)
POLICIES = "select count(*) from pg_class where relrowsecurity and relforcerowsecurity"
REFUSED = "select has_function_privilege('public', 'pg_advisory_lock(bigint)', 'execute')"


def sum_up(dsn: str) -> dict[str, object]:
    """Sum up a database: rows of every table with their checksum, policies, and what everybody may call."""
    with psycopg.connect(dsn) as connection:
        tables = [name for (name,) in connection.execute(TABLES)]
        ask = "select count(*), md5(string_agg(md5(t::text), '' order by md5(t::text))) from {} t"
        rows: dict[str, object] = {name: connection.execute(ask.format(name)).fetchone() for name in tables}
        return rows | {ask: connection.execute(ask).fetchone() for ask in (POLICIES, REFUSED)}


def run(program: str, *arguments: str) -> None:
    done = subprocess.run([find_programs() / program, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def restored(cluster, addresses, tmp_path):
    """Restore a dump of the database of the test into another, when it is asked to."""
    name = f"restored_{next(NUMBERS)}"

    def restore() -> str:
        dump = str(tmp_path / "dump")
        run("pg_dump", "-Fc", "-d", addresses.owner, "-f", dump)
        execute(cluster, f"create database {name}")
        run("pg_restore", "-d", cluster.dsn(name), dump)
        return name

    yield restore
    execute(cluster, f"drop database if exists {name} with (force)")


@pytest.mark.promise("A restored dump has every row and policy, and serves", part="restores")
async def test_a_restored_dump_serves(recollect, mind, cluster, addresses, embedder, restored, figure):
    await mind.remember([NewMemory(f"memory {place}", keywords=("k",), topic="a->b") for place in range(20)])
    await mind.conversation("c").append([NewMessage(Role.USER, "zebra"), NewMessage(Role.ASSISTANT, "noted")])
    await mind.knowledge.add(NewFact("Ann", "lives in", "Rome"))
    _, secret = await new_key(recollect)
    before = sum_up(addresses.owner)
    name = restored()
    assert sum_up(cluster.dsn(name)) == before
    settings = make_settings(embedder="fake", **PATIENT)
    scope = {"agent": "ada", "user": "li"}
    async with (
        connected(settings, addresses_of(cluster, name), embedder) as copy,
        http_client(copy, secret) as http,
    ):
        found = (await http.post("/v1/recall", json=scope | {"text": "zebra"})).json()["hits"]
        assert "zebra" in [hit["memory"]["content"] for hit in found]
        for path, body in (
            ("/v1/memories", {"content": "after it"}),
            ("/v1/messages", {"conversation": "c", "question": "x", "answer": "y"}),
            ("/v1/facts", {"facts": [{"subject": "Ann", "predicate": "likes", "object": "tea"}]}),
        ):
            assert (await http.post(path, json=scope | body)).status_code == 201, path
    figure(f"{len(before) - 2} tables equal")
