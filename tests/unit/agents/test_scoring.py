"""Scoring the stream is a weighted sum of three scaled factors that depends on nothing but what it is given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import combinations, pairwise
from operator import mul
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.agents.scoring import (
    MAX_RANK,
    NEGLIGIBLE,
    ResolvedWeighing,
    ScoringInput,
    horizon,
    resolve_weighing,
    scale,
    score,
)
from recollect.models.memories import Kind
from recollect.models.recall import ChannelStats, Mode, StreamWeights
from support.measuring.sizes import Sizes

LONG = Sizes("memories", ci=20_000, long=200_000)
START = datetime(2023, 2, 13, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
NOTHING = StreamWeights()
USUAL = resolve_weighing(NOTHING, NOTHING)
NEAR = {"rel": 1e-9, "abs": 1e-9}


def memory(number: int, minute: int = 0, importance: float = 5, similarity: float | None = 0.5, kind=Kind.EVENT):
    return ScoringInput(UUID(int=number), kind, START + minute * MINUTE, float(importance), similarity)


def order(considered: Sequence[ScoringInput], resolved: ResolvedWeighing = USUAL) -> list[int]:
    return [candidate.id.int for candidate in score(considered, resolved)[0]]


def scores(considered: Sequence[ScoringInput], resolved: ResolvedWeighing) -> dict[int, float]:
    return {candidate.id.int: candidate.score for candidate in score(considered, resolved)[0]}


def lists(similarity) -> st.SearchStrategy[list[ScoringInput]]:
    """Build memories with few distinct moments, so that ties are common."""
    one = st.builds(
        memory,
        number=st.integers(1, 99),
        minute=st.integers(0, 6).map(lambda step: step * 300),
        importance=st.integers(1, 10),
        similarity=similarity,
        kind=st.sampled_from((Kind.EVENT, Kind.THOUGHT, Kind.CHAT)),
    )
    return st.lists(one, unique_by=lambda built: built.id, max_size=14)


cosines = st.integers(-64, 64).map(lambda number: number / 64)
considered_lists = lists(st.none() | cosines)
some = considered_lists.filter(bool)
weights = st.sampled_from((0.0, 0.25, 0.5, 1.0, 3.0))
resolved_values = st.builds(
    ResolvedWeighing,
    st.sampled_from(Mode),
    st.tuples(weights, weights, weights),
    st.sampled_from((1e-300, 0.5, 0.99, 1.0)),
)
by_rank = resolved_values.filter(lambda resolved: resolved.mode is not Mode.PAPER)


def test_nothing_to_consider_gives_nothing():
    assert score([], USUAL) == ([], ChannelStats(0, None, None))


@pytest.mark.parametrize(("mode", "expected"), [(Mode.NEWEST, 2.75), (Mode.ORIGINAL, 2.75), (Mode.PAPER, 1.5)])
@pytest.mark.parametrize("similarity", [0.9, None])
def test_a_lone_memory_gets_half_of_every_factor(mode, expected, similarity):
    (alone,), tally = score([memory(1, similarity=similarity)], resolve_weighing(StreamWeights(mode), NOTHING))
    assert (alone.factors.recency, alone.factors.similarity, alone.factors.importance) == (0.5, 0.5, 0.5)
    assert (alone.score, alone.factors.rank, tally) == (expected, 1, ChannelStats(1, expected, expected))


def test_ranks_fade_from_the_front_by_the_decay():
    resolved = ResolvedWeighing(Mode.NEWEST, (1.0, 0.0, 0.0), 0.5)
    found, _ = score([memory(1, 10), memory(2, 20), memory(3, 30)], resolved)
    # 1/2, 1/4 and 1/8, stretched to reach from 1 to 0.
    assert [(hit.id.int, hit.factors.rank, hit.score) for hit in found] == [(3, 1, 1.0), (2, 2, 1 / 3), (1, 3, 0.0)]


def test_hours_fade_from_the_latest_access_by_the_decay():
    resolved = ResolvedWeighing(Mode.PAPER, (1.0, 0.0, 0.0), 0.5)
    found, _ = score([memory(1, 0), memory(2, 60), memory(3, 180)], resolved)
    # 1, 1/4 and 1/8 after 0, 2 and 3 hours, stretched to reach from 1 to 0.
    assert [(hit.id.int, hit.factors.rank, hit.score) for hit in found] == [
        (3, 1, 1.0),
        (2, 2, pytest.approx(1 / 7)),
        (1, 3, 0.0),
    ]


@pytest.mark.parametrize(("mode", "expected"), [("newest", [9, 4, 3, 8, 1]), ("original", [1, 4, 3, 8, 9])])
def test_of_equally_recent_ones_thoughts_come_last_and_the_newer_before_the_older(mode, expected):
    considered = [
        memory(1, minute=0),
        memory(3, minute=5),
        memory(8, minute=5, kind=Kind.THOUGHT),
        memory(4, minute=5, kind=Kind.CHAT),
        memory(9, minute=9, kind=Kind.THOUGHT),
    ]
    ranked = sorted(
        score(considered, resolve_weighing(StreamWeights(Mode(mode)), NOTHING))[0], key=lambda hit: hit.factors.rank
    )
    assert [hit.id.int for hit in ranked] == expected


@given(some, resolved_values)
def test_equal_scores_keep_the_order_of_recency(considered, resolved):
    for before, after in pairwise(score(considered, resolved)[0]):
        assert (-before.score, before.factors.rank) < (-after.score, after.factors.rank)


def test_without_a_vector_a_memory_is_as_relevant_as_the_least_relevant():
    found, _ = score([memory(1, similarity=0.9), memory(2, similarity=0.2), memory(3, similarity=None)], USUAL)
    assert {hit.id.int: hit.factors.similarity for hit in found} == {1: 1.0, 2: 0.0, 3: 0.0}


@given(some, resolved_values)
def test_without_any_vector_all_are_equally_relevant(considered, resolved):
    found, _ = score([replace(one, similarity=None) for one in considered], resolved)
    assert {hit.factors.similarity for hit in found} == {0.5}


@given(considered_lists.flatmap(lambda given: st.tuples(st.just(given), st.permutations(given))), resolved_values)
def test_order_of_what_is_given_does_not_matter(lists, resolved):
    assert score(lists[0], resolved) == score(lists[1], resolved)


@given(some, resolved_values)
def test_an_answer_is_whole_and_explains_itself(considered, resolved):
    found, tally = score(considered, resolved)
    assert {hit.id for hit in found} == {one.id for one in considered}
    assert sorted(hit.factors.rank for hit in found) == list(range(1, len(found) + 1))
    assert tally == ChannelStats(len(found), min(hit.score for hit in found), max(hit.score for hit in found))
    for hit in found:
        factors = hit.factors.recency, hit.factors.similarity, hit.factors.importance
        assert hit.score == pytest.approx(sum(map(mul, resolved.weights, factors)))
    for name in ("recency", "similarity", "importance"):
        values = {getattr(hit.factors, name) for hit in found}
        assert values == {0.5} or (min(values), max(values)) == (0.0, 1.0)


@given(some, by_rank)
def test_newest_is_original_with_time_running_backwards(considered, resolved):
    mirrored = [replace(one, last_accessed_at=START - (one.last_accessed_at - START)) for one in considered]
    newest = score(considered, replace(resolved, mode=Mode.NEWEST))
    assert newest == score(mirrored, replace(resolved, mode=Mode.ORIGINAL))


@given(some, resolved_values)
def test_what_is_better_in_everything_comes_first(considered, resolved):
    found, _ = score(considered, resolved)
    known = {one.id: one for one in considered}
    for before, after in combinations(found, 2):
        first, second = known[before.id], known[after.id]
        if None not in (first.similarity, second.similarity):
            behind = after.factors.rank < before.factors.rank
            assert not (behind and second.similarity >= first.similarity and second.importance >= first.importance)


@given(some, resolved_values, st.data())
def test_growing_more_relevant_or_important_never_costs_a_memory_anything(considered, resolved, data):
    chosen = data.draw(st.sampled_from(considered))
    similarity = None if chosen.similarity is None else data.draw(st.integers(int(chosen.similarity * 64), 64)) / 64
    importance = float(data.draw(st.integers(int(chosen.importance), 10)))
    grown = replace(chosen, similarity=similarity, importance=importance)
    before = scores(considered, resolved)
    after = scores([grown if one is chosen else one for one in considered], resolved)
    for other in before:
        gap = before[chosen.id.int] - before[other]
        assert after[chosen.id.int] - after[other] >= gap - 1e-9


@given(some, resolved_values, st.sampled_from((0.125, 2.0, 100.0)), st.integers(-50, 50), st.integers(-90, 90))
def test_neither_units_nor_the_hour_of_the_recall_matter(considered, resolved, unit, offset, days):
    moved = [
        replace(
            one,
            similarity=None if one.similarity is None else one.similarity * unit + offset,
            importance=one.importance * unit + offset,
            last_accessed_at=one.last_accessed_at + timedelta(days=days),
        )
        for one in considered
    ]
    assert scores(moved, resolved) == pytest.approx(scores(considered, resolved), **NEAR)


def rank_as_the_original(considered: Sequence[ScoringInput], decay: Fraction) -> dict[int, Fraction]:
    """Say in exact fractions what the code of Generative Agents does: two lists, newest first, sorted by access."""
    newest = sorted(considered, key=lambda one: one.id.int, reverse=True)
    listed = [one for one in newest if one.kind is Kind.EVENT] + [one for one in newest if one.kind is Kind.THOUGHT]
    listed.sort(key=lambda one: one.last_accessed_at)

    def stretch(values: list[Fraction]) -> list[Fraction]:
        least, most = min(values), max(values)
        return [(value - least) / (most - least) if most > least else Fraction(1, 2) for value in values]

    recency = stretch([decay**place for place, _ in enumerate(listed, start=1)])
    similarity = stretch([Fraction(one.similarity) for one in listed])
    importance = stretch([Fraction(one.importance) for one in listed])
    parts = zip(listed, recency, similarity, importance, strict=True)
    return {one.id.int: recent / 2 + 3 * relevant + 2 * important for one, recent, relevant, important in parts}


@given(lists(cosines).map(lambda given: [one for one in given if one.kind is not Kind.CHAT]).filter(bool))
def test_mode_original_reckons_as_the_original_code(considered):
    expected = rank_as_the_original(considered, Fraction(99, 100))
    found = scores(considered, resolve_weighing(StreamWeights(Mode.ORIGINAL), NOTHING))
    assert found == pytest.approx({number: float(exact) for number, exact in expected.items()}, **NEAR)


@pytest.mark.promise("A stream of any length is ranked in full: what has faded away keeps its order", LONG)
@pytest.mark.parametrize("mode", Mode)
def test_a_long_stream_fades_to_nothing_without_an_error(mode):
    resolved = ResolvedWeighing(mode, (1.0, 0.0, 0.0), 0.5)
    found, tally = score([memory(number, minute=number) for number in range(1, LONG.now + 1)], resolved)
    assert tally == ChannelStats(LONG.now, 0.0, 1.0)
    assert found[-1].factors.rank == LONG.now
    # Where recency has faded away, its order still decides.
    assert [hit.factors.rank for hit in found] == list(range(1, LONG.now + 1))


def test_the_smallest_decay_leaves_only_the_most_recent():
    found, _ = score([memory(1, 1), memory(2, 2), memory(3, 3)], ResolvedWeighing(Mode.NEWEST, (1.0, 0.0, 0.0), 5e-324))
    assert [(hit.id.int, hit.score) for hit in found] == [(3, 1.0), (2, 0.0), (1, 0.0)]


def test_values_are_stretched_between_their_ends():
    assert scale([2.0, 4.0, 3.0]) == [0.0, 1.0, 0.5]
    assert scale([7.0, 7.0]) == [0.5, 0.5]


@given(
    st.floats(0, 1_000_000, allow_subnormal=False),
    st.floats(1e-300, 0.9999),
    st.sampled_from((Mode.NEWEST, Mode.ORIGINAL)),
)
def test_the_horizon_is_the_first_rank_that_adds_too_little(weight, decay, mode):
    rank = horizon(ResolvedWeighing(mode, (weight, 1.0, 1.0), decay))
    weight = max(weight, 1.0)
    assert weight * decay ** (rank - 1) <= NEGLIGIBLE * (1 + 1e-9)
    assert rank == 1 or weight * decay ** (rank - 2) >= NEGLIGIBLE * (1 - 1e-9)


@given(some, by_rank)
def test_beyond_the_horizon_recency_adds_next_to_nothing(considered, resolved):
    for hit in score(considered, resolved)[0]:
        if hit.factors.rank >= horizon(resolved) and len(considered) > 1:
            assert resolved.weights[0] * hit.factors.recency <= NEGLIGIBLE


@pytest.mark.parametrize(
    ("resolved", "expected"),
    [
        (USUAL, 1376),
        (ResolvedWeighing(Mode.NEWEST, (0.0, 1.0, 1.0), 0.99), 1376),
        (ResolvedWeighing(Mode.NEWEST, (0.0, 1.0, 1.0), 1.0), MAX_RANK),
        (ResolvedWeighing(Mode.NEWEST, (1e-7, 1.0, 1.0), 0.5), 21),
        (ResolvedWeighing(Mode.ORIGINAL, (1.0, 1.0, 1.0), 0.5), 21),
        (ResolvedWeighing(Mode.NEWEST, (1.0, 1.0, 1.0), 1.0), MAX_RANK),
        (ResolvedWeighing(Mode.NEWEST, (1.0, 1.0, 1.0), math.nextafter(1.0, 0.0)), MAX_RANK),
        (ResolvedWeighing(Mode.PAPER, (1.0, 1.0, 1.0), 0.5), MAX_RANK),
    ],
)
def test_horizons(resolved, expected):
    assert horizon(resolved) == expected


def test_usual_weights_are_those_of_the_mode():
    usual = ResolvedWeighing(Mode.NEWEST, (0.5, 3.0, 2.0), 0.99)
    assert resolve_weighing(NOTHING, NOTHING) == usual
    assert resolve_weighing(StreamWeights(Mode.ORIGINAL), NOTHING) == replace(usual, mode=Mode.ORIGINAL)
    assert resolve_weighing(StreamWeights(Mode.PAPER), NOTHING) == ResolvedWeighing(Mode.PAPER, (1.0, 1.0, 1.0), 0.995)


def test_weights_are_multiplied_with_their_gains():
    asked = StreamWeights(recency=2.0, similarity=0.5, importance=0.25, gains=(10.0, 20.0, 40.0), decay=0.95)
    assert resolve_weighing(asked, NOTHING) == ResolvedWeighing(Mode.NEWEST, (20.0, 10.0, 10.0), 0.95)


def test_zero_is_a_weight_like_any_other():
    own = StreamWeights(recency=9.0, gains=(9.0, 9.0, 9.0))
    assert resolve_weighing(StreamWeights(recency=0.0, gains=(0.0, 1.0, 0.0)), own).weights == (0.0, 1.0, 0.0)


def test_what_a_call_leaves_open_is_as_the_agent_has_it():
    own = StreamWeights(Mode.PAPER, recency=4.0, similarity=5.0, decay=0.9)
    assert resolve_weighing(NOTHING, own) == ResolvedWeighing(Mode.PAPER, (4.0, 5.0, 1.0), 0.9)
    assert resolve_weighing(StreamWeights(Mode.PAPER, recency=7.0), own) == ResolvedWeighing(
        Mode.PAPER, (7.0, 5.0, 1.0), 0.9
    )


def test_what_an_agent_chose_for_one_mode_does_not_spill_into_another():
    assert resolve_weighing(StreamWeights(Mode.NEWEST), StreamWeights(Mode.PAPER, recency=4.0, decay=0.9)) == USUAL
    tuned = StreamWeights(recency=4.0, gains=(2.0, 1.0, 1.0), decay=0.9)
    assert resolve_weighing(StreamWeights(Mode.NEWEST), tuned) == ResolvedWeighing(Mode.NEWEST, (8.0, 1.0, 1.0), 0.9)
    assert resolve_weighing(StreamWeights(Mode.ORIGINAL), tuned) == resolve_weighing(
        StreamWeights(Mode.ORIGINAL), NOTHING
    )


numbers = st.none() | st.floats(0, 1_000)
weighings = st.builds(
    StreamWeights,
    mode=st.none() | st.sampled_from(Mode),
    recency=numbers,
    similarity=numbers,
    importance=numbers,
    gains=st.none() | st.tuples(*[st.floats(0, 1_000)] * 3),
    decay=st.none() | st.floats(0, 1, exclude_min=True),
)


@given(weighings, weighings)
def test_resolving_again_changes_nothing(asked, agent):
    resolved = resolve_weighing(asked, agent)
    again = StreamWeights(resolved.mode, *resolved.weights, gains=(1.0, 1.0, 1.0), decay=resolved.decay)
    assert resolve_weighing(again, agent) == resolve_weighing(NOTHING, again) == resolved
