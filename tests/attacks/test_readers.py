"""What a role that reads by SQL can do and learn: what PostgreSQL can refuse is refused, the rest is on the page."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import psycopg
import pytest
from procrastinate.manager import get_channel_for_queues
from psycopg import errors

from conftest import http_client, new_key
from recollect.llm.fake import FakeEmbedder
from recollect.models.memories import Kind, NewMemory, Triple
from recollect.wiring import connected
from support.programs.waiting import WAIT_SECONDS, until
from support.service.made_settings import make_settings
from support.service.reader_roles import connect

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "isolation.md"
WRITING = "set default_transaction_read_only = off"
WORDS = {
    name: f"zebra{name}"
    for name in ("tenant", "agent", "user", "content", "keyword", "speaker", "conversation", "subject", "topic")
}
READABLE = """select c.oid::regclass::text as name from pg_class c
    where relnamespace in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
    and relkind in ('r', 'v', 'm', 'p') and has_table_privilege(c.oid, 'select') order by 1"""
PARAMETERS = [
    *("statement_timeout", "transaction_timeout", "idle_in_transaction_session_timeout", "lock_timeout"),
    *("work_mem", "hash_mem_multiplier", "temp_buffers", "temp_file_limit", "max_parallel_workers_per_gather"),
    *("default_transaction_read_only", "session_replication_role", "log_statement", "row_security"),
]
REFUSED = [
    "alter role current_user connection limit 100",
    "alter role current_user createdb",
    "alter role current_user set temp_file_limit = -1",
    "alter role recollect_readers set statement_timeout = 0",
    "alter system set work_mem = '1GB'",
    "copy (select 1) to program 'true'",
    "create function public.mine() returns integer language sql return 1",
    "create role another",
    "create schema mine",
    "create temporary table mine (id integer)",
    "grant recollect_readers to recollect_service",
    "select lo_create(0)",
    "select lo_from_bytea(0, 'x')",
    "select nextval('procrastinate_jobs_id_seq')",
    "select pg_advisory_lock(1)",
    "select pg_advisory_lock_shared(1, 1)",
    "select pg_advisory_xact_lock(1)",
    "select pg_cancel_backend(pid) from pg_stat_activity where usename = 'recollect_service'",
    "select pg_logical_emit_message(false, 'x', 'y')",
    "select pg_read_file('/etc/hostname')",
    "select pg_stat_reset()",
    "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'recollect_service'",
    "select pg_try_advisory_lock(1)",
    "select rolpassword from pg_authid",
    "set role recollect_service",
]
THEIRS_AND_NOBODYS = {
    "memory_nodes": {
        "created_at": ("2019-07-01", "1990-01-01"),
        "depth": ("1", "7"),
        "description": (WORDS["content"], "nothing of the kind"),
        "object": (WORDS["subject"], "nothing"),
        "persona_name": (WORDS["agent"], "nobody"),
        "poignancy": ("9", "2"),
        "predicate": (WORDS["subject"], "nothing"),
        "subject": (WORDS["subject"], "nothing"),
        "type": ("chat", "summary"),
        "user_name": (WORDS["user"], "nobody"),
    },
    "kw_strength": {
        "keyword": (WORDS["keyword"], "nothing"),
        "memory_type": ("thought", "summary"),
        "persona_name": (WORDS["agent"], "nobody"),
        "strength": ("50", "7"),
    },
}
"""Of each column a value that only others have, and one that nobody has."""


def listed(first: str) -> set[str]:
    """Return the names in the row of the page's table that begins so."""
    [row] = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(f"| {first} |")]
    return set(re.findall(r"`([^`]+)`", row.split("|")[2]))


@pytest.fixture
async def theirs(recollect):
    """What another tenant has: the same memory often, so that statistics know it."""
    mind = await recollect.mind(WORDS["agent"], WORDS["user"], tenant=WORDS["tenant"])
    triple = Triple(*[WORDS["subject"]] * 3)
    told = {"keywords": (WORDS["keyword"],), "speaker": WORDS["speaker"], "topic": WORDS["topic"], "triple": triple}
    for kind, importance in ((Kind.EVENT, 9), (Kind.CHAT, 9), (Kind.THOUGHT, 9)):
        memory = NewMemory(WORDS["content"], kind, importance=importance, **told)
        await mind.remember([memory] * 50)
    await mind.conversation(WORDS["conversation"]).append(WORDS["content"])
    return mind


@pytest.fixture
async def reader(recollect, theirs, readers, owner):
    """A reader of a tenant of its own, while a reader of the others is logged in and reads."""
    await (await recollect.mind("ada", tenant="mine")).remember([NewMemory(f"mine {place}") for place in range(50)])
    with psycopg.connect((await readers(WORDS["tenant"])).dsn) as other:
        other.execute(f"select '{WORDS['content']}' from memory_nodes")
        owner.execute("analyze")
        with connect(await readers("mine")) as connection:
            connection.execute(WRITING)
            yield connection


# Limits.


def can_set(connection, parameter):
    """Tell whether a session may change a parameter, to whatever it is."""
    try:
        connection.execute("select set_config(%s, current_setting(%s), false)", [parameter, parameter])
    except errors.InsufficientPrivilege:
        return False
    return True


@pytest.mark.promise("A reader can raise no limit that PostgreSQL can hold; what it can is on the page", part="readers")
async def test_a_reader_raises_only_the_limits_that_the_page_lists(reader, figure):
    free = {each for each in PARAMETERS if can_set(reader, each)}
    assert free == listed("limits that a session may raise")
    assert "temp_file_limit" not in free
    figure(f"{len(PARAMETERS) - len(free)} of {len(PARAMETERS)} parameters are held")


async def test_the_files_of_a_reader_stay_bounded_whatever_it_resets(mind, readers, owner):
    new = await readers()
    with connect(new) as connection:
        connection.execute(WRITING)
        connection.execute("alter role current_user reset all")
    with connect(new) as connection:
        assert connection.execute("show temp_file_limit").fetchone() == {"temp_file_limit": "1GB"}
        # What a role may set itself it can set for its next sessions, too: this is on the page.
        assert connection.execute("show statement_timeout").fetchone() == {"statement_timeout": "0"}
    owner.execute(f"alter role {new.reader.name} set temp_file_limit = '1MB'")
    with connect(new) as connection, pytest.raises(errors.ConfigurationLimitExceeded):
        connection.execute("select n from generate_series(1, 999999) n order by md5(n::text) offset 999998")


@pytest.mark.promise("A reader is refused all that could harm others and that PostgreSQL can refuse", part="readers")
async def test_what_could_harm_others_is_refused(reader, figure):
    for statement in REFUSED:
        with pytest.raises(errors.InsufficientPrivilege):
            reader.execute(statement)
    figure(f"{len(REFUSED)} statements refused")


async def test_a_reader_locks_no_table(reader):
    with reader.transaction(), pytest.raises(errors.InsufficientPrivilege):
        reader.execute("lock table memory_nodes in share mode")


async def test_a_reader_keeps_nobody_from_forgetting(recollect, theirs, reader, owner):
    """Once it could hold the lock that every forgetting in a scope waits for: the number is no secret."""
    _, secret = await new_key(recollect, WORDS["tenant"])
    [scope_id] = owner.execute("select id from scopes where agent = %s", [WORDS["agent"]]).fetchone()
    [memory] = (await theirs.list(limit=1)).memories
    with pytest.raises(errors.InsufficientPrivilege):
        reader.execute(f"select pg_advisory_lock(hashint8extended({scope_id}, 21))")
    async with http_client(recollect, secret) as http:
        asked = {"agent": WORDS["agent"], "user": WORDS["user"], "ids": [str(memory.id)]}
        assert (await http.post("/v1/forget", json=asked)).status_code == 200


class HeldEmbedder(FakeEmbedder):
    """An embedder that answers a worker when it is let go; a writer does not wait for it."""

    def __init__(self):
        super().__init__()
        self.asked, self.let_go = asyncio.Event(), asyncio.Event()

    async def embed(self, texts):
        self.asked.set()
        await self.let_go.wait()
        return await super().embed(texts)


@pytest.mark.promise("No notification of a reader ends or stops a job", part="readers")
async def test_no_notification_ends_a_job(addresses, owner):
    """Whoever is logged in can notify: the job engine ended jobs by it, and stopped listening at what is no JSON."""
    embedder = HeldEmbedder()
    settings = make_settings(embedder="fake", embedding__wait_timeout_seconds=0.01)
    async with connected(settings, addresses, embedder) as recollect:
        mind = await recollect.mind("ada")
        await mind.remember("a memory without a vector")
        embedder.asked.clear()
        worker = asyncio.create_task(recollect.work())
        await asyncio.wait_for(embedder.asked.wait(), WAIT_SECONDS)
        new = await recollect.operator.readers.create("reader_who_notifies", "default")
        with connect(new) as connection:
            for payload in (*(f'{{"type": "abort_job_requested", "job_id": {n}}}' for n in range(9)), "{}", "no JSON"):
                connection.execute("select pg_notify(%s, %s)", [*get_channel_for_queues(), payload])
        await recollect.operator.readers.drop(new.reader.name)
        # Time for the worker to hear them; one that is slower than this would only miss an attack.
        await asyncio.sleep(0.5)
        state = "select status from procrastinate_jobs where task_name = 'embed'"
        # A sweep may have asked for a second one meanwhile.
        assert [status for (status,) in owner.execute(state) if status != "todo"] == ["doing"]
        embedder.let_go.set()
        await until(lambda: owner.execute("select from pending_embeddings").rowcount == 0)
        await mind.remember("a memory after it")
        await until(lambda: owner.execute(state).rowcount == 0)
        worker.cancel()
        await asyncio.wait([worker])


# What others do and have.


def read_catalogs(connection) -> dict[str, list[str]]:
    """Read all that a reader may of the catalogs."""
    rows = {}
    for each in connection.execute(READABLE).fetchall():
        try:
            found = connection.execute(f"select catalog::text as row from {each['name']} catalog").fetchall()
        except errors.InsufficientPrivilege:
            continue
        rows[each["name"]] = sorted(row["row"] or "" for row in found)
    return rows


@pytest.mark.promise("No catalog tells a reader a word, name or id of others, but for names of roles", part="readers")
async def test_the_catalogs_name_others_only_where_the_page_says_so(reader, theirs, owner, figure):
    ids = [str(row[0]) for row in owner.execute("select id from memories where content = %s", [WORDS["content"]])]
    [other] = owner.execute("select name from readers where name <> %s", [reader.info.user]).fetchone()
    catalogs = read_catalogs(reader)
    assert len(catalogs) > 150
    for name, rows in catalogs.items():
        text = "\n".join(rows).lower()
        assert [word for word in [*WORDS.values(), *ids] if word in text] == [], name
    naming = {name for name, rows in catalogs.items() if other in "\n".join(rows)}
    assert naming == listed("names of roles")
    figure(f"{len(catalogs)} catalogs read, {len(naming)} name other roles")


@pytest.mark.promise("What others write changes only the catalogs that the page lists", part="readers")
async def test_the_catalogs_that_count_what_others_do_are_on_the_page(reader, theirs, owner):
    before = read_catalogs(reader)
    await theirs.remember([NewMemory(f"{WORDS['content']} {place}") for place in range(50)])
    owner.execute("select pg_stat_force_next_flush()")
    owner.execute("analyze memories")
    after = read_catalogs(reader)
    changed = {name for name, rows in after.items() if before.get(name) != rows}
    assert "pg_stat_user_tables" in changed
    assert changed <= listed("how much all tenants store and do")
    sizes = {name for name in listed("sizes and positions") if reader.execute(f"select {name}").fetchone()}
    assert sizes


async def test_no_sequence_tells_how_many_others_are(reader):
    rows = reader.execute("select last_value from pg_sequences where schemaname = 'public'").fetchall()
    assert {row["last_value"] for row in rows} == {None}
    assert reader.execute("select count(*) as rows from pg_stats where schemaname = 'public'").fetchone() == {"rows": 0}


def estimate(connection, view: str, condition: str) -> list[object]:
    """Read what a plan expects: rows and costs of every step, and nothing of the words of the condition."""
    explained = connection.execute(f"explain (format json) select * from {view} where {condition}").fetchone()
    return list(walk(explained["QUERY PLAN"][0]["Plan"]))


def walk(plan):
    yield plan["Node Type"], plan["Plan Rows"], plan["Startup Cost"], plan["Total Cost"]
    for below in plan.get("Plans", []):
        yield from walk(below)


@pytest.mark.promise("No estimate tells a reader what others have, but for the columns on the page", part="readers")
async def test_estimates_tell_of_others_only_what_the_page_says(reader, figure):
    tried = [
        (view, column, operator, values)
        for view, columns in THEIRS_AND_NOBODYS.items()
        for column, values in columns.items()
        for operator in ("=", "<", ">")
    ]
    told = set()
    for view, column, operator, values in tried:
        theirs, nobodys = (estimate(reader, view, f"{column} {operator} '{value}'") for value in values)
        if theirs != nobodys:
            told.add(f"{view}.{column}")
    assert told == listed("shares, by estimates")
    figure(f"{len(tried)} conditions, {len(told)} columns told")


async def test_no_condition_fails_on_what_others_have(reader):
    """A division by zero, a cast: whatever fails on a row tells that there is one."""
    for condition in (
        f"1 / (length(description) - {len(WORDS['content'])}) is not null",
        "case when description like 'zebra%' then description::integer else 1 end = 1",
        f"1 / (persona_name <> '{WORDS['agent']}')::integer = 1",
    ):
        assert reader.execute(f"select count(*) as rows from memory_nodes where {condition}").fetchone() == {"rows": 50}


async def test_no_function_of_ours_is_said_to_be_leakproof(owner):
    """Before a policy only functions are called of which PostgreSQL was told so."""
    ask = "select from pg_proc where pronamespace = 'public'::regnamespace and proleakproof"
    assert owner.execute(ask).rowcount == 0


async def test_an_error_names_nothing_of_others(reader):
    for statement in (
        "select * from memories",
        "insert into memory_nodes (id) select gen_random_uuid()",
        "select * from readers",
        f"select '{WORDS['agent']}'::regrole",
        "select zebra from memory_nodes",
        f"set recollect.tenant = 'x'; select * from scopes where agent = '{WORDS['agent']}'",
    ):
        with pytest.raises(errors.Error) as caught:
            reader.execute(statement)
        shown = str(caught.value).replace(f'"{WORDS["agent"]}"', "").replace("zebra from", "").partition("LINE")[0]
        assert "zebra" not in shown.replace('column "zebra"', ""), statement
