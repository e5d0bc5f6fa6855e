"""Parse a cue: its type of question, and its parts that each channel can search for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from recollect.core.dates.find import find_periods
from recollect.core.dates.periods import find_zone
from recollect.core.text.keywords import normalise_keyword
from recollect.core.text.terms import UNSPACED, analyse_cue, script_of
from recollect.core.text.variants import fold_characters, fold_variants
from recollect.core.text.words import QUESTION_WORDS, STOP_CHARACTERS, STOP_WORDS
from recollect.models.filters import Filter
from recollect.models.recall import Cue, Period, QueryAnalysis, QuestionType, Script, StreamWeights

_TOLD = r"(?:has|have|had|does|do|did|are|were|was|is|can|could|would|will|might|help|make|made)"
PATTERNS: Mapping[QuestionType, re.Pattern[str]] = MappingProxyType(
    {
        QuestionType.TIME: re.compile(
            rf"\bwhen {_TOLD}\b|\b(?:what|which) (?:year|month|day|date|time)\b|\bhow long\b|^\s*when\b"
            r"|什么时候|何时|哪一?[天年月日]|几[月号点]|多久|什么时间|日期",
            re.IGNORECASE,
        ),
        QuestionType.PERSON: re.compile(r"\bwho(?:m|se)?\b|谁|哪位|何人", re.IGNORECASE),
        QuestionType.NUMBER: re.compile(
            r"\bhow (?:many|much|often)\b|多少|几[个次天年岁位本件张条家种]|数量|频率", re.IGNORECASE
        ),
        QuestionType.OVERVIEW: re.compile(
            rf"\b(?:what|which)(?: (?:kinds?|types?|sorts?) of)?(?: \w+)? \w+s {_TOLD}\b|\bhow (?:many|often)\b"
            r"|\b(?:list|all|both|overall|summar\w+|overview|activities|events|things|ways|places|hobbies)\b"
            r"|哪些|所有|全部|总结|概括|整体|一共|分别",
            re.IGNORECASE,
        ),
        QuestionType.LATEST: re.compile(
            r"\b(?:latest|newest|most recent(?:ly)?|recently|lately|currently|these days|right now)\b"
            r"|最近(?![的]?[0-9一二两三四五六七八九十几])|最新|目前|如今|现在|近来",
            re.IGNORECASE,
        ),
    }
)
MAX_KEYWORDS = 64
MAX_KEYWORD_LENGTH = 4
"""In characters, for scripts without spaces; in other scripts, two words may be one keyword."""
MAX_QUESTION_LENGTH = 500
"""Maximum characters at the end of a cue to search for times and the type of question: the question is there."""
EARLIEST, LATEST = datetime(2, 1, 1, tzinfo=UTC), datetime(9998, 1, 1, tzinfo=UTC)
_RUN = re.compile(rf"[{UNSPACED}]+")
_WORD = re.compile(rf"[^\W{UNSPACED}]+(?:['’-][^\W{UNSPACED}]+)*")
_PIECE = r"[^\s>，。,.?？!！-]"
# Possessive, and started only at the start of a piece: otherwise a long text without blanks is tried from every letter.
_PATH = re.compile(rf"(?<!{_PIECE}){_PIECE}++(?:\s*+->\s*+{_PIECE}++)+")
_BROKEN_WORD = re.compile(rf"^[^\W{UNSPACED}]+")
_TOGETHER = re.compile(r"\b(?:both|and)\b|[和跟与同]|都", re.IGNORECASE)
_IDLE = STOP_WORDS | QUESTION_WORDS


def find_asked(text: str) -> frozenset[QuestionType]:
    """Return the types of question in a cue."""
    plain = fold_variants(text)
    return frozenset(asks for asks, pattern in PATTERNS.items() if pattern.search(plain))


@dataclass(frozen=True, slots=True)
class ParsedCue:
    """A parsed cue: the search terms of channels, and the filter."""

    terms: tuple[str, ...]
    script: Script
    vector: NDArray[np.float32] | None
    weighing: StreamWeights
    now: datetime
    """The time of the recall."""
    filter: Filter = field(default_factory=Filter)
    without_vector: str = ""
    """Why there is no vector, if there is none."""
    text: str = ""
    """The original text, for the channel that searches names in it."""
    facets: QueryAnalysis = field(default_factory=QueryAnalysis)
    blank: bool = False
    """Whether the cue has neither text nor vector, and lists all memories that the filter admits."""
    below: bool = False
    """Whether topics below the requested ones count as requested."""


def parse_cue(
    cue: Cue,
    vector: NDArray[np.float32] | None,
    without_vector: str = "",
    *,
    now: datetime,
    own: Sequence[str] = (),
) -> ParsedCue:
    """Parse a cue; without a vector, `without_vector` gives the reason.

    `own` are the names of the owners of the memory. All memories are about them, so their names do not help ranking.
    """
    script = script_of(cue.text)
    return ParsedCue(
        terms=tuple(find_terms(cue.text, own)),
        script=script,
        vector=vector,
        weighing=cue.weighing,
        now=now,
        without_vector=without_vector,
        filter=cue.filter,
        text=cue.text,
        facets=QueryAnalysis(
            script=script,
            keywords=find_keywords(cue.text),
            topics=cue.topics or tuple(find_paths(cue.text)),
            topics_first=bool(cue.topics) and not cue.topics_only,
            periods=find_times(cue, now),
            asks=find_asked(find_question(cue.text)),
        ),
        blank=cue.blank,
        below=cue.below,
    )


def find_terms(text: str, own: Sequence[str] = ()) -> list[str]:
    """List the search terms, without the names of the owners unless there are no other terms."""
    names = [re.escape(fold_variants(name)) for name in own if len(name) > 1]
    if not names:
        return analyse_cue(text)
    named = re.finditer(rf"(?<![^\W{UNSPACED}])(?:{'|'.join(names)})(?![^\W{UNSPACED}])", fold_variants(text))
    spans = [(0, 0), *(match.span() for match in named), (len(text), len(text))]
    others = " ".join(text[one[1] : other[0]] for one, other in pairwise(spans))
    return analyse_cue(others) or analyse_cue(text)


def find_times(cue: Cue, now: datetime) -> tuple[Period, ...]:
    """Return the period of the caller, or find periods in the text, in the cue's time zone."""
    if cue.since is not None or cue.until is not None:
        return (Period(cue.since or EARLIEST, cue.until or LATEST),)
    return tuple(find_periods(find_question(cue.text), cue.as_of or now, find_zone(cue.zone)))


def find_question(text: str) -> str:
    """Return the end of the last line: times before it belong to earlier text, not to the question."""
    line = text.rstrip().rsplit("\n", 1)[-1]
    if len(line) <= MAX_QUESTION_LENGTH:
        return line
    # Not within a word: the end of a number is another number.
    return _BROKEN_WORD.sub("", line[-MAX_QUESTION_LENGTH:], count=1)


def find_actor(text: str, names: Sequence[str]) -> str:
    """Return the first of several named people, in the order of the cue; empty if it names them together."""
    return names[0] if len(names) > 1 and not _TOGETHER.search(fold_variants(text)) else ""


def find_paths(text: str) -> list[str]:
    """Find topic paths in the text, such as `a->b`."""
    return _PATH.findall(text) if "->" in text else []


def find_keywords(text: str) -> tuple[str, ...]:
    """List possible keywords of memories: the distinctive words, and pairs of them."""
    found = dict[str, None]()
    for phrase in _phrases(fold_characters(text)):
        if len(found) == MAX_KEYWORDS:
            break
        if keyword := normalise_keyword(phrase):
            found[keyword] = None
    return tuple(found)


def _phrases(text: str) -> Iterator[str]:
    words = list(_WORD.finditer(text))
    distinctive = [word for word in words if word[0].casefold() not in _IDLE]
    yield from (word[0] for word in distinctive)
    yield from (
        text[one.start() : other.end()] for one, other in pairwise(distinctive) if other.start() - one.end() == 1
    )
    for run in _RUN.findall(text):
        for length in range(2, MAX_KEYWORD_LENGTH + 1):
            for start in range(len(run) - length + 1):
                piece = run[start : start + length]
                if STOP_CHARACTERS.isdisjoint(piece):
                    yield piece
