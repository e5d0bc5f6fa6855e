"""Positions as text: read as they were written, the newest of each server, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.service.positions import join_positions, read_positions, write_positions
from recollect.errors import InvalidInputError
from recollect.models.shards import Position

POSITIONS = st.builds(Position, st.integers(0, 32_767), st.integers(1, 2**32 - 1), st.integers(0, 2**64 - 1))


@given(st.lists(POSITIONS, max_size=20))
def test_what_is_written_is_read(positions):
    newest = join_positions({}, positions)
    assert read_positions(write_positions(newest)) == newest
    assert all(newest[each.shard] >= each for each in positions)


def test_a_later_timeline_is_newer_than_any_place_in_an_earlier_one():
    before, after = Position(1, 1, 2**40), Position(1, 2, 5)
    assert join_positions({1: before}, [after]) == {1: after}
    assert join_positions({1: after}, [before]) == {1: after}
    assert str(before) == "1.1.100/0"


@pytest.mark.parametrize("written", ["1", "0.1.0", "0.1.0/", "0.1.g/1", "0.1.0/1;0.1.0/2", "0.1.1234567890/1"])
def test_anything_else_is_refused(written):
    with pytest.raises(InvalidInputError):
        read_positions(written)


def test_nothing_is_no_position():
    assert read_positions("") == read_positions(" , ") == {}
    assert write_positions({}) == ""
