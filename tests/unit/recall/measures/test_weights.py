"""The table of weights that people read is the table that ranks."""

from __future__ import annotations

import re
from pathlib import Path

from recollect.core.recall.weights import CHOSEN, DEFAULT_CHANNELS, EVERY_CHANNEL, LEARNED, NAMES, default_weights
from recollect.models.recall import Script

PAGE = Path(__file__).parents[4] / "docs" / "explanation" / "recall.md"
ROW = re.compile(r"^\| `(\w+)` \| .+ \| (-?[\d.]+)(?: \((-?[\d.]+)\))? \|$", re.MULTILINE)


def test_the_page_has_every_weight():
    found = ROW.findall(PAGE.read_text(encoding="utf-8"))
    rows = {name: (float(words), float(chinese or words)) for name, words, chinese in found}
    assert len(found) == len(rows)
    assert rows == {name: (default_weights(Script.WORDS)[name], default_weights(Script.CJK)[name]) for name in NAMES}


def test_both_tables_weigh_the_same_things_and_every_channel_is_weighed():
    assert LEARNED[Script.WORDS].keys() == LEARNED[Script.CJK].keys()
    assert LEARNED[Script.WORDS].keys().isdisjoint(CHOSEN)
    assert NAMES.issuperset(EVERY_CHANNEL) and set(EVERY_CHANNEL).issuperset(DEFAULT_CHANNELS)
