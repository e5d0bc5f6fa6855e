"""Recall on a real PostgreSQL, held against pure oracles."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from recollect.core.text.terms import analyse, analyse_cue, average_length, inverse_frequency, term_weights
from recollect.errors import InvalidInputError
from recollect.models.memories import Kind, NewMemory
from recollect.models.recall import Cue
from recollect.store.service.scopes import locate

WORDS = [
    "apple",
    "river",
    "coffee",
    "letter",
    "train",
    "garden",
    "winter",
    "music",
    "bridge",
    "lamp",
    "张伟",
    "腾讯",
    "工程师",
    "苹果",
    "北京",
    "周末",
]


def sentences(count, seed=1):
    chosen = random.Random(seed)
    # A few words are in most sentences and most are in few, as in life.
    return [
        " ".join(WORDS[min(int(chosen.expovariate(0.35)), len(WORDS) - 1)] for _ in range(chosen.randint(2, 12)))
        for _ in range(count)
    ]


def rank_by_bm25(stored: list[tuple[str, float]], cue: str) -> dict[str, float]:
    """The pure twin of match_terms: (text, average length when it was written) -> score by text."""
    weights = {text: term_weights(Counter(analyse(text)), average) for text, average in stored}
    terms = analyse_cue(cue)
    frequency = {term: sum(term in each for each in weights.values()) for term in terms}
    scores = {
        text: sum(each.get(term, 0.0) * inverse_frequency(len(weights), frequency[term]) for term in terms)
        for text, each in weights.items()
    }
    return {text: score for text, score in scores.items() if score > 0}


# A piece of a conversation has many terms; how rare each of them is must not be guessed from a few memories.
LONG = " ".join(f"number{number}" for number in range(60, 200))


@pytest.mark.parametrize(
    "cue", ["music bridge", "张伟在哪里工作", "apple", "what about the river and 北京 周末?", LONG]
)
async def test_text_channel_equals_its_pure_twin(mind, cue):
    texts = [f"{text} number{number}" for number, text in enumerate(sentences(150))]
    await mind.remember([NewMemory(text) for text in texts])
    average = average_length(sum(len(analyse(text)) for text in texts), len(texts))
    expected = rank_by_bm25([(text, average) for text in texts], cue)
    hits = (await mind.recall(Cue(cue, limit=200))).hits
    found = {hit.memory.content: hit.channels["text"].score for hit in hits if "text" in hit.channels}
    best = sorted(expected.values(), reverse=True)[:200]
    assert found.keys() <= expected.keys()
    assert sorted(found.values(), reverse=True) == pytest.approx(best, rel=1e-4)
    for text, score in found.items():
        assert score == pytest.approx(expected[text], rel=1e-4)


async def test_frequencies_counted_on_a_sample_keep_the_order_of_rare_words(recollect):
    mind = await recollect.mind("many")
    common = [NewMemory(f"apple river coffee train day{number % 9} entry{number}") for number in range(6_000)]
    await mind.load([*common, NewMemory("apple river zeppelin")])
    hits = (await mind.recall(Cue("apple river zeppelin", limit=5))).hits
    assert hits[0].memory.content == "apple river zeppelin"


async def test_vector_channel_is_exact(mind):
    generator = np.random.default_rng(7)
    vectors = generator.standard_normal((400, 64))
    for start in range(0, 400, 200):
        new = [NewMemory(f"m{number}", embedding=vectors[number].tolist()) for number in range(start, start + 200)]
        await mind.remember(new)
    for cue in generator.standard_normal((5, 64)):
        cosines = vectors @ cue / np.linalg.norm(vectors, axis=1) / np.linalg.norm(cue)
        recollection = await mind.recall(Cue(embedding=cue.tolist(), limit=20))
        expected = [f"m{number}" for number in np.argsort(-cosines)[:20]]
        assert [hit.memory.content for hit in recollection.hits] == expected
        assert recollection.hits[0].channels["vector"].score == pytest.approx(cosines.max(), abs=2e-3)
        assert recollection.methods["vector"] == "exact"


async def test_as_of_shows_what_was_known_then(mind, owner):
    moments = []
    for number in range(3):
        await mind.remember(NewMemory(f"apple {number}"))
        moments.append(owner.execute("select clock_timestamp()").fetchone()[0])
        await asyncio.sleep(0.005)
    for number, moment in enumerate(moments):
        hits = (await mind.recall(Cue("apple", as_of=moment))).hits
        assert sorted(hit.memory.content for hit in hits) == [f"apple {each}" for each in range(number + 1)]
    assert (await mind.recall(Cue("apple", as_of=datetime(1960, 1, 1, tzinfo=UTC)))).hits == ()
    exactly = (await mind.recall("apple 1")).hits[0].memory.created_at
    just_before = exactly - timedelta(microseconds=1)
    contents = [
        {hit.memory.content for hit in (await mind.recall(Cue("apple", as_of=moment))).hits}
        for moment in (exactly, just_before)
    ]
    assert contents == [{"apple 0", "apple 1"}, {"apple 0"}]


async def test_only_the_kinds_that_were_asked_for(mind):
    await mind.remember([NewMemory(f"apple as {kind}", kind) for kind in Kind])
    hits = (await mind.recall(Cue("apple", kinds=(Kind.FACT, Kind.CHAT)))).hits
    assert {hit.memory.kind for hit in hits} == {Kind.FACT, Kind.CHAT}


async def test_every_hit_says_its_score_by_channel(mind):
    await mind.remember([NewMemory("green apples at the market"), NewMemory("a red train")])
    hits = (await mind.recall("apples")).hits
    assert hits[0].memory.content == "green apples at the market"
    assert set(hits[0].channels) == {"vector", "text"}
    for hit in hits:
        shares = (*(part.share for part in hit.channels.values()), *hit.preferences.values())
        assert hit.score == pytest.approx(sum(shares))


@pytest.mark.promise("Recall goes on without the embedder")
async def test_recall_goes_on_without_the_embedder(mind, embedder):
    await mind.remember("green apples at the market")
    embedder.fail()
    recollection = await mind.recall("apples")
    assert recollection.hits[0].memory.content == "green apples at the market"
    methods = recollection.methods
    assert (methods["vector"], methods["text"]) == ("skipped: the embedder did not answer in time", "exact")


async def test_an_unknown_scope_is_empty(recollect):
    mind = await recollect.mind("nobody")
    assert (await mind.recall("anything")).hits == ()
    assert (await mind.list()).memories == ()
    assert (await locate(recollect.parts.database, mind.access.scope)).scope_id is None


@pytest.mark.parametrize("cue", [Cue("x", limit=0), Cue("x", limit=201), Cue("x\0"), Cue("\ud800")])
async def test_absurd_cues_are_refused(mind, cue):
    with pytest.raises(InvalidInputError):
        await mind.recall(cue)


@pytest.mark.promise("What is forgotten is found by no channel")
async def test_forgotten_memories_are_found_by_no_channel(mind):
    [receipt, _] = await mind.remember([NewMemory("apple pie"), NewMemory("apple juice")])
    await mind.forget([receipt.id])
    assert {hit.memory.content for hit in (await mind.recall("apple pie")).hits} == {"apple juice"}
