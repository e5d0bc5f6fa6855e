"""A user is erased over all agents in one call: counted before, told by one receipt, gone to the last byte."""

from __future__ import annotations

import io
import json
import zipfile

import psycopg
import pytest

from conftest import addresses_of, execute
from integration.conversations.test_purge import Haystack, secret
from recollect.core.imports.sections import ERASED_FIRST, LEFT_OUT
from recollect.errors import ForbiddenError, InvalidInputError, NotFoundError, UnavailableError
from recollect.llm.fake import FakeEmbedder
from recollect.models.imports import ExportRequest
from recollect.models.recall import Cue
from recollect.models.service import KeyBinding, Right, ScopeOrder, ScopeQuery
from recollect.settings import Settings
from recollect.store.embedded.cluster import Cluster
from recollect.store.imports import erasures
from recollect.wiring import connected, prepare
from support.imports.whole_scopes import EVERYTHING, Life
from support.models.fake_chat import FakeChatModel
from support.models.scripted_extractions import Script
from support.programs import command_line
from support.programs.folders import open_folder
from support.service.made_settings import PATIENT, make_settings

SCOPED = (
    "select relname from pg_class join pg_attribute on attrelid = pg_class.oid and attname = 'scope_id' "
    "where relkind = 'r' and relnamespace = 'public'::regnamespace"
)
STAYS = {*LEFT_OUT} - {*ERASED_FIRST}
"""Logs of numbers and ids."""


@pytest.fixture
async def recollect(addresses, embedder):
    chat = FakeChatModel(Script())
    async with connected(make_settings(embedder="fake", **PATIENT), addresses, embedder, chat) as running:
        yield running


async def live(recollect, agent, user, mark="", steps=EVERYTHING):
    script = recollect.parts.chat.script
    script.extractions = []
    mind = await recollect.mind(agent, user)
    await Life(mind, script).live([(name, number, f"{mark}{text}") for name, number, text in steps])
    await recollect.operator.embed_waiting(mind, lambda _: None)
    return mind


async def forget(recollect, user="li", **more):
    return await recollect.operator.erasures.forget_user(await recollect.operator.act_for("default"), user, **more)


async def export(recollect, **order):
    file = io.BytesIO()
    caller = await recollect.operator.act_for("default")
    await recollect.operator.exports.write_export_file(caller, ExportRequest(**order), file)
    return file.getvalue()


def scopes_of(owner, user):
    """List the numbers of a user's scopes, which outlive the name."""
    return [number for (number,) in owner.execute('select id from scopes where "user" = %s', [user]).fetchall()]


def held(owner, scopes):
    """Count what scopes hold, by table."""
    counted = {}
    for (table,) in owner.execute(SCOPED).fetchall():
        query = f"select count(*) from {table} where scope_id = any (%s)"
        name = "vectors" if table.startswith("vectors_") else table
        counted[name] = counted.get(name, 0) + owner.execute(query, [scopes]).fetchone()[0]
    return {name: rows for name, rows in counted.items() if rows}


async def test_a_user_goes_from_all_agents_and_nobody_else(recollect, owner):
    for agent in ("ada", "bea"):
        await live(recollect, agent, "li")
    await live(recollect, "ada", "mo", steps=EVERYTHING[:40])
    await live(recollect, "ada", "", steps=EVERYTHING[:40])
    others = [await export(recollect, agent="ada", user=user, vectors=("all",)) for user in ("mo", "")]
    scopes = scopes_of(owner, "li")
    before = {name: rows for name, rows in held(owner, scopes).items() if name not in STAYS}
    wanted = {"context_vectors", "extractions", "items", "messages", "purge_receipts", "recalls", "vectors"}
    assert wanted <= before.keys(), "what is not there cannot be seen to go"
    foreseen = await forget(recollect, dry_run=True)
    assert (foreseen.id, foreseen.scopes, foreseen.finished_at) == (None, 2, None)
    assert foreseen.removed == before == {k: v for k, v in held(owner, scopes).items() if k not in STAYS}
    erased = await forget(recollect)
    assert erased.scopes == 2 and erased.finished_at is not None and erased.asked_by == "operator"
    assert erased.removed == before
    assert held(owner, scopes).keys() <= STAYS
    assert [await export(recollect, agent="ada", user=user, vectors=("all",)) for user in ("mo", "")] == others
    caller = await recollect.operator.act_for("default")
    assert await recollect.operator.erasures.receipts(caller, "li") == [erased]
    assert owner.execute("select count(*) from procrastinate_jobs where task_name = 'erase'").fetchone() == (0,)
    await recollect.work(until_empty=True)
    assert held(owner, scopes).keys() <= STAYS
    counters = "select memory_count, event_count, term_count, has_topics from scopes where id = any (%s)"
    assert set(owner.execute(counters, [scopes]).fetchall()) == {(0, 0, 0, False)}


async def test_the_name_of_an_erased_user_is_in_the_receipt_alone(recollect, owner, addresses):
    name = f"name-{secret()}"
    for agent in ("ada", "bea"):
        await live(recollect, agent, name, steps=EVERYTHING[:30])
    other = await live(recollect, "ada", "mo", steps=EVERYTHING[:10])
    kept = await other.recall(Cue("tea", also=(f"ada/{name}", f"bea/{name}"), keep=True))
    assert (await other.recalls.explain(kept.recall_id)).cue["text"] == "tea"
    caller = await recollect.operator.act_for("default")
    assert {each.user for each in (await recollect.tenant.scopes(caller, ScopeQuery())).scopes} == {name, "mo"}
    assert find_rows(addresses.owner, name) == {"scopes"}, "what is not there cannot be seen to go"
    await forget(recollect, name)
    for order in ScopeOrder:
        listed = await recollect.tenant.scopes(caller, ScopeQuery(order=order))
        assert [each.user for each in listed.scopes] == ["mo"]
    with zipfile.ZipFile(io.BytesIO(await export(recollect))) as file:
        assert len(json.loads(file.read("manifest.json"))["scopes"]) == 1
    assert find_rows(addresses.owner, name) == {"erasure_receipts"}
    with pytest.raises(NotFoundError):
        await forget(recollect, name)
    with pytest.raises(InvalidInputError):
        await recollect.mind("ada", erasures.name_erased((await receipts(recollect))[0].id))


async def receipts(recollect):
    return await recollect.operator.erasures.receipts(await recollect.operator.act_for("default"))


async def test_who_comes_back_begins_anew(recollect):
    mind = await live(recollect, "ada", "li")
    await forget(recollect)
    assert (await mind.overview()).memories == 0
    await mind.remember("Li is back")
    assert [hit.memory.content for hit in (await mind.recall("back")).hits] == ["Li is back"]


@pytest.mark.parametrize("by", ["call", "job"])
async def test_an_erasure_that_was_broken_off_goes_on_with_its_receipt(recollect, owner, monkeypatch, by):
    for agent in ("ada", "bea"):
        await (await recollect.mind(agent, "li")).remember("tea")
    whole = erasures.erase_scope

    async def fail_at_the_second(database, tenant_id, scope_id, receipt):
        if owner.execute("select scopes from erasure_receipts").fetchone() == (1,):
            raise UnavailableError("gone")
        await whole(database, tenant_id, scope_id, receipt)

    monkeypatch.setattr(erasures, "erase_scope", fail_at_the_second)
    monkeypatch.setattr(erasures, "LEFT_SECONDS", 0)
    left = await forget(recollect)
    assert (left.erased_at, left.finished_at, left.scopes, left.removed["memories"]) == (None, None, 1, 1)
    monkeypatch.setattr(erasures, "erase_scope", whole)
    if by == "call":
        await forget(recollect)
    await recollect.work(until_empty=True)
    [erased] = await receipts(recollect)
    assert erased.finished_at is not None and (erased.scopes, erased.removed["memories"]) == (2, 2)
    assert owner.execute("select count(*) from procrastinate_jobs where task_name = 'erase'").fetchone() == (0,)


async def test_who_may_erase_whom(recollect):
    await (await recollect.mind("ada", "li")).remember("tea")
    operator = await recollect.operator.act_for("default")
    for rights, bounds in (([Right.READ, Right.WRITE], KeyBinding()), ([*Right], KeyBinding("ada", "li"))):
        _, shown = await recollect.create_key(operator, "k", rights, 50, bounds)
        caller = await recollect.authenticate(shown, "http", bound=True)
        for dry_run in (True, False):
            with pytest.raises(ForbiddenError):
                await recollect.operator.erasures.forget_user(caller, "li", dry_run=dry_run)
    with pytest.raises(InvalidInputError, match="user is required"):
        await forget(recollect, "")
    with pytest.raises(NotFoundError):
        await forget(recollect, "nobody")
    other = await recollect.operator.act_for("other")
    with pytest.raises(NotFoundError):
        await recollect.operator.erasures.forget_user(other, "li")


async def test_the_command(addresses, recollect, owner):
    settings = command_line.settings_of(addresses)
    for agent in ("ada", "bea"):
        await (await recollect.mind(agent, "li")).remember("tea")
    words = ("forget", "--user", "li", "--all-agents")
    assert "li would be erased from 2 scopes." in command_line.run(*words, "--dry-run", settings=settings)
    scopes = scopes_of(owner, "li")
    assert "memories" in held(owner, scopes)
    command_line.run(*words, settings=settings, typed="n\n", fails=True)
    assert "li is erased from 2 scopes; receipt" in command_line.run(*words, settings=settings, typed="y\n")
    assert held(owner, scopes).keys() <= STAYS
    for more in (("--agent", "ada"), ("--kinds", "event")):
        command_line.run(*words, *more, "--yes", settings=settings, fails=True)
    assert "use --agent" in command_line.run("forget", "--user", "li", "--yes", settings=settings, fails=True)


def execute_in(dsn, statement):
    with psycopg.connect(dsn, autocommit=True) as connection:
        return connection.execute(statement)


def find_rows(dsn, needle):
    """Name the tables, of any schema but the planner's, with a row that holds a text anywhere, bytes included."""
    tables = "select oid::regclass::text from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
    patterns = [f"%{needle}%", f"%{needle.encode().hex()}%"]
    with psycopg.connect(dsn, autocommit=True) as connection:
        return {
            name
            for (name,) in connection.execute(tables).fetchall()
            if connection.execute(f"select count(*) from {name} t where t::text like any (%s)", [patterns]).fetchone()[
                0
            ]
        }


@pytest.mark.promise(
    "After the erasure of a user no byte of theirs is left in a row, nor after a rewrite in dump or files"
)
async def test_no_byte_of_an_erased_user_is_left_in_a_dump():
    mark, embedder, script = secret(), FakeEmbedder(), Script()
    with open_folder("erased") as folder, Cluster(folder / "postgres") as cluster:
        execute(cluster, "create database erased")
        addresses, haystack = addresses_of(cluster, "erased"), Haystack(cluster, "erased")
        await prepare(addresses, embedder)
        async with connected(Settings(embedder="fake"), addresses, embedder, FakeChatModel(script)) as running:
            await live(running, "ada", "mo", steps=EVERYTHING[:30])
            for agent in ("ada", "bea"):
                mind = await live(running, agent, "li", mark)
                await mind.conversation("chat-0").update(name=mark, metadata={mark: mark})
                await mind.remember(f"{mark} again", idempotency_key=mark)
            execute_in(haystack.dsn, "analyze")
            needles = {"mark": mark.encode()}
            assert haystack.dump(needles) and find_rows(haystack.dsn, mark)
            await running.operator.erasures.forget_user(await running.operator.act_for("default"), "li")
            await running.work(until_empty=True)
            assert find_rows(haystack.dsn, mark) == set(), "no row holds it"
            await running.operator.rewrite_tables(lambda _: None)
            assert haystack.dump(needles) == set()
            assert haystack.files(needles) == {}
