"""A scope leaves for object storage and comes back the same, to the byte of its export; nobody takes it for empty."""

from __future__ import annotations

import asyncio
import io
import os
import zipfile
from dataclasses import replace

import pytest
from hypothesis import given, settings

from conftest import http_client, new_key
from recollect.errors import ColdStorageError, SetupError
from recollect.llm.fake import FakeEmbedder
from recollect.models.imports import ExportRequest
from recollect.models.memories import Kind, NewMemory
from recollect.models.recall import Cue
from recollect.models.service import ScopeOrder, ScopeQuery
from recollect.store.cold import tiers
from recollect.store.cold.storage import ObjectStorage, build_storage
from recollect.verbs.cold import moves
from support.imports.whole_scopes import EVERYTHING, WHOLE_LIVES, Life
from support.measuring.sizes import Sizes
from support.memories.cold_scopes import STAYS, chilly, export, objects_in, rows_of, send_out, tier_of
from support.programs.waiting import until
from support.service.made_settings import make_settings

LIVES = Sizes("scopes", ci=8, long=300)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "objects"


@pytest.fixture
async def recollect(addresses, embedder, script, folder):
    async with chilly(addresses, embedder, f"file://{folder}", script) as running:
        yield running


async def filled(recollect, agent="ada", user="li", texts=("Li likes green tea.", "Li walks by the harbour.")):
    mind = await recollect.mind(agent, user)
    await mind.remember([NewMemory(text) for text in texts])
    return mind


async def test_a_scope_with_everything_goes_out_and_comes_back_the_same(recollect, script, owner, folder):
    mind = await recollect.mind("ada", "li")
    await Life(mind, script).live(EVERYTHING)
    await recollect.operator.embed_waiting(mind, lambda _: None)
    owner.execute("delete from procrastinate_jobs")
    scope_id = (await mind.access.locate()).scope_id
    first, before = await export(recollect, agent="ada", user="li"), rows_of(owner, scope_id)
    moved = await send_out(recollect)
    assert (moved.moved, moved.skipped) == (1, 0)
    assert [path.stat().st_size for path in objects_in(folder)] == [moved.bytes]
    assert rows_of(owner, scope_id).keys() <= STAYS
    assert await export(recollect, agent="ada", user="li") == first, "a cold scope is exported from its object"
    assert tier_of(owner) == "cold", "an export leaves it where it is"
    found = await mind.recall(Cue("tea", touch=False))
    assert found.hits and tier_of(owner) == "hot"
    assert await export(recollect, agent="ada", user="li") == first
    # What recalls touched is added up on the way.
    before.pop("access_log", None)
    assert rows_of(owner, scope_id) == before
    assert objects_in(folder) == []


@pytest.mark.promise("A scope that goes to object storage and comes back is the same to the byte", LIVES)
@settings(max_examples=LIVES.now)
@given(steps=WHOLE_LIVES)
async def test_any_scope_comes_back_the_same(recollect, script, owner, steps):
    script.extractions = []
    agent = f"agent-{owner.execute('select count(*) from scopes').fetchone()[0]}"
    mind = await recollect.mind(agent, "li")
    await Life(mind, script).live([("remember", 1, "tea"), *steps])
    owner.execute("delete from procrastinate_jobs")
    first = await export(recollect, agent=agent, user="li")
    cue = Cue("tea of Ann", touch=False)
    before = await mind.recall(cue)
    assert (await send_out(recollect, agent)).moved == 1
    after = await mind.recall(cue)
    assert [(hit.memory.id, hit.score) for hit in after.hits] == [(hit.memory.id, hit.score) for hit in before.hits]
    assert await export(recollect, agent=agent, user="li") == first


async def test_counts_and_lists_know_a_cold_scope_and_leave_it_there(recollect, owner, http):
    await filled(recollect)
    listed = {}
    caller = await recollect.operator.act_for("default")
    for _ in range(2):
        for order in ScopeOrder:
            page = await recollect.tenant.scopes(caller, ScopeQuery(order=order))
            assert listed.setdefault(order, page) == page
        assert (await http.get("/v1/status")).status_code == 200
        assert (await http.get("/v1/jobs")).status_code == 200
        assert (await http.get("/v1/receipts")).status_code == 200
        await send_out(recollect)
    assert [each.memories for each in listed[ScopeOrder.NAME].scopes] == [2]
    assert tier_of(owner) == "cold"
    standing = await recollect.operator.cold.stats()
    assert (standing.cold, standing.leaving, standing.unneeded) == (1, 0, 0) and standing.bytes > 0


async def test_a_write_goes_on_where_the_scope_was(recollect, owner):
    mind = await filled(recollect)
    log = owner.execute("select number, operation, ids from changes order by number").fetchall()
    number = owner.execute("select change_number from scopes").fetchone()[0]
    await send_out(recollect)
    [made] = await mind.remember("Li has a cat.")
    after = owner.execute("select number, operation, ids from changes order by number").fetchall()
    assert after[: len(log)] == log, "what moves is not logged"
    assert [row[0] for row in after] == [*range(1, len(after) + 1)] and len(after) > number
    assert made.id > max(row[0] for row in owner.execute("select id from memories where id <> %s", [made.id]))
    assert owner.execute("select memory_count from scopes").fetchone()[0] == 3


async def test_over_http_a_call_finds_its_scope_as_it_was(recollect, owner):
    await filled(recollect)
    _, secret = await new_key(recollect)
    async with http_client(recollect, secret) as http:
        await send_out(recollect)
        asked = {"agent": "ada", "user": "li", "text": "green tea"}
        answer = await http.post("/v1/recall", json=asked)
        assert answer.status_code == 200
        assert "Li likes green tea." in [hit["memory"]["content"] for hit in answer.json()["hits"]]
        metrics = (await http.get("/metrics")).text
        assert 'recollect_cold_scopes{tier="cold"} 0.0' in metrics and "recollect_cold_bytes 0.0" in metrics


async def test_who_is_bound_elsewhere_brings_nothing_back(recollect, owner):
    await filled(recollect)
    await send_out(recollect)
    caller = await recollect.operator.act_for("other")
    _, secret = await recollect.create_key(caller, "test", ("read", "write"), 50)
    async with http_client(recollect, secret) as http:
        answer = await http.post("/v1/recall", json={"agent": "ada", "user": "li", "text": "tea"})
        assert answer.json()["hits"] == []
    assert tier_of(owner) == "cold"


async def test_many_callers_bring_a_scope_back_once(recollect, owner, monkeypatch):
    mind = await filled(recollect)
    await send_out(recollect)
    begun = []

    async def counted(parts, scope_id):
        begun.append(scope_id)
        return await moves.restore_scope(parts, scope_id)

    monkeypatch.setattr("recollect.verbs.cold.restore.restore_scope", counted)
    found = await asyncio.gather(*(mind.list() for _ in range(6)))
    assert {len(page.memories) for page in found} == {2} and len(begun) == 1


async def test_two_processes_bring_a_scope_back_once(recollect, addresses, embedder, folder, owner):
    mind = await filled(recollect)
    await send_out(recollect)
    async with chilly(addresses, embedder, f"file://{folder}") as other:
        minds = [mind, await other.mind("ada", "li")]
        found = await asyncio.gather(*(each.list() for each in minds))
    assert [len(page.memories) for page in found] == [2, 2]
    assert owner.execute("select count(*) from memories").fetchone()[0] == 2
    assert objects_in(folder) == []


async def test_an_object_that_another_process_removed_after_its_restore_is_no_error(
    recollect, addresses, embedder, folder, monkeypatch
):
    mind = await filled(recollect)
    await send_out(recollect)
    fetch, fetched = ObjectStorage.fetch, []

    async def fetch_late(storage, name, file):
        fetched.append(name)
        if len(fetched) == 1:
            assert len((await elsewhere.list()).memories) == 2
            assert objects_in(folder) == []
        return await fetch(storage, name, file)

    async with chilly(addresses, embedder, f"file://{folder}") as other:
        elsewhere = await other.mind("ada", "li")
        monkeypatch.setattr(ObjectStorage, "fetch", fetch_late)
        assert len((await mind.list()).memories) == 2
    assert len(fetched) == 2


async def test_an_object_that_is_missing_while_its_scope_is_cold_is_an_error(recollect, folder):
    mind = await filled(recollect)
    await send_out(recollect)
    [path] = objects_in(folder)
    path.unlink()
    with pytest.raises(ColdStorageError, match="missing"):
        await mind.list()


async def test_who_asks_for_a_scope_that_is_to_leave_keeps_it(recollect, owner, folder):
    mind = await filled(recollect)
    scope_id = (await mind.access.locate()).scope_id
    await tiers.mark(recollect.parts.database, scope_id >> 40, [scope_id])
    assert tier_of(owner) == "leaving"
    assert len((await mind.list()).memories) == 2
    assert tier_of(owner) == "hot"
    assert await moves.send_out(recollect.parts, scope_id) is None
    assert rows_of(owner, scope_id)["memories"] == 2 and objects_in(folder) == []


@pytest.mark.parametrize("meanwhile", ["a write", "a read", "a job"])
async def test_what_happens_after_the_export_ends_the_attempt(recollect, owner, folder, monkeypatch, meanwhile):
    mind = await filled(recollect)
    scope_id = (await mind.access.locate()).scope_id
    checked = moves.check_stored

    async def happen(storage, written):
        await checked(storage, written)
        if meanwhile == "a write":
            await mind.remember("Li has a cat.")
        elif meanwhile == "a read":
            await mind.list()
        else:
            owner.execute(
                "insert into procrastinate_jobs (queue_name, task_name, lock, args) values "
                "('embed', 'embed', 'embed:' || %s, jsonb_build_object('scope_id', %s::bigint))",
                [scope_id, scope_id],
            )

    monkeypatch.setattr(moves, "check_stored", happen)
    moved = await send_out(recollect)
    assert (moved.moved, moved.skipped) == (0, 1)
    assert len((await mind.list()).memories) == (3 if meanwhile == "a write" else 2)
    assert objects_in(folder) == [] and rows_of(owner, scope_id).get("cold_objects") is None


async def test_a_call_that_was_under_way_is_waited_for(recollect, owner):
    """Who began before the mark may have read where the scope is, and not yet its rows."""
    mind = await filled(recollect)
    begun = asyncio.create_task(send_out(recollect, seconds=0.5))
    await until(lambda: tier_of(owner) == "leaving")
    assert rows_of(owner, owner.execute("select id from scopes").fetchone()[0])["memories"] == 2
    assert (await begun).moved == 1
    assert len((await mind.list()).memories) == 2


async def test_a_call_whose_time_is_over_is_told_to_come_again(recollect, owner, monkeypatch):
    await filled(recollect)
    await send_out(recollect)
    hurried = asyncio.Event()

    async def slowly(parts, scope_id):
        await hurried.wait()
        return await moves.restore_scope(parts, scope_id)

    monkeypatch.setattr("recollect.verbs.cold.restore.restore_scope", slowly)
    recollect.restorer.deadline_seconds = 0.2
    _, secret = await new_key(recollect)
    async with http_client(recollect, secret) as http:
        asked = {"agent": "ada", "user": "li", "text": "green tea"}
        answer = await http.post("/v1/recall", json=asked)
        assert (answer.status_code, answer.json()["code"]) == (503, "waking")
        assert int(answer.headers["Retry-After"]) >= 1
        assert owner.execute("select status from procrastinate_jobs where task_name = 'wake'").fetchall() == [("todo",)]
        await recollect.work(until_empty=True)
        assert tier_of(owner) == "hot"
        assert (await http.post("/v1/recall", json=asked)).json()["hits"]
        hurried.set()


async def test_a_process_without_the_storage_leaves_it_to_one_that_has_it(recollect, addresses, embedder, owner):
    await filled(recollect)
    await send_out(recollect)
    async with chilly(addresses, embedder, "") as other:
        mind = await other.mind("ada", "li")
        with pytest.raises(SetupError, match="RECOLLECT_COLD__URL"):
            await mind.list()
        caller = await other.operator.act_for("default")
        with pytest.raises(SetupError, match="RECOLLECT_COLD__URL"):
            await other.operator.exports.write_export_file(caller, ExportRequest(agent="ada", user="li"), io.BytesIO())
        _, secret = await new_key(other)
        async with http_client(other, secret) as http:
            answer = await http.post("/v1/recall", json={"agent": "ada", "user": "li", "text": "green tea"})
        assert answer.json()["code"] == "setup" and "Retry-After" not in answer.headers
        assert "RECOLLECT_COLD__URL" in answer.json()["detail"]
    await recollect.work(until_empty=True)
    assert tier_of(owner) == "hot"


async def test_objects_are_for_their_owner_alone(recollect, folder):
    before = os.umask(0o022)
    try:
        await filled(recollect)
        await send_out(recollect)
    finally:
        os.umask(before)
    [stored] = objects_in(folder)
    assert stored.stat().st_mode & 0o777 == 0o600
    assert {each.stat().st_mode & 0o777 for each in folder.rglob("*") if each.is_dir()} | {
        folder.stat().st_mode & 0o777
    } == {0o700}


async def test_a_tenants_export_holds_its_cold_scopes(recollect):
    for user in ("bo", "li", "zoe"):
        await filled(recollect, user=user, texts=(f"{user} likes tea.",))
    first = await export(recollect)
    await send_out(recollect, user="li")
    assert await export(recollect) == first
    with zipfile.ZipFile(io.BytesIO(first)) as packed:
        assert len([name for name in packed.namelist() if name.endswith("memories/memories.jsonl")]) == 3


async def test_vectors_of_a_retired_space_are_made_anew(recollect, owner):
    mind = await filled(recollect)
    await send_out(recollect)
    changed = replace(recollect, parts=replace(recollect.parts, embedder=FakeEmbedder(32)))
    await changed.operator.spaces.change(lambda _: None)
    old, new = (row[0] for row in owner.execute("select id from embedding_spaces order by state desc").fetchall())
    await changed.operator.spaces.drop(old)
    assert len((await mind.list()).memories) == 2
    assert owner.execute("select count(*) from pending_embeddings").fetchone()[0] == 2
    await changed.work(until_empty=True)
    assert owner.execute(f"select count(*) from vectors_{new}").fetchone()[0] == 2


async def test_mirrors_hold_what_is_hot(recollect, owner):
    """The scope leaves the mirrors with its rows, and is compared as a whole when it is back."""
    mind = await filled(recollect)
    scope_id = (await mind.access.locate()).scope_id
    owner.execute("insert into mirrors (name, generation, incarnation) select 'opensearch', 1, id from incarnations")
    owner.execute("insert into mirror_positions values (%s, 'opensearch', 1, 1)", [scope_id])
    waits = "select unmirrored.number = scopes.change_number from unmirrored join scopes on scopes.id = scope_id"
    for move in (lambda: send_out(recollect), mind.list):
        await move()
        assert owner.execute(waits).fetchall() == [(True,)]
        assert owner.execute("select position from mirror_positions").fetchall() == [(0,)]
        owner.execute("delete from unmirrored")
        owner.execute("update mirror_positions set position = 1")


async def test_followers_go_on_after_a_return(recollect, owner):
    mind = await filled(recollect)
    following = mind.changes()
    began = await anext(following)
    await send_out(recollect)
    assert tier_of(owner) == "cold"
    [made] = await mind.remember("Li has a cat.")
    change = await asyncio.wait_for(anext(following), 20)
    assert (change.number, change.operation, change.ids) == (began.number + 1, "stored", (made.id,))
    await following.aclose()


async def test_a_scope_that_is_cold_does_not_stop_others(recollect, owner):
    """A statement that looks at many scopes of a tenant tells of those that it was asked for alone."""
    for user in ("bo", "li"):
        await filled(recollect, user=user)
    await send_out(recollect, user="bo")
    mind = await recollect.mind("ada", "li")
    assert len((await mind.list()).memories) == 2
    await mind.remember(NewMemory("A thought.", Kind.THOUGHT))
    assert owner.execute("select \"user\" from scopes where tier = 'cold'").fetchall() == [("bo",)]


def test_what_cannot_be_a_storage_is_refused():
    for wrong, said in (
        ({"cold__after_days": 30}, "RECOLLECT_COLD__URL"),
        ({"cold__url": "file:///tmp/x", "cold__key": "short"}, "32 bytes"),
        ({"cold__url": "s3://bucket", "cold__options": "nothing"}, "name=value"),
        ({"cold__url": "ftp://bucket"}, "RECOLLECT_COLD__URL"),
    ):
        with pytest.raises(SetupError, match=said):
            build_storage(make_settings(**wrong))
