"""Format memories as one text between tags for a prompt: one line each, shorter if there is little room."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from uuid import UUID

from recollect.core.conversations.budget import ELLIPSIS
from recollect.core.conversations.prompt_texts import ENGLISH, Wording
from recollect.core.text.similarity import SourceText, excerpt
from recollect.core.text.tags import CONTROLS, escape_tags
from recollect.models.blocks import BlockLine, DetailLevel
from recollect.models.memories import Memory

OPENING, CLOSING = "<memories>", "</memories>"
PINNED_PART = 10
"""Pinned memories take at most 1 / PINNED_PART of a budget."""
SHARES = {DetailLevel.FULL: 0.75, DetailLevel.COMPACT: 0.9, DetailLevel.ABSTRACT: 1.0}
"""The part of the room for lines up to a level, if not all lines fit in full."""
WIDTHS = {DetailLevel.COMPACT: 240, DetailLevel.ABSTRACT: 100}
"""Maximum width of a text. A Chinese character is as wide as two letters, and has as much meaning."""
MAX_SOURCE_LENGTH = 160
MIN_CHARACTERS = 4
MAX_CHARACTERS_PER_TOKEN = 16
"""No tokenizer packs running text as densely, so the tokens of longer lines are not counted."""
MAX_MISSES = 8
"""After this many lines that did not fit, no further line is tried, to limit counting."""
_SENTENCE_END = re.compile(r"[.!?;](?=\s)|[。！？；…]")


@dataclass(frozen=True, slots=True)
class BlockMemory:
    """A memory that may be part of a block, with its display options."""

    memory: Memory
    short_id: str
    score: float = 0.0
    source_texts: Mapping[UUID, SourceText] = field(default_factory=dict[UUID, SourceText])
    """The texts of its sources that may be shown."""
    ceiling: DetailLevel = DetailLevel.FULL
    """The fullest level that may be used."""
    again: bool = False
    pinned: bool = False
    """Whether the memory is pinned."""


@dataclass(frozen=True, slots=True)
class TextMeter:
    """How to count and cut texts, the time zone of dates, and the fixed words of the prompt."""

    count: Callable[[str], int]
    cut: Callable[[str, int], str]
    zone: tzinfo = UTC
    wording: Wording = ENGLISH


@dataclass(frozen=True, slots=True)
class FittedLines:
    """Lines of the memories that fit, best first, and their tokens including headings."""

    lines: Mapping[UUID, BlockLine]
    tokens: int
    exhausted: bool
    """Whether everything is shown at its best level, so that more room would not help."""


def fold(text: str) -> str:
    """Put a text on one line and escape anything that looks like one of the tags."""
    line = " ".join(text.split())
    if not line.isprintable():
        line = " ".join(CONTROLS.sub(" ", line).split())
    return escape_tags(line)


def shorten_ids(ids: Iterable[UUID], known: Mapping[UUID, str] | None = None) -> dict[UUID, str]:
    """Assign each memory the shortest unique suffix of its ID; known names stay."""
    given = dict(known or {})
    every = sorted({*ids, *given})
    taken = set(given.values())
    tails = {each: each.hex for each in every}
    for length in range(MIN_CHARACTERS, 33):
        ends: dict[str, list[UUID]] = {}
        for each in every:
            ends.setdefault(tails[each][-length:], []).append(each)
        for end, owners in ends.items():
            if len(owners) == 1 and owners[0] not in given and f"m{end}" not in taken:
                given[owners[0]] = f"m{end}"
    return given


def write_line(
    remembered: BlockMemory, level: DetailLevel = DetailLevel.FULL, zone: tzinfo = UTC, wording: Wording = ENGLISH
) -> str:
    """Format a memory as one line: short ID, date, speaker and text, shortened to the level."""
    memory = remembered.memory
    opening = f"[{remembered.short_id}] {_date(memory, zone, wording.until)}{_by(memory)}: "
    if level is DetailLevel.FULL:
        said = fold(memory.content)
    elif len(memory.content.splitlines()) > 1 and level is DetailLevel.COMPACT:
        said = _excerpt_lines(memory.content, wording)
    else:
        said = shorten(fold(memory.content), WIDTHS[level])
    return f"{opening}{said}\n{''.join(_write_sources(remembered, level, wording))}"


def write_summary(memory: Memory, wording: Wording = ENGLISH) -> str:
    """Format a running summary as one line."""
    return f"{wording.summary}{fold(memory.content)}\n"


def shorten(text: str, width: int) -> str:
    """Cut a text that is too wide, and mark the cut.

    The cut is after a sentence or a word, if one ends in the second half.
    """
    end = wide = 0
    for end, character in enumerate(text):  # noqa: B007 - read behind the loop
        wide += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if wide > width:
            break
    else:
        return text
    head = text[:end]
    sentences = [found.end() for found in _SENTENCE_END.finditer(text[: end + 1]) if found.end() <= end]
    if sentences and sentences[-1] * 2 >= end:
        return f"{head[: sentences[-1]]}{ELLIPSIS}"
    blank = head.rfind(" ")
    return f"{head[:blank] if blank * 2 >= end else head}".rstrip() + ELLIPSIS


def fill(candidates: Sequence[BlockMemory], room: int, gauge: TextMeter, most: int) -> FittedLines:
    """Choose lines for memories within the room, at most `most`: all in full if they fit, else by rank.

    The first 75% of the room is for full lines, up to 90% for compact ones, the rest for abstract ones. Then lines are
    raised to better levels, the best first, while there is room. If no line fits, the first one is cut.
    """
    lines, spent = _place(candidates, room, gauge, most, dict.fromkeys(DetailLevel, 1.0))
    if not _is_all(lines, candidates, most):
        lines, spent = _place(candidates, room, gauge, most, SHARES)
        spent = _raise(lines, candidates, room, spent, gauge)
    if candidates and not lines and room > 0 and most > 0:
        return _cut_first(candidates[0], room, gauge)
    return FittedLines(lines, spent, exhausted=_is_all(lines, candidates, most))


def order(lines: Iterable[BlockLine]) -> list[BlockLine]:
    """Sort lines by kind, then by time: of two contradicting lines, the later is read last.

    Pinned lines come before all others, newest first.
    """
    places = {kind: place for place, kind in enumerate(ENGLISH.groups)}
    by_age = sorted(lines, key=lambda line: (line.occurred_at, line.memory_id))
    pinned = [line for line in reversed(by_age) if line.pinned]
    return pinned + sorted((line for line in by_age if not line.pinned), key=lambda line: places[line.kind])


def render_block(lines: Iterable[BlockLine], summary: str = "", wording: Wording = ENGLISH) -> str:
    """Group lines under the headings of their kinds, between heading and tags; empty without lines."""
    texts = [summary] if summary else []
    above = ""
    for line in order(lines):
        heading = wording.pinned if line.pinned else wording.groups[line.kind]
        if heading != above:
            texts.append(heading)
            above = heading
        texts.append(line.text)
    return render(texts, wording) if texts else ""


def render(texts: Iterable[str], wording: Wording = ENGLISH) -> str:
    """Put texts between the heading and the closing tag."""
    return f"{wording.heading}\n{OPENING}\n{''.join(texts)}{CLOSING}"


def cut_line(line: str, room: int, gauge: TextMeter) -> str:
    """Shorten a line from its end until it fits, and mark the cut; empty if no word would remain."""
    if room > 0 and len(line) <= room * MAX_CHARACTERS_PER_TOKEN and gauge.count(line) <= room:
        return line
    summary = gauge.wording.summary
    said = len(summary) if line.startswith(summary) else line.index(": ") + 2
    # A longer text cannot fit, so its tokens are not counted.
    beginning = line[: room * MAX_CHARACTERS_PER_TOKEN]
    for most in range(room - gauge.count(f"{ELLIPSIS}\n"), 0, -1):
        shortened = f"{gauge.cut(beginning, most).rstrip()}{ELLIPSIS}\n"
        if len(shortened) <= said + 2:
            return ""
        if gauge.count(shortened) <= room:
            return shortened
    return ""


def drop_last_lines(lines: Sequence[BlockLine], fits: Callable[[Sequence[BlockLine]], bool]) -> list[BlockLine]:
    """Drop lines from the end until the rest fits."""
    kept = list(lines)
    while kept and not fits(kept):
        kept.pop()
    return kept


def _place(
    candidates: Sequence[BlockMemory], room: int, gauge: TextMeter, most: int, shares: Mapping[DetailLevel, float]
) -> tuple[dict[UUID, BlockLine], int]:
    """Choose lines from the front, each at the best level whose part of the room is not used up."""
    lines: dict[UUID, BlockLine] = {}
    headings: set[str] = set()
    spent = misses = 0
    for each in candidates:
        if len(lines) == most or misses == MAX_MISSES or spent >= room:
            break
        heading = _heading(each, gauge)
        above = 0 if heading in headings else gauge.count(heading)
        for level in _levels(each):
            left = int(room * shares[level]) - spent - above
            if line := _fit(each, level, left, gauge):
                lines[each.memory.id] = line
                headings.add(heading)
                spent += line.tokens + above
                break
        else:
            misses += 1
    return lines, spent


def _raise(
    lines: dict[UUID, BlockLine], candidates: Sequence[BlockMemory], room: int, spent: int, gauge: TextMeter
) -> int:
    """Raise lines to better levels, the best first, while there is room; return the used tokens."""
    for each in candidates:
        shown = lines.get(each.memory.id)
        if shown is None:
            continue
        for level in _levels(each):
            if level is shown.level:
                break
            if line := _fit(each, level, room - spent + shown.tokens, gauge):
                lines[each.memory.id] = line
                spent += line.tokens - shown.tokens
                break
    return spent


def _cut_first(first: BlockMemory, room: int, gauge: TextMeter) -> FittedLines:
    above = gauge.count(_heading(first, gauge))
    whole = write_line(replace(first, source_texts={}), DetailLevel.ABSTRACT, gauge.zone, gauge.wording)
    text = cut_line(whole, room - above, gauge)
    if not text:
        return FittedLines({}, 0, exhausted=False)
    line = _line(first, DetailLevel.ABSTRACT, text, gauge.count(text))
    return FittedLines({first.memory.id: line}, line.tokens + above, exhausted=False)


def _heading(remembered: BlockMemory, gauge: TextMeter) -> str:
    """Return the heading above the line of a memory."""
    return gauge.wording.pinned if remembered.pinned else gauge.wording.groups[remembered.memory.kind]


def _levels(remembered: BlockMemory) -> list[DetailLevel]:
    """List the levels that a memory may be shown at, the fullest first."""
    levels = list(DetailLevel)
    return levels[levels.index(remembered.ceiling) :]


def _is_all(lines: Mapping[UUID, BlockLine], candidates: Sequence[BlockMemory], most: int) -> bool:
    """Return whether as many memories as possible are shown, each at its best level."""
    shown = [(each.ceiling, lines[each.memory.id].level) for each in candidates if each.memory.id in lines]
    whole = all(level in (ceiling, DetailLevel.FULL) for ceiling, level in shown)
    return whole and len(lines) == min(len(candidates), most)


def _fit(remembered: BlockMemory, level: DetailLevel, left: int, gauge: TextMeter) -> BlockLine | None:
    """Return a line at a level if it fits.

    If the text is the same at a better level, the line gets that level.
    """
    text = write_line(remembered, level, gauge.zone, gauge.wording)
    if left <= 0 or len(text) > left * MAX_CHARACTERS_PER_TOKEN:
        return None
    tokens = gauge.count(text)
    if tokens > left:
        return None
    same = (
        each for each in DetailLevel if each is level or write_line(remembered, each, gauge.zone, gauge.wording) == text
    )
    return _line(remembered, next(same), text, tokens)


def _line(remembered: BlockMemory, level: DetailLevel, text: str, tokens: int) -> BlockLine:
    memory = remembered.memory
    return BlockLine(
        short_id=remembered.short_id,
        memory_id=memory.id,
        kind=memory.kind,
        level=level,
        occurred_at=memory.occurred_at,
        text=text,
        tokens=tokens,
        score=remembered.score,
        evidence=memory.evidence,
        again=remembered.again,
        pinned=remembered.pinned,
    )


def _write_sources(remembered: BlockMemory, level: DetailLevel, wording: Wording) -> Iterable[str]:
    """Format some of the sources of a summary, one per line."""
    if level is DetailLevel.ABSTRACT or not any(each in remembered.source_texts for each in remembered.memory.evidence):
        return
    for source in excerpt(remembered.memory.evidence, compact=level is DetailLevel.COMPACT):
        if isinstance(source, int):
            yield f"  {wording.left_out.format(count=source)}\n"
        elif text := remembered.source_texts.get(source):
            yield f"  > {fold(text.speaker) or wording.said}: {shorten(fold(text.content), MAX_SOURCE_LENGTH)}\n"


def _excerpt_lines(content: str, wording: Wording) -> str:
    """Shorten a text with many lines to its beginning, middle and end."""
    spoken = [folded for line in content.splitlines() if (folded := fold(line))]
    return " ".join(
        wording.left_out.format(count=each) if isinstance(each, int) else shorten(each, MAX_SOURCE_LENGTH)
        for each in excerpt(spoken)
    )


def _date(memory: Memory, zone: tzinfo, until: str) -> str:
    """Return the day it happened; for a fact that ended, the period in which it was true."""
    day = (memory.valid_at or memory.occurred_at).astimezone(zone).date().isoformat()
    return f"{day}{until}{memory.invalid_at.astimezone(zone).date().isoformat()}" if memory.invalid_at else day


def _by(memory: Memory) -> str:
    speaker = fold(memory.speaker)
    role = memory.role.value if memory.role else ""
    if speaker and role:
        return f" {speaker} ({role})"
    return f" {speaker or role}" if speaker or role else ""
