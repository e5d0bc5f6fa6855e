"""Tell from a cue what it asks about, by the words that ask: in English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from recollect.models.recall import Asks

_TOLD = r"(?:has|have|had|does|do|did|are|were|was|is|can|could|would|will|might|help|make|made)"
PATTERNS: Mapping[Asks, re.Pattern[str]] = MappingProxyType(
    {
        Asks.TIME: re.compile(
            rf"\bwhen {_TOLD}\b|\b(?:what|which) (?:year|month|day|date|time)\b|\bhow long\b|^\s*when\b"
            r"|什么时候|何时|哪一?[天年月日]|几[月号点]|多久|什么时间|日期",
            re.IGNORECASE,
        ),
        Asks.PERSON: re.compile(r"\bwho(?:m|se)?\b|谁|哪位|何人", re.IGNORECASE),
        Asks.NUMBER: re.compile(
            r"\bhow (?:many|much|often)\b|多少|几[个次天年岁位本件张条家种]|数量|频率", re.IGNORECASE
        ),
        Asks.OVERVIEW: re.compile(
            rf"\b(?:what|which)(?: (?:kinds?|types?|sorts?) of)?(?: \w+)? \w+s {_TOLD}\b|\bhow (?:many|often)\b"
            r"|\b(?:list|all|both|overall|summar\w+|overview|activities|events|things|ways|places|hobbies)\b"
            r"|哪些|所有|全部|总结|概括|整体|一共|分别",
            re.IGNORECASE,
        ),
        Asks.LATEST: re.compile(
            r"\b(?:latest|newest|most recent(?:ly)?|recently|lately|currently|these days|right now)\b"
            r"|最近(?![的]?[0-9一二两三四五六七八九十几])|最新|目前|如今|现在|近来",
            re.IGNORECASE,
        ),
    }
)


def find_asked(text: str) -> frozenset[Asks]:
    """Tell what a cue asks about."""
    return frozenset(asks for asks, pattern in PATTERNS.items() if pattern.search(text))
