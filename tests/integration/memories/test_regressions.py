"""Promises that were once found broken: each test is the shortest way to the break."""

from __future__ import annotations

import asyncio
import gc
import random
import time
import tracemalloc
from dataclasses import replace

import psycopg
import pytest
from procrastinate.exceptions import ConnectorException
from procrastinate.worker import Worker

from conftest import execute, http_client, new_key
from recollect.client import Client, RemoteMind
from recollect.core.text.terms import analyse
from recollect.doors.imports import jsonl
from recollect.errors import RecollectError, UnavailableError
from recollect.jobs import worker
from recollect.jobs.worker import build_app
from recollect.llm.fake import FakeEmbedder
from recollect.models.memories import NewMemory
from recollect.store.memories import spaces
from recollect.store.memories.spaces import drop_space, ensure_space
from recollect.store.service import scopes
from recollect.verbs.memories.load import Load
from recollect.verbs.memories.rows import prepare_all
from support.programs import command_line
from support.programs.command_line import settings_of
from support.programs.waiting import WAIT_SECONDS, blocked, heartbeat, hurry, until
from support.service.accesses import with_access
from support.service.known_numbers import SPACE, VECTORS

CANARY = "canary-in-a-name"
JSON = {"Content-Type": "application/json"}


def with_model(recollect, embedder):
    """The same database served with another model configured."""
    return replace(recollect, parts=replace(recollect.parts, embedder=embedder))


def scalar(owner, query):
    return owner.execute(query).fetchone()[0]


def long_texts(count, length=10_000):
    chosen = random.Random(1)
    return [NewMemory("".join(chr(chosen.randint(0x4E00, 0x9FFF)) for _ in range(length))) for _ in range(count)]


# Embedding spaces and jobs


async def test_a_model_that_refuses_everything_does_not_become_active(recollect, owner):
    await (await recollect.mind("ada")).remember([NewMemory(f"note {number}") for number in range(5)])
    wrong = FakeEmbedder(256)
    wrong.fail(lasting=True)
    with pytest.raises(RecollectError):
        await with_model(recollect, wrong).operator.spaces.change(lambda _: None)
    assert scalar(owner, "select model from embedding_spaces where state = 'active'") == "fake-64@1"


async def test_a_refused_key_does_not_end_the_wait_for_vectors(recollect, owner, embedder):
    mind = await recollect.mind("ada")
    embedder.fail()
    await mind.remember([NewMemory(f"note {number}") for number in range(4)])
    embedder.fail(lasting=True)
    owner.execute("update procrastinate_jobs set attempts = 8")
    await recollect.work(until_empty=True)
    embedder.recover()
    owner.execute("update procrastinate_jobs set scheduled_at = null")
    await recollect.work(until_empty=True)
    assert scalar(owner, "select count(*) from pending_embeddings") == 0


async def test_a_model_may_change_its_dimensions_while_serving(recollect):
    mind = await recollect.mind("ada")
    await mind.remember("green apples")
    other = FakeEmbedder(256)
    other.model = "fake-64@1"
    await with_model(recollect, other).operator.spaces.change(lambda _: None)
    await mind.remember("red apples")
    assert len((await mind.recall("apples")).hits) == 2


async def test_a_write_under_way_at_the_switch_gets_its_vector(recollect, owner, monkeypatch):
    mind, other = await recollect.mind("ada"), FakeEmbedder(256)
    await mind.remember("first")
    space = await ensure_space(recollect.addresses.owner, other.model, other.dimensions)
    reached, gate = asyncio.Event(), asyncio.Event()
    close, switch, writing = scopes.close_writing, spaces.switch_space, []

    async def wait_and_close(*arguments):
        reached.set()
        await gate.wait()
        await close(*arguments)

    async def write_and_switch(*arguments):
        # The space was filled before, so this write is not in it, and it ends after the switch.
        writing.append(asyncio.create_task(mind.remember("under way")))
        await reached.wait()
        await switch(*arguments)

    monkeypatch.setattr(scopes, "close_writing", wait_and_close)
    monkeypatch.setattr(spaces, "switch_space", write_and_switch)
    changed = with_model(recollect, other)
    changing = asyncio.create_task(changed.operator.spaces.change(lambda _: None))
    await until(lambda: scalar(owner, f"select state = 'active' from embedding_spaces where id = {space.id}"))
    gate.set()
    await asyncio.gather(*writing, changing)
    await changed.work(until_empty=True)
    assert scalar(owner, f"select count(*) from vectors_{space.id}") == 2


async def test_a_new_space_does_not_stop_writers_behind_a_long_transaction(addresses, owner, mind):
    with psycopg.connect(addresses.owner) as long:
        long.execute("delete from memories where false")
        making = asyncio.create_task(ensure_space(addresses.owner, "new", 256))
        await until(lambda: making.done() or blocked(owner))
        try:
            await mind.remember("not in the way of anybody")
        finally:
            long.rollback()
            await asyncio.gather(making, return_exceptions=True)


async def test_a_space_dropped_between_admission_and_search_is_no_fault_of_ours(recollect):
    _, secret = await new_key(recollect)
    await (await recollect.authorize(secret, "http", "ada", "")).remember("apples")
    mind = await recollect.authorize(secret, "http", "ada", "")
    changed = with_model(recollect, FakeEmbedder(256))
    await changed.operator.spaces.change(lambda _: None)
    await changed.operator.spaces.drop(SPACE)
    try:
        assert (await mind.recall("apples")).hits
    except RecollectError as problem:
        assert problem.code == "unavailable"


async def test_a_space_that_was_only_tried_can_be_dropped(addresses):
    tried = await ensure_space(addresses.owner, "tried once", 256)
    await drop_space(addresses.owner, tried.id)


async def test_an_index_whose_build_failed_is_built_again(recollect, owner):
    await (await recollect.mind("ada")).remember([NewMemory(f"note {number}") for number in range(20)])
    await recollect.operator.spaces.index_large_scopes(10)
    broken = f"update pg_index set indisvalid = false where indexrelid::regclass::text like '{VECTORS}_of_%'"
    owner.execute(broken)
    owner.execute("update scopes set approximate_space = null")
    await recollect.operator.spaces.index_large_scopes(10)
    valid = f"select bool_and(indisvalid) from pg_index where indexrelid::regclass::text like '{VECTORS}_of_%'"
    assert scalar(owner, valid)


@pytest.mark.promise("A worker outlives a database that was away")
async def test_the_worker_outlives_a_database_that_was_away(recollect, cluster, owner, embedder, monkeypatch, caplog):
    monkeypatch.setattr(worker, "RESTART_SECONDS", 0.01)
    embedder.fail()
    await (await recollect.mind("ada")).remember("waits for its vector")
    owner.execute("update procrastinate_jobs set scheduled_at = now() + '1 hour'")
    working = asyncio.create_task(recollect.work())
    try:
        await until(lambda: scalar(owner, "select count(*) from procrastinate_workers"))
        execute(cluster, f"alter database {owner.info.dbname} with allow_connections false")
        owner.execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'recollect_service'")
        await until(lambda: working.done() or "not currently accepting connections" in caplog.text)
        execute(cluster, f"alter database {owner.info.dbname} with allow_connections true")
        embedder.recover()
        owner.execute("update procrastinate_jobs set scheduled_at = null")
        await until(lambda: working.done() or not scalar(owner, "select count(*) from pending_embeddings"))
        assert not working.done(), "the worker ended, and nobody was told"
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


@pytest.mark.promise("A worker that is stopped while the database is away ends")
async def test_a_worker_that_is_stopped_while_the_database_is_away_ends(recollect, monkeypatch):
    begun = asyncio.Event()

    async def break_off(*_, **__):
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectorException from None

    monkeypatch.setattr(Worker, "run", break_off)
    monkeypatch.setattr(worker, "RESTART_SECONDS", 0)
    working = asyncio.create_task(recollect.work())
    await begun.wait()
    working.cancel()
    await asyncio.wait([working], timeout=WAIT_SECONDS)
    assert working.cancelled()


@pytest.mark.promise("A job that kills its worker is given up in the end, and others go on")
async def test_a_job_that_kills_its_worker_is_given_up_in_the_end(recollect, owner, embedder):
    embedder.fail()
    await (await recollect.mind("ada")).remember("poison")
    owner.execute("update procrastinate_jobs set status = 'doing', attempts = 1000")
    app = build_app(recollect.parts)
    async with app.open_async():
        await app.tasks["resume_stalled"](None, 0)
    assert scalar(owner, "select status::text from procrastinate_jobs") == "failed"


# Limits


async def test_long_memories_do_not_stop_the_service_for_others(mind, embedder):
    # The fake embedder works in the event loop, as no real one does.
    embedder.fail()
    new = long_texts(10)
    worked = time.thread_time()
    prepare_all(new)
    alone = time.thread_time() - worked
    async with heartbeat() as gaps:
        await mind.remember(new)
    assert max(gaps) < alone / 2


async def test_a_load_of_long_texts_outlives_its_own_preparation(recollect, mind, monkeypatch):
    make_ready = Load.prepare_part

    def make_ready_slowly(*given):
        time.sleep(0.3)
        return make_ready(*given)

    monkeypatch.setattr(Load, "prepare_part", make_ready_slowly)
    recollect.parts.database.milliseconds = "100"
    assert len(await with_access(mind, deadline_seconds=0.1).load([NewMemory("long"), NewMemory("longer")])) == 2


def test_long_words_are_not_kept_in_memory():
    analyse("warm")
    tracemalloc.start()
    try:
        for number in range(200):
            analyse(f"{number}" + "a" * 31_990)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # All of them are 6.4 million; other threads of this process may take some meanwhile.
    assert kept < 3_000_000


async def test_a_body_without_a_key_is_not_parsed(recollect):
    async with http_client(recollect, "") as http:
        answer = await http.post("/v1/memories", content=b'{"agent": [', headers=JSON)
    assert answer.status_code == 401


@pytest.mark.promise("Statements of callers who left end on the server too")
async def test_statements_of_callers_who_left_end_on_the_server_too(recollect, addresses, owner):
    _, secret = await new_key(recollect)
    hurried = hurry(recollect, 0.5)
    with psycopg.connect(addresses.owner) as blocker:
        blocker.execute("lock table api_keys in access exclusive mode")
        asked = asyncio.gather(
            *(hurried.authorize(secret, "http", "ada", "") for _ in range(4)), return_exceptions=True
        )
        await until(lambda: blocked(owner))
        assert {type(problem) for problem in await asked} == {UnavailableError}
        # The lock is still held: nothing but their own time limit can end them.
        await until(lambda: not blocked(owner))


# Words


@pytest.mark.parametrize("cue", ["zebra", "zeppelin"])
async def test_keywords_and_the_end_of_a_long_text_are_found(mind, embedder, cue):
    embedder.fail()
    text = "".join(chr(0x4E00 + number * 7 % 5_000) for number in range(9_000)) + " zeppelin"
    await mind.remember([NewMemory(text, keywords=("zebra",)), NewMemory("other")])
    assert len((await mind.recall(cue)).hits) == 1


# Doors


async def test_what_was_exported_can_be_imported(recollect, mind, tmp_path):
    [source] = await mind.remember("a source")
    await mind.remember(NewMemory("a thought", evidence=(source.id,)))
    assert await jsonl.export_lines(mind, tmp_path / "all.jsonl", lambda _: None) == 2
    assert await jsonl.import_lines(await recollect.mind("copy"), tmp_path / "all.jsonl", lambda _: None) == 2


async def test_the_client_forgets_a_source_and_what_was_made_of_it(recollect, mind):
    [source] = await mind.remember("a source")
    [derived] = await mind.remember(NewMemory("a thought", evidence=(source.id,)))
    _, secret = await new_key(recollect)
    client = Client("http://test", secret)
    await client.close()
    async with http_client(recollect, secret) as http:
        client._transport._http = http
        remote = RemoteMind(client, mind.access.scope.agent, mind.access.scope.user)
        assert set(await remote.forget([source.id, derived.id])) == {source.id, derived.id}


async def test_an_authorized_mind_sees_what_it_remembered(recollect):
    _, secret = await new_key(recollect)
    mind = await recollect.authorize(secret, "http", "new", "")
    await mind.remember("green apples")
    assert (await mind.recall("apples")).hits


async def test_metadata_with_keys_of_two_types_is_stored_or_refused(mind):
    try:
        await mind.remember(NewMemory("x", metadata={1: "a", "b": 1}), idempotency_key="k")
    except RecollectError as problem:
        assert problem.code == "invalid_input"


@pytest.mark.parametrize("content", ["see [/etc/passwd] for users", "list[int] and [bold] text"])
async def test_the_command_line_prints_contents_as_they_are(mind, addresses, content):
    await mind.remember(content)
    words = ("recall", "--agent", mind.access.scope.agent, "--user", mind.access.scope.user, "users text")
    ended = await asyncio.to_thread(command_line.call, *words, settings=settings_of(addresses))
    assert (ended.code, content in ended.stdout) == (0, True), ended.said


@pytest.mark.promise("A caller may give up at any moment and leaves no trace")
async def test_a_caller_may_give_up_at_any_moment_without_a_trace(recollect):
    """What is left behind would fail the test as an unraisable exception, when the collector finds it."""

    async def read_slowly():
        async with recollect.parts.database.reading(None) as connection:
            for _ in range(3):
                await connection.execute("select pg_sleep(0.01)")

    # Everything that is there already need not be looked through forty times.
    gc.collect()
    gc.freeze()
    try:
        for moments in range(40):
            task = asyncio.create_task(read_slowly())
            for _ in range(moments):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            del task
            gc.collect()
    finally:
        gc.unfreeze()
