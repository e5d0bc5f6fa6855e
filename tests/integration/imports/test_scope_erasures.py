"""Everything in one scope is erased in one call: counted before, with a receipt, and without touching other scopes."""

from __future__ import annotations

import pytest

from conftest import http_client
from integration.imports.test_erasures import STAYS, export, held, live
from recollect.client import Client
from recollect.doors.http.app import create_app
from recollect.errors import ForbiddenError, UnavailableError
from recollect.models.conversations import NewMessage
from recollect.models.memories import Role
from recollect.models.service import KeyBinding, Right
from recollect.store.imports import erasures
from recollect.wiring import connected
from support.imports.whole_scopes import EVERYTHING
from support.models.fake_chat import FakeChatModel
from support.models.scripted_extractions import Script
from support.programs import command_line
from support.service.made_settings import PATIENT, make_settings
from support.service.serving import serving

OTHERS = (("ada", "mo"), ("ada", ""), ("bea", "li"))


@pytest.fixture
async def recollect(addresses, embedder):
    chat = FakeChatModel(Script())
    async with connected(make_settings(embedder="fake", **PATIENT), addresses, embedder, chat) as running:
        yield running


def scope_of(owner, agent="ada", user="li"):
    query = 'select id from scopes where agent = %s and "user" = %s'
    return [number for (number,) in owner.execute(query, [agent, user]).fetchall()]


async def test_a_scope_goes_and_all_others_stay(recollect, owner):
    mind = await live(recollect, "ada", "li")
    for agent, user in OTHERS:
        await live(recollect, agent, user, steps=EVERYTHING[:30])
    others = [await export(recollect, agent=agent, user=user, vectors=("all",)) for agent, user in OTHERS]
    [number] = scope_of(owner)
    before = {name: rows for name, rows in held(owner, [number]).items() if name not in STAYS}
    wanted = {"context_vectors", "entities", "items", "messages", "recalls", "topics", "vectors"}
    assert wanted <= before.keys(), "what is not there cannot be seen to go"
    foreseen = await mind.forget_everything(dry_run=True)
    assert (foreseen.id, foreseen.agent, foreseen.user, foreseen.scopes) == (None, "ada", "li", 1)
    assert foreseen.removed == before == {k: v for k, v in held(owner, [number]).items() if k not in STAYS}
    erased = await mind.forget_everything()
    assert (erased.agent, erased.user, erased.scopes, erased.removed) == ("ada", "li", 1, before)
    assert erased.finished_at is not None
    assert held(owner, [number]).keys() <= STAYS
    assert [await export(recollect, agent=agent, user=user, vectors=("all",)) for agent, user in OTHERS] == others
    caller = await recollect.operator.act_for("default")
    assert await recollect.operator.erasures.receipts(caller) == [erased]
    again = await mind.forget_everything()
    assert (again.id, again.scopes, again.removed) == (None, 0, {})


async def test_what_is_written_next_begins_anew(recollect):
    mind = await live(recollect, "ada", "", steps=EVERYTHING[:20])
    said = [NewMessage(Role.USER, "hello", external_id="e1")]
    [first] = await mind.conversation("again").append(said)
    await mind.forget([first.id])
    assert (await mind.forget_everything()).scopes == 1
    [again] = await mind.conversation("again").append(said)
    assert (again.known, again.forgotten, again.number) == (False, False, 1)
    assert [hit.memory.content for hit in (await mind.recall("hello")).hits] == ["hello"]


@pytest.mark.parametrize("by", ["call", "job"])
async def test_an_erasure_that_was_broken_off_is_finished(recollect, owner, monkeypatch, by):
    mind = await live(recollect, "ada", "li", steps=EVERYTHING[:20])
    await live(recollect, "bea", "li", steps=EVERYTHING[:20])
    [number], [other] = scope_of(owner), scope_of(owner, "bea")
    before = held(owner, [number])

    async def fail(*_):
        raise UnavailableError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(erasures, "erase_scope", fail)
        begun = await mind.forget_everything()
    assert begun.erased_at is None
    assert held(owner, [number]) == before, "either nothing is erased, or all"
    if by == "call":
        erased = await mind.forget_everything()
        assert (erased.id, erased.scopes) == (begun.id, 1)
    else:
        owner.execute("update procrastinate_jobs set scheduled_at = null where task_name = 'erase'")
        await recollect.work(until_empty=True)
    assert held(owner, [number]).keys() <= STAYS
    assert not held(owner, [other]).keys() <= STAYS


@pytest.mark.parametrize("whole_user", [False, True])
async def test_what_is_written_before_an_erasure_is_continued_is_erased_as_well(
    recollect, owner, monkeypatch, whole_user
):
    mind = await live(recollect, "ada", "li", steps=EVERYTHING[:10])
    caller = await recollect.operator.act_for("default")

    async def erase():
        return await (recollect.operator.erasures.forget_user(caller, "li") if whole_user else mind.forget_everything())

    async def fail(*_):
        raise UnavailableError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(erasures, "finish", fail)
        begun = await erase()
    assert (begun.scopes, begun.erased_at) == (1, None)
    for _ in range(2):
        await mind.remember("tea")
        again = await erase()
        assert again.finished_at is not None
        assert scope_of(owner) == []


async def test_a_bound_key_erases_its_own_scope_alone(recollect, owner):
    for agent, user in (("ada", "li"), *OTHERS):
        await live(recollect, agent, user, steps=EVERYTHING[:10])
    caller = await recollect.operator.act_for("default")
    _, secret = await recollect.create_key(caller, "own", [Right.READ, Right.WRITE], 50, bounds=KeyBinding("ada", "li"))
    _, reading = await recollect.create_key(caller, "reading", [Right.READ], 50)
    async with serving(create_app(recollect=recollect)) as url:
        async with Client(url, secret) as client:
            for agent, user in (("ada", "mo"), ("bea", "li")):
                with pytest.raises(ForbiddenError):
                    await (await client.mind(agent, user)).forget_everything(dry_run=True)
            assert (await (await client.mind("ada", "li")).forget_everything()).scopes == 1
        async with Client(url, reading) as client:
            with pytest.raises(ForbiddenError):
                await (await client.mind("ada", "mo")).forget_everything(dry_run=True)
    assert scope_of(owner) == []
    assert all(scope_of(owner, *names) for names in OTHERS)


async def test_over_http_a_field_that_is_mistyped_erases_nothing(recollect, owner):
    await live(recollect, "ada", "li", steps=EVERYTHING[:10])
    caller = await recollect.operator.act_for("default")
    _, secret = await recollect.create_key(caller, "all", [*Right], 50)
    async with http_client(recollect, secret) as http:
        for wrong in ({"usr": "li"}, {"dry-run": True}, {"dry_run": "yes"}, {"ids": []}):
            body = {"agent": "ada", "user": "li"} | wrong
            assert (await http.post("/v1/forget/everything", json=body)).status_code == 422
        assert scope_of(owner)
        tools = (await http.get("/openapi-dify.json")).json()["paths"]
        assert "/dify/v1/forget" in tools
        assert not [path for path in tools if "everything" in path]
        answer = (await http.post("/v1/forget/everything", json={"agent": "ada", "user": "li"})).json()
    assert (answer["agent"], answer["user"], answer["scopes"]) == ("ada", "li", 1)
    assert not scope_of(owner)


async def test_the_command_asks_first_and_shows_a_receipt(recollect, addresses, owner):
    settings = command_line.settings_of(addresses)
    for user in ("li", "mo"):
        await (await recollect.mind("ada", user)).remember("tea")
    erase = ("forget", "--everything", "--agent", "ada", "--user", "li")
    for name in ("--everything", "--all"):
        foreseen = command_line.run("forget", name, *erase[2:], "--dry-run", settings=settings)
        assert "ada, li would be erased from 1 scope." in foreseen
    asked = command_line.run(*erase, settings=settings, typed="n\n", fails=True)
    assert "Erase everything that ada has of li, for good?" in asked
    for more in (("--kinds", "event"), ("m4b75",)):
        command_line.run(*erase, *more, "--yes", settings=settings, fails=True)
    assert len(scope_of(owner)) == 1
    assert "ada, li is erased from 1 scope; receipt" in command_line.run(*erase, settings=settings, typed="y\n")
    assert scope_of(owner) == []
    assert len(scope_of(owner, "ada", "mo")) == 1
    assert "ada, li has nothing to erase." in command_line.run(*erase, "--yes", settings=settings)
