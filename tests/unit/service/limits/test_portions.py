"""Portions keep the order, lose nothing, and stay within their bounds."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from recollect.core.service.batches import divide

BOUND = st.integers(1, 20)


@given(st.lists(st.integers(0, 12)), BOUND, BOUND)
def test_nothing_is_lost_and_nothing_is_too_much(sizes, most, largest):
    portions = list(divide(sizes, int, most, largest))
    assert [size for portion in portions for size in portion] == sizes
    for portion in portions:
        assert 1 <= len(portion) <= most
        assert sum(portion) <= largest or len(portion) == 1


@given(st.lists(st.integers(0, 12)), BOUND, BOUND)
def test_no_portion_ends_early(sizes, most, largest):
    portions = list(divide(sizes, int, most, largest))
    for portion, following in pairwise(portions):
        assert len(portion) == most or sum(portion) + following[0] > largest


def test_nothing_is_no_portion():
    assert list(divide([], len, 3, 3)) == []
