"""What comes to mind is on record at once, for the next recall to see, and no recall waits for it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from pgvector.psycopg import register_vector
from psycopg import sql

from recollect.channels.stream import QUERIES as STREAM
from recollect.channels.stream import write_query
from recollect.errors import InvalidInputError
from recollect.llm.fake import FakeEmbedder
from recollect.models.agents import Profile
from recollect.models.filters import Filter
from recollect.models.memories import Kind, NewMemory, Triple
from recollect.models.recall import Cue, Mode, Status, StreamWeights
from recollect.settings import Settings
from recollect.store.database.filter import ALL, bind
from recollect.store.memories import accesses, memories
from recollect.store.memories.embeddings import to_vector
from recollect.wiring import connected
from support.service.accesses import with_access
from support.service.known_numbers import VECTORS

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
LATER = datetime(2020, 6, 1, tzinfo=UTC)


def stream(text="apples", **fields):
    return Cue(text, channels=("stream",), **fields)


async def remember_many(mind, count, **fields):
    memories = [NewMemory(f"apple number {number}", occurred_at=LONG_AGO, **fields) for number in range(count)]
    return [receipt.id for receipt in await mind.remember(memories)]


def scope_of(owner):
    return owner.execute("select id from scopes").fetchone()[0]


async def last_access(mind, memory_id):
    return (await mind.get(memory_id)).last_accessed_at


# Recording.


@pytest.mark.parametrize("channels", [("stream",), ("text", "vector")])
async def test_every_hit_counts_as_accessed_at_the_moment_of_the_recall(mind, channels):
    ids = await remember_many(mind, 5)
    before = datetime.now(UTC)
    found = await mind.recall(Cue("apples", limit=3, channels=channels))
    assert (len(found.accessed), set(found.accessed)) == (3, {hit.memory.id for hit in found.hits})
    for memory_id in ids:
        moment = await last_access(mind, memory_id)
        assert moment > before if memory_id in found.accessed else moment == LONG_AGO


async def test_what_another_hit_stands_for_does_not_count_as_accessed(mind, owner):
    same = [NewMemory(f"the green apple of the old tree {word}", occurred_at=LONG_AGO) for word in ("", "")]
    await mind.remember([*same, NewMemory("a pear and an apple", occurred_at=LONG_AGO)])
    found = await mind.recall(Cue("apple tree", limit=2, channels=("text", "vector")))
    [twin] = [each for hit in found.hits for each in hit.duplicates]
    assert set(found.accessed) == {hit.memory.id for hit in found.hits}
    assert await last_access(mind, twin) == LONG_AGO
    assert owner.execute("select count(*) from access_log").fetchone() == (1,)


async def test_a_note_that_cannot_be_written_fails_no_recall(mind, owner):
    await remember_many(mind, 3)
    owner.execute("alter table access_log add constraint refused check (false)")
    found = await mind.recall(stream())
    assert (len(found.hits), found.accessed) == (3, ())
    assert len((await mind.conversation("c").context("apple", 300)).hits) == 3
    assert len((await mind.blocks.show("apple")).lines) == 3
    owner.execute("alter table access_log drop constraint refused")
    assert len((await mind.recall(stream())).accessed) == 3


@pytest.mark.parametrize("size", [1_000, 8_000])
async def test_a_note_reads_memories_by_their_keys(mind, owner, size):
    await mind.load([NewMemory(f"apple number {number}") for number in range(size)])
    ids = [row[0] for row in owner.execute("select id from memories order by random() limit 10")]
    owner.execute("vacuum analyze memories")
    asked = {"scope_id": scope_of(owner), "ids": ids, "moment": None, "lock": "fold", "fold_at": 32, "longest": 256}
    [[[plan]]] = owner.execute(sql.SQL("explain (analyze, format json) ") + accesses.RECORD, asked).fetchall()
    read = [node for node in walk_plan(plan["Plan"]) if node.get("Relation Name") == "memories"]
    assert sum(node["Actual Rows"] * node["Actual Loops"] for node in read) == 10
    assert {node["Index Name"] for node in read} == {"memories_pkey"}


def walk_plan(node):
    yield node
    for below in node.get("Plans", ()):
        yield from walk_plan(below)


async def test_a_recall_that_does_not_touch_leaves_no_trace(mind, owner):
    await remember_many(mind, 3)
    found = await mind.recall(stream(touch=False))
    assert (len(found.hits), found.accessed) == (3, ())
    assert owner.execute("select count(*) from access_log").fetchone() == (0,)


async def test_an_access_never_moves_a_time_backwards(recollect, mind, owner):
    [memory_id] = await remember_many(mind, 1)
    await mind.recall(stream(now=LATER))
    await mind.recall(stream(now=LATER - timedelta(days=1)))
    assert await last_access(mind, memory_id) == LATER
    await accesses.fold(recollect.parts.database, [scope_of(owner)])
    await mind.recall(stream(now=LATER - timedelta(days=2)))
    await accesses.fold(recollect.parts.database, [scope_of(owner)])
    assert await last_access(mind, memory_id) == LATER
    counted = owner.execute("select access_count from accesses").fetchone()
    assert counted == (3,)


async def test_the_next_recall_sees_what_the_last_one_touched(mind):
    first, second = await remember_many(mind, 2)
    ranks = {hit.memory.id: hit.channels["stream"].factors.rank for hit in (await mind.recall(stream(limit=1))).hits}
    [touched] = ranks
    other = first if touched == second else second
    after = {hit.memory.id: hit.channels["stream"].factors.rank for hit in (await mind.recall(stream())).hits}
    assert after == {touched: 1, other: 2}


async def test_idle_memories_are_kept_but_never_come_to_mind_by_the_stream(mind, owner):
    triple = Triple("the house:kitchen:stove", "is", "idle")
    await mind.remember(NewMemory("stove is idle", triple=triple))
    await mind.remember(NewMemory("idleness is the mother of vice", triple=Triple("idleness", "is", "a mother")))
    found = await mind.recall(stream("idle stove"))
    assert [hit.memory.content for hit in found.hits] == ["idleness is the mother of vice"]
    by_words = await mind.recall(Cue("stove", channels=("text",)))
    assert ([hit.memory.idle for hit in by_words.hits], by_words.accessed) == ([True], ())


async def test_forgetting_forgets_that_it_was_accessed(recollect, mind, owner):
    ids = await remember_many(mind, 3)
    await mind.recall(stream())
    await mind.forget(ids[:1])
    logged = owner.execute("select count(*) from access_log").fetchone()
    kept = {row[0] for row in owner.execute("select id from accesses").fetchall()}
    assert (logged, kept) == ((0,), set(ids[1:]))
    assert {hit.channels["stream"].factors.rank for hit in (await mind.recall(stream())).hits} == {1, 2}


async def test_the_log_is_folded_by_a_job_before_it_grows_long(recollect, mind, owner):
    ids = await remember_many(mind, 3)
    for _ in range(accesses.FOLD_AT + 3):
        await mind.recall(stream())
    waiting = owner.execute("select count(*) from procrastinate_jobs where task_name = 'fold' and status = 'todo'")
    assert waiting.fetchone() == (1,)
    expected = [await last_access(mind, memory_id) for memory_id in ids]
    await recollect.work(until_empty=True)
    assert owner.execute("select count(*) from access_log").fetchone() == (0,)
    assert [await last_access(mind, memory_id) for memory_id in ids] == expected
    assert owner.execute("select distinct access_count from accesses").fetchall() == [(accesses.FOLD_AT + 3,)]


async def test_where_nothing_can_be_written_an_answer_is_still_an_answer(addresses, mind, owner):
    await remember_many(mind, 3)
    owner.execute("alter role recollect_service set default_transaction_read_only = on")
    try:
        async with connected(
            Settings(embedder="fake"), replace(addresses, owner=addresses.owner), FakeEmbedder()
        ) as away:
            found = await (await away.mind("ada", "li")).recall(stream())
    finally:
        owner.execute("alter role recollect_service reset default_transaction_read_only")
    assert (len(found.hits), found.accessed, found.status) == (3, (), Status.OK)


# Several cues in one call.


async def test_cues_in_turn_notice_each_other_and_isolated_ones_do_not(mind):
    await remember_many(mind, 6)
    cues = [stream("apple number 1", limit=1), stream("pears", limit=6)]
    fresh = {}
    for isolated in (True, False):
        found = await mind.recall_each([replace(cue, touch=not isolated) for cue in cues], isolated=isolated)
        fresh[isolated] = next(
            hit.channels["stream"].factors.rank for hit in found[1].hits if hit.memory.id == found[0].hits[0].memory.id
        )
    assert fresh[True] > 1
    assert fresh[False] == 1


async def test_isolated_cues_are_answered_in_one_go_and_all_their_hits_recorded(mind, owner):
    await remember_many(mind, 4)
    found = await mind.recall_each(["apple number 1", stream("apple number 2", limit=2)], isolated=True)
    assert [len(each.hits) for each in found] == [4, 2]
    [(logged,)] = owner.execute("select ids from access_log").fetchall()
    assert set(logged) == {memory_id for each in found for memory_id in each.accessed}


async def test_one_bad_cue_among_many_is_refused_before_anything_is_asked(mind, owner):
    await remember_many(mind, 1)
    for cues in ([], ["x"] * 65, ["x", Cue("y", min_trust=101)], ["x", Cue("y", channels=("telepathy",))]):
        with pytest.raises(InvalidInputError):
            await mind.recall_each(cues)
    assert owner.execute("select count(*) from access_log").fetchone() == (0,)


# What an answer says of itself.


async def test_the_status_says_whether_there_was_nothing_or_no_way_to_look(recollect, mind, embedder):
    assert (await mind.recall(stream())).status is Status.NO_CANDIDATES
    await mind.remember(NewMemory("hello", Kind.CHAT))
    assert (await mind.recall(stream())).status is Status.NO_CANDIDATES
    await mind.remember("apples")
    assert (await mind.recall(stream())).status is Status.OK
    embedder.fail()
    silent = await mind.recall(stream())
    assert (silent.status, silent.hits, silent.methods) == (
        Status.ERROR,
        (),
        {"stream": "skipped: the embedder did not answer in time"},
    )
    assert silent.message == "stream: skipped: the embedder did not answer in time"
    assert (await mind.recall("apples")).status is Status.OK


async def test_the_answer_tells_what_it_was_chosen_from(mind):
    await remember_many(mind, 12)
    found = await mind.recall(stream(limit=5))
    tally = found.tallies["stream"]
    assert (tally.candidates, found.methods["stream"]) == (12, "exact")
    assert tally.highest == found.hits[0].channels["stream"].score
    assert tally.lowest < found.hits[-1].channels["stream"].score
    assert 0 < found.milliseconds < 5_000


async def test_an_agent_has_weights_a_limit_and_kinds_of_its_own(mind):
    await remember_many(mind, 12)
    await mind.remember([NewMemory("pear", importance=9), NewMemory("said", Kind.MESSAGE)])
    alone = StreamWeights(recency=0.0, similarity=0.0, importance=1.0)
    await mind.set_profile(Profile(weighing=alone, limit=4, kinds=(Kind.EVENT, Kind.MESSAGE)))
    found = await mind.recall(stream())
    assert (found.hits[0].memory.content, found.hits[0].channels["stream"].score, len(found.hits)) == ("pear", 2.0, 4)
    assert found.tallies["stream"].candidates == 14
    own = await mind.recall(stream(limit=2, kinds=(Kind.EVENT,), weighing=StreamWeights(importance=3.0)))
    assert (own.hits[0].channels["stream"].score, len(own.hits), own.tallies["stream"].candidates) == (6.0, 2, 13)
    usual = await mind.recall(stream(weighing=StreamWeights(Mode.PAPER)))
    assert usual.hits[0].channels["stream"].score > 1.0


async def test_recall_as_of_then_knows_nothing_later(mind):
    ids = await remember_many(mind, 3)
    moment = (await mind.get(ids[-1])).created_at
    await asyncio.sleep(0.01)
    await remember_many(mind, 3)
    for mode in Mode:
        found = await mind.recall(stream(as_of=moment, weighing=StreamWeights(mode)))
        assert {hit.memory.id for hit in found.hits} == set(ids)
        assert found.tallies["stream"].candidates == 3


async def test_what_is_trusted_too_little_is_no_candidate(recollect, mind):
    await remember_many(mind, 3)
    found = await mind.recall(stream(min_trust=100))
    assert len(found.hits) == 3
    stranger = with_access(mind, caller=replace(mind.access.caller, trust=10))
    await stranger.remember("apples are poisonous")
    assert len((await mind.recall(stream(min_trust=50))).hits) == 3
    assert len((await mind.recall(stream())).hits) == 4


# Large scopes, plans, and many at once.


async def test_a_large_scope_is_ranked_through_its_index_and_says_so(recollect, mind):
    random = np.random.default_rng(3)
    vectors = random.standard_normal((3_000, 64))
    await mind.load(
        [
            NewMemory(f"memory {number}", importance=float(random.integers(1, 11)), embedding=vector)
            for number, vector in enumerate(vectors)
        ]
    )
    cues = [stream("", embedding=vector, limit=30, touch=False) for vector in random.standard_normal((20, 64))]
    exact = [await mind.recall(cue) for cue in cues]
    await recollect.operator.spaces.index_large_scopes(at_least=1_000)
    near = [await mind.recall(cue) for cue in cues]
    assert {each.methods["stream"] for each in near} == {"near-exact"}
    overlaps = [
        len({hit.memory.id for hit in one.hits} & {hit.memory.id for hit in other.hits})
        for one, other in zip(exact, near, strict=True)
    ]
    assert sum(overlaps) / len(overlaps) >= 29
    for one, other in zip(exact, near, strict=True):
        scores = {hit.memory.id: hit.channels["stream"].score for hit in one.hits}
        for hit in other.hits:
            assert hit.channels["stream"].score == pytest.approx(
                scores.get(hit.memory.id, hit.channels["stream"].score), abs=0.02
            )
    narrowed = await mind.recall(replace(cues[0], weighing=StreamWeights(Mode.ORIGINAL)))
    assert narrowed.methods["stream"] == "exact"


async def test_ranking_reads_only_indexes(recollect, mind, owner):
    """The plans of the ranking, as the server itself reports them."""
    random = np.random.default_rng(3)
    await mind.load([NewMemory(f"apple {number}", embedding=random.standard_normal(64)) for number in range(400)])
    for _ in range(3):
        await mind.recall(stream(limit=100))
        await accesses.fold(recollect.parts.database, [scope_of(owner)])
    for table, row in (
        ("access_log", "n, gen_random_uuid(), now(), '{}', '{}'"),
        ("accesses", "n, gen_random_uuid(), 'event', now(), 1"),
    ):
        owner.execute(f"insert into {table} select {row} from generate_series(1, 5000) n")
    owner.execute("vacuum analyze")
    notes = []
    owner.add_notice_handler(lambda note: notes.append(note.message_primary))
    for setting in (
        "load 'auto_explain'",
        "set auto_explain.log_min_duration = 0",
        "set auto_explain.log_nested_statements = on",
        "set client_min_messages = log",
    ):
        owner.execute(setting)
    [vector] = await FakeEmbedder().embed(["apples"])
    owner.execute("select set_config('recollect.tenant', %s, false)", [str(mind.access.scope.tenant_id)])
    owner.execute("set role recollect_service")
    weights = {"recency": 0.5, "similarity": 3.0, "importance": 2.0, "decay": 0.99, "horizon": 1307, "limit": 30}
    space = (await mind.access.locate()).space
    asked = {"scope_id": scope_of(owner), "vector": to_vector(space, vector)} | weights
    query = write_query("newest", space, ALL)
    register_vector(owner)
    with owner.transaction():
        owner.execute(STREAM["plan_once"])
        assert len(owner.execute(query, asked | bind(Filter(), [Kind.EVENT, Kind.THOUGHT])).fetchall()) == 30
    owner.execute("reset role")
    [plan] = [note for note in notes if VECTORS in note and "plan:" in note and "Index" in note][:1]
    for index in (
        f"Index Only Scan using {VECTORS}_pkey",
        "using memories_by_time",
        "using accesses_by_time",
        "using access_log_pkey",
    ):
        assert index in plan, plan
    assert "Seq Scan on memories" not in plan


async def test_many_recallers_of_one_scope_never_wait_for_each_other_or_lose_an_access(recollect, mind):
    ids = await remember_many(mind, 60)
    # No access goes unrecorded because the machine has much else to do.
    mind.access.parts.database.deadline_seconds = 300
    errors, seen = [], {}

    async def recall_again_and_again(number):
        cue = stream(f"apple number {number}", limit=5)
        for _ in range(12):
            moment = datetime.now(UTC)
            try:
                found = await mind.recall(cue)
            except Exception as problem:
                errors.append(problem)
                continue
            assert len(found.accessed) == 5
            for memory_id in found.accessed:
                seen[memory_id] = max(moment, seen.get(memory_id, moment))

    recalling = asyncio.gather(*(recall_again_and_again(number) for number in range(16)))
    while not recalling.done():
        await recollect.work(until_empty=True)
    await recalling
    assert errors == []
    assert set(seen) <= set(ids)
    for memory_id, moment in seen.items():
        assert await last_access(mind, memory_id) >= moment


async def test_memories_are_fetched_by_their_key(mind, owner):
    """Seeing the ids, the planner would rather read the whole scope by time."""
    random = np.random.default_rng(3)
    ids = await mind.load(
        [NewMemory(f"apple {number}", embedding=random.standard_normal(64)) for number in range(3_000)]
    )
    owner.execute("vacuum analyze")
    owner.execute("select set_config('recollect.tenant', %s, false)", [str(mind.access.scope.tenant_id)])
    owner.execute("set role recollect_service")
    asked = memories.RowQuery(ids[:300:10])
    query = sql.SQL("explain ") + asked.compose()
    plan = "\n".join(line for (line,) in owner.execute(query, asked.bind(mind.access.scope)).fetchall())
    owner.execute("reset role")
    assert "using memories_pkey" in plan, plan
    assert "memories_by_time" not in plan
