"""The stream channel in SQL is held against its pure twin, on generated minds, and against the original's results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.core.agents.scoring import STREAM_KINDS, ScoringInput, resolve_weighing, score
from recollect.llm.fake import FakeEmbedder
from recollect.models.memories import Kind, NewMemory, Triple
from recollect.models.recall import Cue, Mode, Status, StreamWeights
from recollect.store.memories import accesses
from recollect.store.memories.spaces import ensure_space, switch_space
from support.imports.generative_agents import read_golden, read_mind
from support.measuring.sizes import Sizes
from support.service.known_numbers import VECTORS

EXAMPLES = Sizes("examples", ci=15, long=400)
START = datetime(2026, 3, 1, 9, tzinfo=UTC)
CUE = "what is on my mind"
KINDS = (Kind.EVENT, Kind.THOUGHT, Kind.CHAT, Kind.MESSAGE)
# SQL leaves out what recency adds beyond the horizon: a millionth.
CLOSE = 2e-6


def stream(text=CUE, **fields):
    return Cue(text, **{"channels": ("stream",), "limit": 30, "touch": False} | fields)


def scope_of(owner, mind):
    query = 'select id from scopes where tenant_id = %s and agent = %s and "user" = %s'
    return owner.execute(
        query, [mind.access.scope.tenant_id, mind.access.scope.agent, mind.access.scope.user]
    ).fetchone()[0]


async def consider(mind, owner, cue=CUE):
    """What the twin needs to know of every memory of a mind, read around the code that is tested."""
    [vector] = await FakeEmbedder().embed([cue])
    scope = scope_of(owner, mind)
    query = f"select id, -(embedding <#> %s::text::halfvec) from {VECTORS} where scope_id = %s"
    similarity = dict(owner.execute(query, [str(vector.tolist()), scope]).fetchall())
    memories, cursor = [], None
    while True:
        page = await mind.list(cursor=cursor, limit=200)
        memories += page.memories
        if (cursor := page.next_cursor) is None:
            break
    return [
        ScoringInput(each.id, each.kind, each.last_accessed_at, each.importance, similarity.get(each.id))
        for each in memories
        if not each.idle and each.kind in STREAM_KINDS
    ]


def check_same(recollection, expected, tally, limit=30):
    hits = [(hit.memory.id, hit.channels["stream"].score) for hit in recollection.hits]
    assert len(hits) == min(limit, len(expected))
    scores = {candidate.id: candidate.score for candidate in expected}
    for (identity, found), candidate in zip(hits, expected, strict=False):
        assert found == pytest.approx(scores[identity], abs=CLOSE)
        assert found == pytest.approx(candidate.score, abs=CLOSE)
    counted = recollection.tallies["stream"]
    assert (counted.candidates, recollection.methods["stream"]) == (len(expected), "exact")
    if expected:
        assert (counted.lowest, counted.highest) == pytest.approx((tally.lowest, tally.highest), abs=CLOSE)


# Generated minds, whose every number the twin computes, too.


@dataclass(frozen=True)
class Made:
    """One memory to be made up: minutes after the start, and whether its vector is late."""

    kind: Kind
    minutes: int
    importance: int
    idle: bool
    late: bool


made = st.builds(
    Made,
    st.sampled_from(KINDS),
    st.integers(0, 9),
    st.integers(1, 10),
    st.booleans(),
    st.sampled_from([False] * 9 + [True]),
)
weighing = st.builds(
    StreamWeights,
    st.sampled_from(Mode),
    st.sampled_from([None, 0.0, 1.0, 7.5]),
    st.sampled_from([None, 0.0, 0.3]),
    st.sampled_from([None, 0.0, 2.0]),
    st.sampled_from([None, (1.0, 1.0, 1.0), (0.0, 0.0, 4.0)]),
    st.sampled_from([None, 0.5, 0.9, 0.9999, 1.0]),
)


async def write(mind, embedder, memories):
    for number, each in enumerate(memories):
        if each.late:
            embedder.fail()
        triple = Triple("desk", "is", "idle") if each.idle else Triple("desk", "is", "used")
        moment = START + timedelta(minutes=each.minutes)
        await mind.remember(
            NewMemory(f"number {number}", each.kind, importance=each.importance, triple=triple, occurred_at=moment)
        )
        embedder.recover()


@pytest.mark.promise("The stream is ranked as its pure twin ranks it, on any mind", EXAMPLES)
@settings(max_examples=EXAMPLES.now)
@given(st.lists(made, max_size=14), st.lists(weighing, min_size=3, max_size=3), st.integers(1, 20), st.data())
async def test_sql_and_the_twin_agree_on_generated_minds(recollect, embedder, owner, memories, weighings, limit, data):
    name = f"m-{owner.execute('select count(*) from scopes').fetchone()[0]}"
    mind = await recollect.mind(name, "", tenant="generated")
    await write(mind, embedder, memories)
    for asked in weighings:
        cue = stream(weighing=asked, limit=limit)
        expected, tally = score(
            await consider(mind, owner) if memories else [], resolve_weighing(asked, StreamWeights())
        )
        recollection = await mind.recall(cue)
        if expected:
            check_same(recollection, expected, tally, limit)
            ranks = {candidate.id: candidate.factors.rank for candidate in expected}
            for hit in recollection.hits:
                assert hit.channels["stream"].factors.rank in {ranks[hit.memory.id], 0}
        else:
            assert (recollection.status, recollection.hits) == (Status.NO_CANDIDATES, ())
        # Some come to mind, at a moment of their own, and may be folded before the next recall.
        later = START + timedelta(minutes=data.draw(st.integers(0, 12)))
        touched = await mind.recall(replace(cue, touch=True, now=later, limit=data.draw(st.integers(1, 5))))
        assert set(touched.accessed) == {hit.memory.id for hit in touched.hits}
        if memories and data.draw(st.booleans()):
            await accesses.fold(recollect.parts.database, [scope_of(owner, mind)])


async def test_a_long_stream_is_ranked_like_the_twin_ranks_it(mind, owner):
    """Long enough for a horizon, a shortlist and a list of recent ones that differ."""
    random = np.random.default_rng(7)
    moments = [START + timedelta(minutes=int(minute)) for minute in random.integers(0, 900, 2_500)]
    importances = random.integers(1, 11, 2_500)
    vectors = random.standard_normal((2_500, 64))
    kinds = [Kind.THOUGHT if number % 7 == 0 else Kind.EVENT for number in range(2_500)]
    await mind.load(
        [
            NewMemory(f"memory {number}", kind, importance=float(level), occurred_at=moment, embedding=vector)
            for number, (kind, level, moment, vector) in enumerate(
                zip(kinds, importances, moments, vectors, strict=True)
            )
        ]
    )
    for number, asked in enumerate(
        [StreamWeights(), StreamWeights(recency=6.0), StreamWeights(decay=0.9), StreamWeights(Mode.ORIGINAL)]
    ):
        later = START + timedelta(minutes=100 * number)
        await mind.recall(stream(touch=True, now=later, weighing=StreamWeights(importance=0.1 * number)))
        expected, tally = score(await consider(mind, owner), resolve_weighing(asked, StreamWeights()))
        check_same(await mind.recall(stream(weighing=asked)), expected, tally)


# What the original code answered.


GOLDEN = ["ga_july1_step_3_12/maria_lopez", "ga_zh_25_1/ayesha_khan", "ga_zh_25_1/francisco_lopez"]
TOLERANCE = 2e-5


@dataclass(frozen=True)
class Played:
    """A saved mind that lives in the database, with the names its memories had."""

    mind: object
    names: dict
    vectors: dict
    golden: dict


@pytest.fixture
async def play(recollect, addresses, shared):
    """Load saved minds into a space that holds their own vectors, to the last bit."""
    space = await ensure_space(addresses.owner, "text-embedding-ada-002", 1536, precision="single")
    await switch_space(addresses.owner, space.id)

    async def load(name):
        golden = next(
            each for each in read_golden(shared, "golden_new_retrieve")["datasets"] if each["dataset"] == name
        )
        saved = read_mind(shared, name)
        mind = await recollect.mind(f"{name.rpartition('/')[2]}")
        ids = await mind.load([to_new(node, saved.vectors, golden["idle_marker"]) for node in saved.nodes])
        names = {identity: f"node_{number}" for number, identity in enumerate(ids, 1)}
        return Played(mind, names, saved.vectors, golden)

    return load


def to_new(node, vectors, marker):
    return NewMemory(
        content=node["description"],
        kind=Kind(node["type"]),
        importance=node["poignancy"],
        idle=marker in node["embedding_key"],
        occurred_at=to_moment(node["created"]),
        embedding=vectors[node["embedding_key"]],
        embedding_text=node["embedding_key"],
    )


def to_moment(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def ask(played, key, **fields):
    now = to_moment(played.golden["curr_time"])
    return stream("", embedding=played.vectors[key], now=now, **fields)


def check_golden(played, recollection, expected, debug):
    found = [(played.names[hit.memory.id], hit.channels["stream"]) for hit in recollection.hits]
    assert [name for name, _ in found] == [each["id"] for each in expected]
    for (_, part), each in zip(found, expected, strict=True):
        assert part.score == pytest.approx(each["score"], abs=TOLERANCE)
        factors = (part.factors.recency, part.factors.similarity, part.factors.importance)
        assert factors == pytest.approx((each["recency"], each["relevance"], each["importance"]), abs=TOLERANCE)
    tally = recollection.tallies["stream"]
    assert tally.candidates == debug["candidates"]
    assert (tally.lowest, tally.highest) == pytest.approx((debug["min_score"], debug["max_score"]), abs=TOLERANCE)


@pytest.mark.parametrize("name", GOLDEN)
async def test_single_cues_are_answered_as_the_original_answers_them(play, name):
    played = await play(name)
    for case in played.golden["independent"]:
        for mode in Mode:
            cue = ask(played, case["focal_embedding_key"], weighing=StreamWeights(mode))
            recollection = await played.mind.recall(cue)
            check_golden(played, recollection, case[mode]["expected"], case[mode]["debug"])


@pytest.mark.parametrize("name", GOLDEN)
@pytest.mark.parametrize("mode", [Mode.ORIGINAL, Mode.NEWEST])
async def test_a_sequence_of_cues_notices_what_it_touched(play, name, mode):
    played = await play(name)
    expected = played.golden["sequence"][mode]
    cues = [
        ask(played, step["focal_embedding_key"], weighing=StreamWeights(mode), touch=True) for step in expected["steps"]
    ]
    recollections = await played.mind.recall_each(cues)
    for recollection, step in zip(recollections, expected["steps"], strict=True):
        assert [played.names[hit.memory.id] for hit in recollection.hits] == step["ids"]
        scores = [hit.channels["stream"].score for hit in recollection.hits]
        assert scores == pytest.approx(step["scores"], abs=TOLERANCE)
    touched = {played.names[identity] for recollection in recollections for identity in recollection.accessed}
    assert touched == set(expected["touched_ids"])


@pytest.mark.parametrize("name", GOLDEN)
async def test_weights_of_one_call_are_the_originals_custom_weights(play, name):
    played = await play(name)
    case = played.golden["custom_weights"]
    weights = StreamWeights(
        Mode.ORIGINAL, case["recency_w"], case["relevance_w"], case["importance_w"], decay=case["recency_decay"]
    )
    cue = ask(played, case["focal_embedding_key"], weighing=weights, limit=case["n_count"])
    check_golden(played, await played.mind.recall(cue), case["expected"], case["debug"])
