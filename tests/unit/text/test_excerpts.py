"""A long run is shown by its beginning, middle and end, as the original does it; what is left out is counted right."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from recollect.core.text.similarity import MAX_EXACT_TOKENS, excerpt


def split(run, *, compact=False):
    parts = excerpt(run, compact=compact)
    return [each for each in parts if isinstance(each, str)], [each for each in parts if isinstance(each, int)]


def test_the_original_shows_the_same(shared):
    cases = json.loads((shared / "golden" / "golden_topic_recall.json").read_text())["excerpt_rule"]
    assert len(cases) >= 9
    for case in cases:
        run = [str(number) for number in range(case["messages"])]
        shown, left_out = split(run)
        assert ([int(each) for each in shown], left_out) == (case["full"]["shown"], case["full"]["omitted"])
        shown, left_out = split(run, compact=True)
        assert [int(each) for each in shown] == case["compact"]["shown"]
        # There the two of the beginning are left out and not counted.
        wanted = case["compact"]["omitted"]
        assert left_out == ([wanted[0] + 2, *wanted[1:]] if wanted else [])


@given(st.integers(0, 300), st.booleans())
def test_what_is_shown_and_what_is_left_out_add_up(count, compact):
    shown, left_out = split([str(number) for number in range(count)], compact=compact)
    assert len(shown) + sum(left_out) == count
    assert all(number > 0 for number in left_out)
    assert shown == sorted(shown, key=int)
    assert len(shown) <= MAX_EXACT_TOKENS
