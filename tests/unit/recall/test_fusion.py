"""Fusion is a weighted sum that explains itself and does not depend on the order of what it is given."""

from __future__ import annotations

import math
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.recall import fusion
from recollect.core.recall.columns import RankingInput, to_candidates
from recollect.core.recall.fusion import FLOORS, ScaleFloor
from recollect.core.recall.weights import default_weights
from recollect.models.recall import Candidate, ChannelScore, QueryAnalysis, Script

EVEN = {"text": 0.5, "vector": 0.5}


def fuse(proposals, weights, limit):
    """Rank what channels propose, where nothing else is known of it."""
    return fusion.fuse(RankingInput(in_columns(proposals), None, QueryAnalysis(), weights, limit))


def in_columns(proposals):
    return {name: to_candidates(some) for name, some in proposals.items()}


def join(own, lent, most):
    joined = fusion.join(in_columns(own), in_columns(lent), most)
    return {name: [*some] for name, some in joined.items()}


def memory(number: int) -> UUID:
    return UUID(int=number)


def candidates(*scores: tuple[int, float]) -> list[Candidate]:
    return [Candidate(memory(number), score) for number, score in scores]


def order(proposals, weights, limit=100) -> list[int]:
    return [hit.id.int for hit in fuse(proposals, weights, limit)]


# Whole numbers keep the arithmetic of the properties exact enough to compare ranks by.
channel = st.lists(
    st.builds(
        lambda number, score: Candidate(memory(number), float(score)),
        st.integers(1, 12),
        st.integers(-20, 50),
    ),
    unique_by=lambda candidate: candidate.id,
    max_size=12,
)
proposed = st.fixed_dictionaries({"text": channel, "vector": channel, "keyword": channel})
weighed = st.fixed_dictionaries(
    dict.fromkeys(("text", "vector", "keyword"), st.sampled_from((0.0, 0.25, 0.5, 1.0, 3.0)))
)


def test_text_is_scaled_by_its_best_and_vector_between_its_ends():
    hits = fuse({"text": candidates((1, 8.0), (2, 4.0)), "vector": candidates((2, 0.6), (3, 0.3), (1, 0.45))}, EVEN, 9)
    assert {hit.id.int: hit.score for hit in hits} == pytest.approx({1: 0.5 + 0.25, 2: 0.25 + 0.5, 3: 0.0})


def test_shares_say_where_the_score_came_from():
    (hit, _) = fuse({"text": candidates((1, 8.0), (2, 4.0)), "vector": candidates((1, 0.9))}, EVEN, 9)
    assert hit.channels == {"text": ChannelScore(8.0, 0.5), "vector": ChannelScore(0.9, 0.5)}
    assert hit.score == 1.0


def test_absence_from_a_channel_costs_its_share():
    hits = fuse({"text": candidates((1, 8.0), (2, 8.0)), "vector": candidates((1, 0.9))}, EVEN, 9)
    assert [(hit.id.int, hit.score) for hit in hits] == [(1, 1.0), (2, 0.5)]
    assert set(hits[1].channels) == {"text"}


def test_weights_are_shared_out_among_channels_that_found_something():
    hits = fuse({"text": candidates((1, 8.0)), "vector": []}, {"text": 0.2, "vector": 0.8}, 9)
    assert hits[0].score == 1.0


def test_unweighted_channels_add_nothing():
    proposals = {"text": candidates((1, 8.0)), "vector": candidates((2, 0.9)), "topic": candidates((3, 1.0))}
    (hit,) = fuse(proposals, {"text": 0.5, "vector": 0.0}, 9)
    assert (hit.id.int, hit.score, set(hit.channels)) == (1, 1.0, {"text"})


def test_equal_vectors_all_count_in_full():
    assert {hit.score for hit in fuse({"vector": candidates((1, 0.4), (2, 0.4))}, {"vector": 1.0}, 9)} == {1.0}


def test_equals_come_newest_first():
    equals = candidates((1, 2.0), (3, 2.0), (2, 2.0))
    assert order({"text": equals, "vector": equals}, EVEN) == [3, 2, 1]


def test_equals_of_a_single_channel_stay_in_its_order():
    assert order({"text": candidates((1, 2.0), (3, 2.0), (2, 2.0))}, EVEN) == [1, 3, 2]


def test_a_channel_of_zeros_or_less_is_heard_but_gives_nothing():
    hits = fuse({"text": candidates((1, 0.0), (2, -3.0))}, EVEN, 9)
    assert [(hit.id.int, hit.score) for hit in hits] == [(1, 0.0), (2, 0.0)]


def test_a_memory_proposed_twice_keeps_its_best():
    assert fuse({"text": candidates((1, 2.0), (1, 8.0), (2, 8.0), (1, 1.0))}, EVEN, 9)[1].score == 1.0


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_scores_that_are_no_numbers_are_left_out(broken):
    assert order({"text": candidates((1, 2.0), (2, broken)), "vector": candidates((3, broken))}, EVEN) == [1]


@pytest.mark.parametrize("limit", [0, -1])
def test_no_room_no_hits(limit):
    assert fuse({"text": candidates((1, 1.0))}, EVEN, limit) == []


def test_nothing_proposed_nothing_found():
    assert fuse({}, EVEN, 9) == []
    assert fuse({"text": candidates((1, 1.0))}, {}, 9) == []


def test_unknown_channels_are_scaled_from_zero():
    assert "stream" not in FLOORS
    assert FLOORS["vector"] is ScaleFloor.LOWEST
    assert fuse({"stream": candidates((1, 4.0), (2, 1.0))}, {"stream": 2.0}, 9)[1].score == 0.25


def test_huge_scores_do_not_overflow():
    hits = fuse({"vector": candidates((1, 1e308), (2, -1e308), (3, 0.0))}, {"vector": 1.0}, 9)
    assert [hit.score for hit in hits] == [1.0, 0.5, 0.0]


@pytest.mark.parametrize("script", Script)
def test_every_channel_has_a_weight(script):
    assert all(default_weights(script)[name] > 0 for name in ("text", "vector", "stream", "graph", "topic", "date"))


@given(proposed, weighed, st.integers(0, 15), st.randoms(use_true_random=False))
def test_order_of_proposals_does_not_matter(proposals, weights, limit, random):
    names = list(proposals)
    random.shuffle(names)
    shuffled = {name: proposals[name] for name in names}
    hits, twins = fuse(proposals, weights, limit), fuse(shuffled, dict(reversed(weights.items())), limit)
    assert twins == hits
    assert [list(twin.channels) for twin in twins] == [list(hit.channels) for hit in hits]


@given(proposed, weighed, st.integers(0, 15))
def test_scores_are_bounded_sorted_and_explained(proposals, weights, limit):
    hits = fuse(proposals, weights, limit)
    named = {c.id for name, found in proposals.items() if weights[name] for c in found}
    assert len(hits) == min(limit, len(named))
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    for hit in hits:
        assert 0 <= hit.score <= 1
        assert hit.score == pytest.approx(sum(part.share for part in hit.channels.values()))
        for name, part in hit.channels.items():
            assert Candidate(hit.id, part.score) in proposals[name]


@given(proposed, weighed, st.integers(0, 15))
def test_a_smaller_limit_only_cuts(proposals, weights, limit):
    assert fuse(proposals, weights, limit) == fuse(proposals, weights, 100)[:limit]


@given(proposed, weighed, st.floats(0.125, 8))
def test_only_the_proportion_of_weights_matters(proposals, weights, factor):
    scaled = {name: weight * factor for name, weight in weights.items()}
    before = {hit.id: hit.score for hit in fuse(proposals, weights, 100)}
    after = {hit.id: hit.score for hit in fuse(proposals, scaled, 100)}
    assert after == pytest.approx(before)


@given(proposed, weighed, st.sampled_from(("text", "vector", "keyword")), st.integers(1, 40), st.data())
def test_a_better_score_never_ranks_lower(proposals, weights, name, gain, data):
    if not proposals[name]:
        return
    chosen = data.draw(st.sampled_from(proposals[name]))
    raised = [Candidate(c.id, c.score + gain) if c is chosen else c for c in proposals[name]]
    before, after = fuse(proposals, weights, 100), fuse(proposals | {name: raised}, weights, 100)
    rivals = {hit.id: hit.score for hit in after}
    mine = rivals.get(chosen.id, 0.0)
    passed = {hit.id for hit in before[: _place(before, chosen.id)]}
    overtaken_by = {key for key, score in rivals.items() if score > mine + 1e-9} - passed
    assert not overtaken_by


def _place(hits, wanted) -> int:
    """Count the hits ahead of a memory or level with it."""
    own = next((hit.score for hit in hits if hit.id == wanted), 0.0)
    return sum(hit.score > own - 1e-9 for hit in hits)


def test_what_is_lent_stands_among_a_channels_own_and_is_cut_with_them():
    own = {"vector": candidates((1, 0.9), (2, 0.5)), "text": candidates((1, 3.0)), "past": []}
    lent = {"vector": candidates((7, 0.7), (8, 0.1))}
    joined = join(own, lent, 3)
    assert joined == own | {"vector": candidates((1, 0.9), (7, 0.7), (2, 0.5))}


def test_a_unit_that_nobody_asked_for_counts_only_where_there_is_no_other():
    lent = {"vector": candidates((7, 0.7)), "text": candidates((7, 2.0))}
    assert join({"text": candidates((1, 3.0))}, lent, 10) == {"text": candidates((1, 3.0), (7, 2.0))}
    assert join({"past": []}, lent, 10) == {"past": [], **lent}
    assert join({"stream": candidates((1, 1.0))}, {}, 10) == {"stream": candidates((1, 1.0))}
