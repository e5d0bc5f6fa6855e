"""What a ranking was made from, written down and ranked again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.core.recall.columns import ARRAYS, EvidencePairs, RankingInput, to_candidates, to_ids, to_table
from recollect.core.recall.fusion import fuse
from recollect.core.recall.saved import (
    SavedRecallData,
    decode,
    encode,
    from_cue,
    is_same,
    list_memories,
    rank_again,
    to_cue,
)
from recollect.errors import InvalidInputError
from recollect.models.memories import Kind
from recollect.models.recall import (
    Candidate,
    CandidateOutcome,
    Cue,
    Factors,
    Features,
    Mode,
    Period,
    QueryAnalysis,
    QuestionType,
    SavedHit,
    Script,
    Status,
    StreamWeights,
)
from support.measuring.sizes import Sizes

EXAMPLES = Sizes("ranking_inputs", fast=10, ci=30, long=1_000)
IDS = [UUID(int=7 << 76 | number) for number in range(12)]
NOW = datetime(2026, 5, 3, 12, 30, 15, 123456, tzinfo=timezone(timedelta(hours=8)))
NAMES = ("text", "vector", "stream", "keyword", "graph", "topic", "date", "recent")
numbers = st.floats(allow_nan=False, allow_infinity=False, width=64)
words = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
some_words = st.lists(words, max_size=3).map(tuple)
factors = st.builds(Factors, *[st.floats(0, 1)] * 3, st.integers(0, 99))
candidates = st.builds(Candidate, st.sampled_from(IDS), numbers, st.none() | factors)
PREFERENCES = (
    "coverage",
    "surroundings",
    "session",
    "session_best",
    "speaker",
    "near_date",
    "latest",
    "diversity",
    "evidence",
)
# Two summers end and one begins within these days.
DAYS = st.integers(0, 24 * 450).map(lambda hours: datetime(2024, 9, 1, tzinfo=UTC) + timedelta(hours=hours / 2))
ZONES = st.sampled_from((UTC, ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York"), timezone(timedelta(hours=8))))


@st.composite
def ranking_inputs(draw):
    zone, width = draw(ZONES), draw(st.integers(0, 3))
    theirs, moments = draw(ZONES), DAYS
    terms = st.sets(st.integers(0, width - 1)).map(sorted).map(tuple) if width else st.just(())
    features = st.builds(
        Features,
        moments.map(lambda moment: moment.astimezone(theirs)),
        st.sampled_from(Kind),
        words,
        st.sampled_from(("one", "two", "")),
        st.floats(0, 9),
        st.none() | st.floats(-1, 1),
        terms,
        st.integers(0, 90),
        st.floats(1, 10, width=32),
        st.none() | moments,
        *[st.booleans()] * 6,
    )
    facets = st.builds(
        QueryAnalysis,
        st.sampled_from(Script),
        some_words,
        some_words,
        some_words,
        st.lists(periods(zone), max_size=2).map(tuple),
        st.frozensets(st.sampled_from(QuestionType)),
        st.booleans(),
        words,
    )
    tables = st.fixed_dictionaries(dict.fromkeys(IDS, features)).map(lambda some: to_table(some, width))
    known = draw(st.none() | tables)
    pairs = st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from(IDS)), max_size=5, unique=True)
    evidence = [] if known is None else draw(pairs)
    return RankingInput(
        draw(st.dictionaries(st.sampled_from(NAMES), st.lists(candidates, max_size=8).map(to_candidates))),
        known,
        draw(facets),
        draw(st.dictionaries(st.sampled_from(NAMES + PREFERENCES), st.floats(0, 10))),
        draw(st.integers(1, 12)),
        draw(st.tuples(*[st.floats(0, 9)] * width)),
        draw(st.sampled_from(["", "all-MiniLM-L6-v2@1"])),
        EvidencePairs(to_ids(each for each, _ in evidence), to_ids(each for _, each in evidence)),
    )


@st.composite
def periods(draw, zone):
    """Begin at some midnight of a zone, and end some days later by its clocks."""
    start = draw(DAYS).astimezone(zone).replace(hour=0)
    return Period(start, start + timedelta(days=draw(st.integers(1, 9))), draw(words))


def is_equal(one: RankingInput, other: RankingInput) -> bool:
    """Tell whether two inputs hold the same, array by array."""
    plain = [
        (
            {name: [*some] for name, some in each.candidates.items()},
            each.facets,
            each.weights,
            each.limit,
            each.rarities,
            [*zip(each.evidence.learned, each.evidence.sources, strict=True)],
        )
        for each in (one, other)
    ]
    if plain[0] != plain[1]:
        return False
    if one.features is None or other.features is None:
        return one.features is other.features
    names = (one.features.speaker_names, one.features.session_names)
    return names == (other.features.speaker_names, other.features.session_names) and all(
        np.array_equal(getattr(one.features, name), getattr(other.features, name), equal_nan=kind.kind == "f")
        for name, kind in ARRAYS.items()
    )


def keep(inputs: RankingInput, **changed) -> SavedRecallData:
    hits = tuple(SavedHit(each.id, each.score, each.channels, (), each.preferences) for each in fuse(inputs))
    usual = {"inputs": inputs, "hits": hits, "limit": inputs.limit}
    kept = SavedRecallData(IDS[0], NOW, Cue("x"), None, None, inputs, hits, inputs.limit, Status.OK, "", {}, {}, 0.0)
    return replace(kept, **usual | changed)


def rank_texts(scores: list[float], limit: int = 10) -> RankingInput:
    found = tuple(Candidate(memory_id, score) for memory_id, score in zip(IDS, scores, strict=False))
    known = to_table({memory_id: Features(NOW, Kind.EVENT) for memory_id in IDS}, 0)
    proposed = {"text": to_candidates(found), "graph": to_candidates(found[::-1][:2])}
    return RankingInput(proposed, known, QueryAnalysis(), {"text": 1.0, "graph": 0.0}, limit)


@pytest.mark.promise("What is kept of a recall is read back as it was", EXAMPLES)
@given(ranking_inputs())
@settings(max_examples=EXAMPLES.now)
def test_a_ranking_input_is_read_back_as_it_was_and_ranked_as_it_was(inputs):
    back = decode(encode(inputs))
    assert is_equal(back, inputs)
    assert fuse(back) == fuse(inputs)


@given(ranking_inputs())
@settings(max_examples=EXAMPLES.now)
def test_a_replay_with_the_same_weights_is_the_recall(inputs):
    kept = keep(inputs)
    placings = rank_again(replace(kept, inputs=decode(encode(inputs))))
    assert is_same(kept, placings)
    assert [each.before for each in placings] == [each.rank for each in placings] == [*range(1, len(kept.hits) + 1)]


@given(ranking_inputs())
@settings(max_examples=EXAMPLES.now)
def test_the_whole_of_the_candidates_is_told_each_once(inputs):
    whole = rank_again(keep(inputs), whole=True)
    ids = [each.id for each in whole]
    assert len(ids) == len({*ids})
    assert {*ids} <= {*list_memories(inputs, ())}
    assert whole[: len(fuse(inputs))] == rank_again(keep(inputs))
    assert {each.fate for each in whole[len(fuse(inputs)) :]} <= {CandidateOutcome.BELOW}


def test_a_day_of_25_hours_is_read_back_as_a_day():
    berlin = ZoneInfo("Europe/Berlin")
    start = datetime(2025, 10, 26, tzinfo=berlin)
    period = Period(start, start + timedelta(days=1), "Sunday")
    inputs = replace(rank_texts([1.0]), facets=QueryAnalysis(periods=(period,)))
    [back] = decode(encode(inputs)).facets.periods
    assert back.end - back.start == timedelta(days=1)
    assert back.end.astimezone(UTC) - back.start.astimezone(UTC) == timedelta(hours=25)


def test_moments_are_read_back_as_the_same_moments_in_whichever_zone():
    feature = Features(NOW, Kind.FACT, "Li", "talk", 3)
    asked = QueryAnalysis(periods=(Period(NOW, NOW + timedelta(days=1), "today"),))
    found = to_candidates([Candidate(IDS[0], 0.1 + 0.2)])
    back = decode(encode(RankingInput({"text": found}, to_table({IDS[0]: feature}, 0), asked, {"text": 1 / 3}, 5)))
    assert back.facets == asked
    assert back.features.get_features(IDS[0]) == feature


def test_what_has_no_number_is_not_kept_and_a_foreign_version_is_refused():
    inputs = rank_texts([1.0, float("nan"), float("inf"), 0.5])
    assert [each.id for each in decode(encode(inputs)).candidates["text"]] == [IDS[0], IDS[3]]
    with pytest.raises(InvalidInputError, match="another version"):
        decode(b"9" + encode(inputs)[1:])


def test_other_weights_rank_otherwise_and_tell_where_a_hit_stood():
    kept = keep(rank_texts([3.0, 2.0, 1.0]))
    # Of the two that the other channel proposes, the weaker one of text comes first there.
    turned = rank_again(kept, {"text": 0.0, "graph": 1.0})
    assert not is_same(kept, turned)
    assert {each.id for each in turned} == {IDS[1], IDS[2]}
    assert {each.id: each.before for each in turned} == {IDS[1]: 2, IDS[2]: 3}


def test_a_duplicate_stays_one_whichever_of_the_group_comes_first():
    inputs = rank_texts([3.0, 2.0, 1.0])
    best, _, last = (SavedHit(each.id, each.score, each.channels, (), each.preferences) for each in fuse(inputs))
    kept = keep(inputs, hits=(replace(best, duplicates=(IDS[1],)), last))
    again = rank_again(kept, whole=True)
    assert is_same(kept, again)
    assert [(each.id, each.fate, each.rank) for each in again] == [
        (IDS[0], CandidateOutcome.HIT, 1),
        (IDS[2], CandidateOutcome.HIT, 2),
        (IDS[1], CandidateOutcome.DUPLICATE, 0),
    ]
    assert again[0].duplicates == (IDS[1],)
    turned = rank_again(kept, {"text": 0.0, "graph": 1.0})
    assert [each.duplicates for each in turned if each.id == IDS[1]] == [(IDS[0],)]


def test_what_was_dropped_stays_dropped_and_what_did_not_fit_is_below():
    inputs = rank_texts([4.0, 3.0, 2.0, 1.0])
    hits = tuple(SavedHit(each.id, each.score, each.channels, (), each.preferences) for each in fuse(inputs))
    judged = keep(inputs, hits=(hits[0], hits[2]), limit=10)
    assert [each.fate for each in rank_again(judged, whole=True)] == ["hit", "hit", "dropped", "dropped"]
    assert is_same(judged, rank_again(judged))
    cut = keep(inputs, hits=(hits[0], hits[2]), limit=2)
    assert [(each.id, each.fate) for each in rank_again(cut, whole=True)] == [
        (IDS[0], CandidateOutcome.HIT),
        (IDS[2], CandidateOutcome.HIT),
        (IDS[1], CandidateOutcome.DROPPED),
        (IDS[3], CandidateOutcome.BELOW),
    ]


def test_what_the_judge_dropped_leaves_its_place_to_nobody():
    inputs = rank_texts([5.0, 4.0, 3.0, 2.0, 1.0])
    hits = tuple(SavedHit(each.id, each.score, each.channels) for each in fuse(inputs))
    judged = keep(inputs, hits=(hits[1], replace(hits[2], duplicates=(IDS[3],))), limit=3)
    again = rank_again(judged, whole=True)
    assert is_same(judged, again)
    fates = {each.id: each.fate for each in again}
    assert [fates[each] for each in IDS[:5]] == ["dropped", "hit", "hit", "duplicate", "below"]
    assert rank_again(judged) == again[:2]


def test_one_bit_of_a_score_is_noticed():
    kept = keep(rank_texts([3.0, 2.0]))
    nudged = replace(kept.hits[0], score=float(np.nextafter(kept.hits[0].score, 0)))
    assert not is_same(replace(kept, hits=(nudged, *kept.hits[1:])), rank_again(kept))


def test_a_cue_is_read_back_without_its_embedding():
    cue = Cue(
        "谁在上周三来过？",
        [0.5, 0.25],
        limit=3,
        kinds=(Kind.FACT,),
        as_of=NOW,
        channels=("text",),
        weighing=StreamWeights(Mode.PAPER, gains=(1.0, 2.0, 3.0)),
        zone="Asia/Shanghai",
        since=NOW,
        topics=("a->b",),
        weights={"text": 0.1},
        keep=True,
    )
    assert to_cue(from_cue(cue)) == replace(cue, embedding=None)
    assert from_cue(Cue("x")) == {"text": "x"}
