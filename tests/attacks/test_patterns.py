"""No text makes reading it expensive: analyser, dates, names and tags take time in proportion to its length."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from recollect.core.conversations.block import fold
from recollect.core.dates.find import find_periods
from recollect.core.knowledge.transcripts import find_names
from recollect.core.text.answers import tidy
from recollect.core.text.tags import escape_angle_brackets
from recollect.core.text.terms import analyse
from support.measuring.sizes import Sizes

CHARACTERS = Sizes("characters of each pattern", ci=2_000, long=32_000)
MOST_SECONDS = 5.0
"""Of a processor, not of a clock. What is linear takes a tenth of it, what is not a multiple."""
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PATTERNS = (
    *("a", "[", "{ ", "<", "<!", "< /", "<m", "</", "‹", " ", "\n", "a'", "a-", "a.", "Mr. ", "1", "2026-01-", "1/"),
    *("monday ", "the first week of ", "january february ", "from 1 to ", "张伟", "二零二六年", "一", "第三个星期"),
    *("a -> ", "->", "Aa Bb ", "AaBb", '"', "a\u0301", "\u0301", "👨\u200d👩\u200d👧", "\u202e", "a张", "2026 "),
    *("last monday and ", "between monday and ", "…", "when ", "twenty one ", "two days ago ", "3 days before "),
    *("x" * 64 + " ", "/", "#", "กขค", "가나", "@", "_", "\t", "12:30 ", "christmas ", "the day before ", "上个月的"),
    *("大前天", "从一月到", "<\u200b", "＜ｍ", "\U000e003c", "<memorie", "<mem ories "),
)
READERS = {
    "analyser": analyse,
    "dates": lambda text: find_periods(text, NOW, UTC),
    "names": lambda text: find_names([text]),
    "tags": fold,
    "notes": lambda text: escape_angle_brackets(tidy(text, len(text))),
}


@pytest.mark.promise("No text makes reading it expensive", CHARACTERS, part="patterns")
@pytest.mark.parametrize("name", READERS)
def test_no_pattern_is_expensive(name, figure):
    spent = {}
    for pattern in PATTERNS:
        text = (pattern * CHARACTERS.now)[: CHARACTERS.now]
        started = time.thread_time()
        READERS[name](text)
        spent[pattern] = time.thread_time() - started
    slowest = max(spent, key=spent.get)
    assert spent[slowest] < MOST_SECONDS, slowest
    figure(f"{name}: {len(PATTERNS)} patterns, slowest {spent[slowest]:.2f} CPU-s ({slowest.strip()[:12]!r})")
