"""Which derived memories go with what they were made from, and which are left in doubt."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from recollect.core.memories.erasure import Erasure, Restatement, decide, restate
from recollect.models.memories import Kind, Triple


def number(value):
    return UUID(int=value)


def numbered(purged, evidence):
    found = decide(
        {number(each) for each in purged},
        {number(memory): {number(source) for source in sources} for memory, sources in evidence.items()},
    )
    return tuple({each.int for each in part} for part in (found.gone, found.to_rederive, found.lost))


def test_what_rests_on_the_purged_alone_goes():
    assert numbered({1, 2}, {10: {1, 2}, 11: {2}}) == ({10, 11}, set(), set())


def test_what_rests_on_more_is_derived_again_and_loses_that_evidence():
    assert numbered({1}, {10: {1, 5}}) == (set(), {10}, {1})


def test_what_rests_on_what_goes_goes_at_any_depth():
    assert numbered({1}, {10: {1}, 11: {10}, 12: {11, 10}}) == ({10, 11, 12}, set(), set())


def test_what_rests_on_one_to_rederive_is_one_too_and_keeps_that_evidence():
    assert numbered({1}, {10: {1, 5}, 11: {10}, 12: {11, 6}}) == (set(), {10, 11, 12}, {1})


def test_a_derived_memory_that_goes_is_lost_evidence_too():
    assert numbered({1}, {10: {1}, 11: {10, 5}}) == ({10}, {11}, {10})


def test_what_does_not_rest_on_it_stays():
    assert numbered({1}, {10: {5}, 11: {10}}) == (set(), set(), set())
    assert decide((), {}) == Erasure(frozenset(), frozenset(), frozenset())


def test_circles_end():
    assert numbered({1}, {10: {11, 1}, 11: {10}}) == (set(), {10, 11}, {1})


# A memory names only earlier ones; the first ten were not derived.
SOURCES = st.sets(st.integers(0, 40), min_size=1, max_size=4)
GRAPHS = st.lists(SOURCES, max_size=30).map(
    lambda chosen: {10 + place: {source % (10 + place) for source in sources} for place, sources in enumerate(chosen)}
)


@given(GRAPHS, st.sets(st.integers(0, 9)))
def test_every_memory_is_sorted_by_what_is_left_of_it(evidence, purged):
    gone, to_rederive, lost = numbered(purged, evidence)
    out, doubtful = set(purged), set()
    for memory in sorted(evidence):  # in the order of writing, an independent and simpler way
        if evidence[memory] <= out:
            out.add(memory)
        elif evidence[memory] & (out | doubtful):
            doubtful.add(memory)
    assert (gone, to_rederive) == (out - purged, doubtful)
    assert lost == {source for memory in to_rederive for source in evidence[memory] if source in out}
    assert all(evidence[memory] - lost for memory in to_rederive), "something is left of every one of them"


def test_a_restatement_becomes_a_memory_of_the_same_kind():
    moment = datetime(2026, 5, 1, tzinfo=UTC)
    said = Restatement(text=" Ann\nlikes dogs ", subject="Ann", predicate="likes", object="dogs")
    memory = restate(said, Kind.SUMMARY, 7.0, moment)
    assert memory is not None
    assert (memory.content, memory.kind, memory.importance) == ("Ann likes dogs", Kind.SUMMARY, 7.0)
    assert (memory.triple, memory.occurred_at) == (Triple("Ann", "likes", "dogs"), moment)
    assert restate(Restatement(text=" \n", subject="", predicate="", object=""), Kind.THOUGHT, 5.0, moment) is None
