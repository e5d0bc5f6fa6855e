"""What the command line shows of a score adds up to the score."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from unittest.mock import Mock
from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from recollect.doors.cli.recall import MIN_SHOWN_SHARE, split_score, to_table
from recollect.models.memories import Memory
from recollect.models.recall import ChannelScore, Hit, RecallResult

NAMES = st.text("abcdefgh", min_size=1, max_size=4)
SHARES = st.dictionaries(NAMES, st.floats(-1, 1, allow_nan=False), max_size=12)


def make_hit(channels, preferences):
    scores = {f"c{name}": ChannelScore(1.0, share) for name, share in channels.items()}
    memory = Mock(Memory, id=uuid4(), content="x", occurred_at=datetime(2026, 1, 31, tzinfo=UTC))
    return Hit(memory, sum([*channels.values(), *preferences.values()]), scores, (), preferences)


@given(SHARES, SHARES)
def test_the_shares_that_are_shown_add_up_to_the_score_that_is_shown(channels, preferences):
    hit = make_hit(channels, preferences)
    table = to_table(RecallResult((hit,), {}))
    [score], [told] = (list(table.columns[place].cells) for place in (1, 4))
    why = told.partition("[dim]")[2].removesuffix("[/dim]")
    assert sum(map(Decimal, why.split()[1::2])) == Decimal(score)
    whole = {f"c{name}": share for name, share in channels.items()} | preferences
    large = {name for name, share in whole.items() if abs(share) >= MIN_SHOWN_SHARE}
    assert set(split_score(hit)) - {"other"} == large - {"other"}
