"""Facts in two times: what was believed stays believed of then, and no order of arrival changes what is true."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise, permutations
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.knowledge.facts import (
    Amendment,
    add_version,
    assume_start,
    believed_at,
    complete,
    identify,
    overlap,
    place,
    recognise,
    valid_at,
)
from recollect.errors import InvalidInputError
from recollect.models.knowledge import Fact, ValidTime

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = st.integers(0, 12)


def moment(day: int | None) -> datetime | None:
    return None if day is None else EPOCH + timedelta(days=day)


def span(start: int | None = None, end: int | None = None) -> ValidTime:
    return ValidTime(moment(start), moment(end))


def fact(number: int, when: ValidTime, created: int = 0, **changes: object) -> Fact:
    base = Fact(UUID(int=number), "Ann", "lives in", f"city {number}", "Ann lives there", when, moment(created))
    return replace(base, **changes)


@st.composite
def spans(draw) -> ValidTime:
    start = draw(st.none() | DAYS)
    length = draw(st.none() | st.integers(1, 9))
    if start is None:
        return span(None, length)
    return span(start, None if length is None else start + length)


class Book:
    """All versions ever written, amended as the store would."""

    def __init__(self) -> None:
        self.versions: list[Fact] = []

    def write(self, amendment: Amendment) -> None:
        superseded = {(old.id, old.version): old for old in amendment.superseded}
        self.versions = [superseded.get((each.id, each.version), each) for each in self.versions]
        self.versions += amendment.added

    def current(self) -> dict[UUID, ValidTime]:
        return {each.id: each.span for each in believed_at(self.versions)}


def seen_from(versions: list[Fact], as_of: datetime) -> set[tuple]:
    """Tell what was believed at a moment, without what became of it later."""
    return {(each.id, each.version, each.span, each.created_at) for each in believed_at(versions, as_of)}


@given(st.lists(st.tuples(spans(), st.integers(0, 3), st.sets(st.integers(0, 7))), max_size=8))
def test_what_was_believed_at_any_moment_never_changes_afterwards(arrivals):
    book, now = Book(), 0
    remembered: dict[datetime, set[tuple]] = {}
    for number, (when, later, contradicts) in enumerate(arrivals):
        now += later
        for at in [moment(now) - timedelta(hours=1), *(moment(day) for day in range(now))]:
            remembered.setdefault(at, seen_from(book.versions, at))
        against = [each for each in believed_at(book.versions) if each.id.int in contradicts]
        book.write(add_version(fact(number, when), against, moment(now)))
        for at, then in remembered.items():
            assert seen_from(book.versions, at) == then


@given(st.lists(st.tuples(spans(), st.integers(0, 2)), max_size=8))
def test_the_times_of_belief_of_one_fact_follow_each_other(arrivals):
    book, now = Book(), 0
    for number, (when, later) in enumerate(arrivals):
        now += later
        book.write(add_version(fact(number, when), believed_at(book.versions), moment(now)))
    for number in range(len(arrivals)):
        lineage = sorted((each for each in book.versions if each.id.int == number), key=lambda each: each.version)
        assert [each.version for each in lineage] == list(range(1, len(lineage) + 1))
        for earlier, next_one in pairwise(lineage):
            assert earlier.created_at <= earlier.superseded_at == next_one.created_at
        assert lineage[-1].superseded_at is None


@given(st.lists(spans(), max_size=4))
def test_whatever_the_order_of_arrival_each_fact_ends_where_it_must(stated):
    starts = [each.valid_at for each in stated if each.valid_at is not None]
    expected = {}
    for number, each in enumerate(stated):
        later = [start for start in starts if each.valid_at is not None and start > each.valid_at]
        ends = later + ([each.invalid_at] if each.invalid_at is not None else [])
        expected[UUID(int=number)] = ValidTime(each.valid_at, min(ends, default=None))
    for order in permutations(range(len(stated))):
        book = Book()
        for now, number in enumerate(order):
            book.write(add_version(fact(number, stated[number]), believed_at(book.versions), moment(now)))
        assert book.current() == expected


def test_the_order_matters_where_a_contradiction_is_noticed_from_one_side_only():
    first, second = Book(), Book()
    first.write(add_version(fact(1, span(1)), [], moment(0)))
    first.write(add_version(fact(2, span(5)), believed_at(first.versions), moment(1)))
    second.write(add_version(fact(2, span(5)), [], moment(0)))
    second.write(add_version(fact(1, span(1)), [], moment(1)))
    assert first.current()[UUID(int=1)] == span(1, 5)
    assert second.current()[UUID(int=1)] == span(1)


def test_a_stated_end_gives_way_to_an_earlier_contradiction_in_either_order():
    assert place(span(5, 12), [fact(1, span(8))]).span == span(5, 8)
    [closing] = place(span(8), [fact(1, span(5, 12))]).closings
    assert closing.invalid_at == moment(8)


def test_only_what_is_believed_is_closed_and_only_once():
    old = fact(1, span(1), superseded_at=moment(3))
    new = fact(1, span(1, 9), created=3, version=2)
    assert place(span(4), [old]).closings == ()
    assert [closing.fact for closing in place(span(4), [old, new, new]).closings] == [new]


def test_a_clock_that_went_back_lets_no_version_end_before_it_began():
    amendment = add_version(fact(2, span(4)), [fact(1, span(1), created=8)], moment(6))
    assert {each.superseded_at for each in amendment.superseded} == {moment(8)}
    assert {each.created_at for each in amendment.added} == {moment(8)}


@pytest.mark.parametrize("wrong", [span(5, 5), span(5, 4)])
def test_a_span_that_is_never_true_is_refused(wrong):
    with pytest.raises(InvalidInputError, match="invalid_at must be after valid_at"):
        place(wrong, [])


def test_the_same_fact_is_recognised_however_it_is_written():
    known = fact(1, span(1), subject="阿信", predicate="works_at", object="星光科技")
    again = fact(2, span(3), subject=" 阿信", predicate="works at", object="「星光科技」")
    assert recognise(again, [fact(9, span(1)), known]) is known
    assert recognise(replace(again, predicate="left"), [known]) is None
    assert recognise(again, [replace(known, superseded_at=moment(2))]) is None


def test_ends_with_ids_are_the_same_by_their_ids_alone():
    one, other = UUID(int=1), UUID(int=2)
    assert identify(one, "Knows", other) == (one, "knows", other)
    assert identify(one, "knows", "Bob") != identify(one, "knows", other)


def test_what_was_true_before_and_is_so_again_is_another_fact():
    known = fact(1, span(1, 3))
    assert recognise(replace(known, span=span(3)), [known]) is None
    assert recognise(replace(known, span=span(2)), [known]) is known


def test_a_fact_stated_again_adds_a_version_only_where_a_date_was_unknown():
    assert complete(fact(1, span(1)), span(4), moment(9)) is None
    assert complete(fact(1, span(1, 5)), span(1, 7), moment(9)) is None
    assert complete(fact(1, span(6)), span(None, 4), moment(9)) is None
    over = complete(fact(1, span(1)), span(None, 4), moment(9))
    assert over == Amendment((fact(1, span(1), superseded_at=moment(9)),), (fact(1, span(1, 4), created=9, version=2),))
    begun = complete(fact(1, span(None, 4)), span(2), moment(9))
    assert begun is not None
    assert begun.added[0].span == span(2, 4)


def test_what_is_said_without_a_date_is_true_since_it_is_said():
    assert assume_start(span(), moment(5)) == span(5)
    assert assume_start(span(None, 9), moment(5)) == span(5, 9)
    assert assume_start(span(2), moment(5)) == span(2)
    assert assume_start(span(None, 5), moment(5)) == span(None, 5)


@given(spans(), spans())
def test_spans_overlap_exactly_where_they_share_a_moment(one, other):
    hours = [moment(0) + timedelta(hours=12 * step) for step in range(-3, 60)]
    shared = any(valid_at([fact(1, one)], at) and valid_at([fact(2, other)], at) for at in hours)
    assert overlap(one, other) == overlap(other, one) == shared


def test_spans_are_half_open_on_both_axes():
    version = fact(1, span(2, 4), created=5, superseded_at=moment(7))
    assert [bool(valid_at([version], moment(day))) for day in (1, 2, 3, 4)] == [False, True, True, False]
    assert [bool(believed_at([version], moment(day))) for day in (4, 5, 6, 7)] == [False, True, True, False]
    assert believed_at([version]) == []
