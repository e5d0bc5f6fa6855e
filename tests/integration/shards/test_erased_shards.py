"""A user is erased from every shard of a tenant, whatever breaks meanwhile: one receipt says when all have reported."""

from __future__ import annotations

import psycopg
import pytest

from conftest import PATIENT, http_client, new_key
from recollect.core.service.numbers import bucket_of
from recollect.errors import ScopeMovedError, UnavailableError
from recollect.store.imports import erasures
from recollect.wiring import connected
from support.service.made_settings import make_settings

pytest_plugins = ("support.shards.two_shards",)

AGENTS = [f"agent-{number}" for number in range(8)]
USER = "li-who-leaves"


@pytest.fixture
async def many(layout, embedder, tmp_path, monkeypatch):
    monkeypatch.setattr(erasures, "LEFT_SECONDS", 0)
    settings = make_settings(embedder="fake", shards__map_file=tmp_path / "map.json", **PATIENT)
    async with connected(settings, layout.addresses, embedder) as running:
        yield running


@pytest.fixture
async def caller(many, layout):
    """Who may erase in a tenant on two shards, on both of which agents remember the user."""
    operator = await many.operator.act_for("one")
    layout.split(operator.tenant_id, "north", "south", 2048)
    await many.parts.servers.read_anew(operator.tenant_id)
    for agent in AGENTS:
        for user in (USER, "mo"):
            await (await many.mind(agent, user, tenant="one")).remember(f"{user} is known to {agent}.")
    high = sum(bucket_of(agent, USER) >= 2048 for agent in AGENTS)
    assert 0 < high < len(AGENTS)
    return operator


def rows(layout, query):
    found = []
    for _, owner in layout.shards.values():
        with psycopg.connect(owner) as connection:
            found += connection.execute(query).fetchall()
    return found


def known(layout):
    """Count the memories of each user by their words, and the rows of scopes that still have the name."""
    told = [content.partition(" ")[0] for (content,) in rows(layout, "select content from memories")]
    named = len(rows(layout, f"select id from scopes where \"user\" = '{USER}'"))
    return {"mo": told.count("mo"), USER: told.count(USER), "named": named}


GONE = {"mo": len(AGENTS), USER: 0, "named": 0}


async def receipts(many, caller):
    return await many.operator.erasures.receipts(caller, USER)


async def test_one_receipt_counts_what_every_shard_has_erased(many, layout, caller):
    erased = await many.operator.erasures.forget_user(caller, USER)
    assert (erased.scopes, erased.removed["memories"]) == (len(AGENTS), len(AGENTS))
    assert erased.finished_at is not None and await receipts(many, caller) == [erased]
    assert known(layout) == GONE
    assert rows(layout, "select id from procrastinate_jobs where task_name = 'erase'") == []


BROKEN = ["begin_part", "erase_scope", "finish"]


@pytest.mark.promise("A user is erased from every shard and counted once, whatever breaks off meanwhile")
@pytest.mark.parametrize("problem", [UnavailableError, ScopeMovedError])
@pytest.mark.parametrize("step", BROKEN)
async def test_a_job_goes_on_with_what_was_broken_off_anywhere(many, layout, caller, monkeypatch, step, problem):
    whole = {name: getattr(erasures, name) for name in BROKEN}
    away = await many.parts.servers.all()
    south = next(each.database for each in away if each.name == "south")

    def breaking(name):
        async def attempt(database, *given, **named):
            if name == step and database.is_same(south):
                raise problem("gone")
            return await whole[name](database, *given, **named)

        return attempt

    for name in BROKEN:
        monkeypatch.setattr(erasures, name, breaking(name))
    left = await many.operator.erasures.forget_user(caller, USER)
    assert left.erased_at is None and left.finished_at is None
    for name in BROKEN:
        monkeypatch.setattr(erasures, name, whole[name])
    await many.work(until_empty=True)
    [erased] = await receipts(many, caller)
    assert erased.id == left.id and erased.finished_at is not None
    assert (erased.scopes, erased.removed["memories"]) == (len(AGENTS), len(AGENTS)), "each is counted once"
    assert known(layout) == GONE


async def test_a_shard_that_is_down_at_the_beginning_is_erased_later(many, layout, caller, monkeypatch):
    """The call answers with a receipt that is not finished; nobody has to repeat it."""
    servers = many.parts.servers
    reach = servers._of

    async def half(shard_id):
        if shard_id == 2:
            raise UnavailableError("The shard south does not answer; try again.")
        return await reach(shard_id)

    monkeypatch.setattr(servers, "_of", half)
    _, secret = await new_key(many, "one")
    async with http_client(many, secret) as http:
        answer = await http.post("/v1/erasures", json={"user": USER})
        assert (answer.status_code, answer.json()["erased_at"]) == (200, None)
        monkeypatch.setattr(servers, "_of", reach)
        await many.work(until_empty=True)
        [receipt] = (await http.get("/v1/erasures", params={"user": USER})).json()["erasures"]
    assert receipt["id"] == answer.json()["id"] and receipt["finished_at"] is not None
    assert (receipt["scopes"], known(layout)) == (len(AGENTS), GONE)


async def test_the_receipt_waits_for_the_mirrors_of_every_shard(many, layout, caller):
    with psycopg.connect(layout.shards["south"][1], autocommit=True) as owner:
        owner.execute(
            "insert into mirrors (name, generation, state, incarnation) "
            "select 'opensearch', 1, 'ready', id from incarnations"
        )
    erased = await many.operator.erasures.forget_user(caller, USER)
    assert erased.erased_at is not None and erased.finished_at is None
    assert known(layout) == GONE
    await (await many.mind(AGENTS[0], USER, tenant="one")).remember("What comes later is new.")
    await many.operator.mirrors.drop("opensearch")
    with psycopg.connect(layout.shards["north"][1], autocommit=True) as owner:
        owner.execute("update procrastinate_jobs set scheduled_at = now() where task_name = 'erase'")
    await many.work(until_empty=True)
    [finished] = await receipts(many, caller)
    assert finished.finished_at is not None and finished.scopes == erased.scopes
    assert "dropped" in finished.mirrors["opensearch"]
    assert known(layout) == GONE | {"named": 1}, "what was remembered after the erasure stays"


async def test_rows_that_a_shard_no_longer_serves_are_erased_too(many, layout, caller, monkeypatch):
    with psycopg.connect(layout.shards["south"][1], autocommit=True) as owner:
        owner.execute("update placements set state = 'closed'")
    with psycopg.connect(layout.shards["north"][1], autocommit=True) as owner:
        owner.execute("update placements set last_bucket = 4095")
    with psycopg.connect(layout.owner, autocommit=True) as owner:
        owner.execute("delete from placements where first_bucket > 0; update placements set last_bucket = 4095")
    await many.parts.servers.read_anew(caller.tenant_id)
    counted = await many.operator.erasures.forget_user(caller, USER, dry_run=True)
    reach = many.parts.servers._of

    async def half(shard_id):
        if shard_id == 2:
            raise UnavailableError("The shard south does not answer; try again.")
        return await reach(shard_id)

    monkeypatch.setattr(many.parts.servers, "_of", half)
    left = await many.operator.erasures.forget_user(caller, USER)
    assert left.erased_at is None and known(layout)[USER] > 0, "the receipt stays open while a server is down"
    monkeypatch.setattr(many.parts.servers, "_of", reach)
    await many.work(until_empty=True)
    [erased] = await receipts(many, caller)
    assert erased.finished_at is not None and known(layout) == GONE
    assert (erased.scopes, erased.removed) == (counted.scopes, counted.removed)
