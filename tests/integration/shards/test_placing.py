"""Tenants are suspended, placed and resumed: no write passes a suspension, and no broken step loses a row."""

from __future__ import annotations

import psycopg
import pytest

from conftest import http_client, new_key
from recollect.core.service.numbers import bucket_of
from recollect.errors import ConflictError, InvalidInputError, NotFoundError, UnavailableError
from recollect.mind.operators.shards import Shards
from recollect.models.imports import ExportRequest, ImportOptions
from recollect.models.recall import Cue
from recollect.store.shards import placing

pytest_plugins = ("support.shards.two_shards",)

WRITES = {
    "/v1/memories": {"agent": "ada", "content": "It is too late."},
    "/v1/facts": {"agent": "ada", "facts": [{"subject": "Li", "predicate": "is", "object": "late"}]},
    "/v1/keys": {"name": "late", "rights": ["read"]},
}


def held(layout, shard, table="memories"):
    with psycopg.connect(layout.shards[shard][1]) as connection:
        return connection.execute(f"select count(*) from {table}").fetchone()[0]


async def test_a_suspended_tenant_of_one_server_is_read_and_not_written(recollect, embedder, owner):
    waiting = "select count(*) as waiting from pending_embeddings"

    mind, other = await recollect.mind("ada", tenant="one"), await recollect.mind("ada", tenant="two")
    _, secret = await new_key(recollect, "one")
    embedder.fail()
    await mind.remember("It waits for a vector.")
    embedder.recover()
    await recollect.operator.placements.suspend("one")
    async with http_client(recollect, secret) as http:
        for path, body in WRITES.items():
            answer = await http.post(path, json=body)
            assert (answer.status_code, "suspended" in answer.text) == (503, True), (path, answer.text)
        assert (await http.post("/v1/recall", json={"agent": "ada", "text": "vector"})).json()["hits"]
    await other.remember("Another tenant is written.")
    await recollect.work(until_empty=True)
    assert owner.execute(waiting).fetchone()[0] == 1
    await recollect.operator.placements.resume("one")
    await mind.remember("It is written again.")
    await recollect.work(until_empty=True)
    assert owner.execute(waiting).fetchone()[0] == 0


async def test_a_new_tenant_is_spread_evenly_before_its_first_scope(many, layout):
    await many.operator.placements.place("one", ["south", "north"])
    users = [f"user-{number}" for number in range(12)]
    for user in users:
        await (await many.mind("ada", user, tenant="one")).remember(f"I am {user}.")
    low = sum(bucket_of("ada", user) < 2048 for user in users)
    assert (held(layout, "south"), held(layout, "north")) == (low, len(users) - low)
    for names, reason in (
        (["north", "south"], "only a new one"),
        (["north"], "on that shard already"),
        (["north", "north"], "once"),
    ):
        with pytest.raises((ConflictError, InvalidInputError), match=reason):
            await many.operator.placements.place("one", names)
    with pytest.raises(NotFoundError):
        await many.operator.placements.place("two", ["nowhere"])


@pytest.fixture
async def moving(many, layout, tmp_path):
    """A suspended tenant with an export of all that it has."""
    minds = [await many.mind("ada", user, tenant="one") for user in ("li", "mo")]
    for mind in minds:
        await mind.remember(f"{mind.access.scope.user} drinks tea.")
    _, secret = await new_key(many, "one")
    await many.operator.placements.suspend("one")
    caller = await many.operator.act_for("one")
    with (tmp_path / "one.zip").open("w+b") as file:
        await many.operator.exports.write_export_file(caller, ExportRequest(), file)
    lines = []
    await many.operator.placements.export("one", lines.append)
    return minds, secret, lines, tmp_path / "one.zip"


async def restore(many, lines, path):
    await many.operator.placements.import_lines("one", lines)
    caller = await many.operator.act_for("one")
    await many.parts.servers.read_anew(caller.tenant_id)
    with path.open("rb") as file:
        await many.operator.exports.import_export_file(caller, ImportOptions(""), file)


async def test_a_tenant_moves_by_hand_and_the_old_rows_stay(many, layout, moving):
    minds, secret, lines, path = moving
    await many.operator.placements.place("one", ["south"])
    with pytest.raises(ConflictError, match="2 memories are not restored"):
        await many.operator.placements.resume("one")
    with pytest.raises(UnavailableError):
        await minds[0].remember("Too early.")
    await restore(many, lines, path)
    with pytest.raises(UnavailableError, match="suspended"):
        await minds[0].remember("Still too early.")
    await many.operator.placements.resume("one")
    await minds[0].remember("li drinks coffee.")
    assert (held(layout, "north"), held(layout, "south")) == (2, 3)
    async with http_client(many, secret) as http:
        asked = {"agent": "ada", "user": "li", "text": "coffee"}
        assert "coffee" in (await http.post("/v1/recall", json=asked)).json()["hits"][0]["memory"]["content"]
    with pytest.raises(ConflictError, match="rows of this tenant"):
        await many.operator.placements.suspend("one")
        await many.operator.placements.place("one", ["north"])


async def test_a_spread_tenant_is_not_placed_on_a_shard_that_serves_a_part_of_it(many, layout):
    await many.operator.placements.place("one", ["south", "north"])
    [user] = [each for each in map(str, range(20)) if bucket_of("ada", each) >= 2048][:1]
    mind = await many.mind("ada", user, tenant="one")
    await mind.remember("I drink tea.")
    await many.operator.placements.suspend("one")
    for name in ("south", "north"):
        with pytest.raises(ConflictError, match="on that shard already"):
            await many.operator.placements.place("one", [name])
    await many.operator.placements.resume("one")
    await mind.remember("I drink coffee.")
    assert held(layout, "north") == 2


async def test_a_catalog_from_a_backup_suspends_and_exports_nothing(many, layout, moving, tmp_path):
    _, _, lines, path = moving
    before = layout.dump()
    await many.operator.placements.place("one", ["south"])
    await restore(many, lines, path)
    await many.operator.placements.resume("one")
    layout.restore(before)
    keys = []
    for command in (
        many.operator.placements.suspend("one"),
        many.operator.placements.export("one", keys.append),
        many.operator.placements.import_lines("one", lines),
    ):
        with pytest.raises(ConflictError, match="shard check"):
            await command
    assert keys == []


@pytest.mark.parametrize("resumed", [True, False])
async def test_a_placing_that_broke_off_early_is_undone_by_a_repair(many, layout, moving, monkeypatch, resumed):
    minds, *_ = moving

    async def fail(*_):
        raise InterruptedError

    with monkeypatch.context() as patched:
        patched.setattr(placing, "close_tenant", fail)
        with pytest.raises(InterruptedError):
            await many.operator.placements.place("one", ["south"])
    if resumed:
        await many.operator.placements.resume("one")
        await minds[0].remember("After all.")
    await Shards(layout.owner).repair()
    assert [each for each in await Shards(layout.owner).check() if not each.harmless] == []
    assert len((await minds[0].recall(Cue("all tea"))).hits) == 1 + resumed
    await many.operator.placements.suspend("one")
    await many.operator.placements.place("one", ["south"])
    with pytest.raises(ConflictError, match=f"{2 + resumed} memories"):
        await many.operator.placements.resume("one")


@pytest.mark.parametrize("step", ["await_rows", "close_tenant", "place_on"])
async def test_a_placing_that_breaks_off_goes_on(many, layout, moving, monkeypatch, step):
    minds, _, lines, path = moving
    place = placing.catalog if step == "place_on" else placing
    whole = getattr(place, step)

    async def fail(*given):
        if step != "await_rows":
            await whole(*given)
        raise InterruptedError

    monkeypatch.setattr(place, step, fail)
    with pytest.raises(InterruptedError):
        await many.operator.placements.place("one", ["south"])
    monkeypatch.setattr(place, step, whole)
    await many.operator.placements.place("one", ["south"])
    await restore(many, lines, path)
    await many.operator.placements.resume("one")
    for mind in minds:
        assert len((await mind.recall(Cue("tea"))).hits) == 1
        await mind.remember("After the move.")
    assert (held(layout, "north"), held(layout, "south")) == (2, 4)


async def test_a_catalog_from_a_backup_resumes_nothing(many, layout, moving):
    with psycopg.connect(layout.owner, autocommit=True) as connection:
        before = connection.execute("select * from placements").fetchall()
        await many.operator.placements.place("one", ["south"])
        connection.execute("delete from placements")
        for row in before:
            connection.execute("insert into placements values (%s, %s, %s, %s, %s)", row)
    with pytest.raises(ConflictError, match="shard check"):
        await many.operator.placements.resume("one")
    assert (held(layout, "north"), held(layout, "south")) == (2, 0)
    await many.operator.placements.place("one", ["south"])
    with pytest.raises(ConflictError, match="2 memories"):
        await many.operator.placements.resume("one")
