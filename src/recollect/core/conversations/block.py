"""Write memories as one text between tags for a prompt: a line for each, shorter where there is little room."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from uuid import UUID

from recollect.core.conversations.budget import ELLIPSIS
from recollect.core.conversations.wording import ENGLISH, Wording
from recollect.core.text.similar import SourceText, excerpt
from recollect.core.text.tags import CONTROLS, defuse_tags
from recollect.models.blocks import Level, Line
from recollect.models.memories import Memory

OPENING, CLOSING = "<memories>", "</memories>"
PINNED_PART = 10
"""Pinned memories take at most one part in so many of a budget."""
SHARES = {Level.FULL: 0.75, Level.COMPACT: 0.9, Level.ABSTRACT: 1.0}
"""Which part of the room is for lines up to a level, where not all of them fit in full."""
WIDTHS = {Level.COMPACT: 240, Level.ABSTRACT: 100}
"""The widest a text can be; a Chinese character is as wide as two letters, and says as much."""
LONGEST_SOURCE = 160
FEWEST_CHARACTERS = 4
MOST_CHARACTERS_PER_TOKEN = 16
"""No tokenizer packs running text as densely, so a longer line need not be counted."""
MOST_MISSES = 8
"""After so many lines that did not fit no other is tried, to limit the counting."""
_SENTENCE_END = re.compile(r"[.!?;](?=\s)|[。！？；…]")


@dataclass(frozen=True, slots=True)
class BlockMemory:
    """A memory that a block may show, and how."""

    memory: Memory
    short_id: str
    score: float = 0.0
    source_texts: Mapping[UUID, SourceText] = field(default_factory=dict[UUID, SourceText])
    """Texts of its sources, as far as they may be shown."""
    ceiling: Level = Level.FULL
    """The fullest level that it may be shown at."""
    again: bool = False
    pinned: bool = False
    """Whether it is one of the pinned."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """How a text is counted and cut, in which zone its days are, and which words stand around it."""

    count: Callable[[str], int]
    cut: Callable[[str, int], str]
    zone: tzinfo = UTC
    wording: Wording = ENGLISH


@dataclass(frozen=True, slots=True)
class FittedLines:
    """The lines of the memories that fit, best first, and what they cost with their headings."""

    lines: Mapping[UUID, Line]
    tokens: int
    exhausted: bool
    """Whether everything is shown at its best level: more room would not help."""


def fold(text: str) -> str:
    """Bring a text onto one line, in which nothing looks like one of the tags."""
    line = " ".join(text.split())
    if not line.isprintable():
        line = " ".join(CONTROLS.sub(" ", line).split())
    return defuse_tags(line)


def shorten_ids(ids: Iterable[UUID], known: Mapping[UUID, str] | None = None) -> dict[UUID, str]:
    """Name each memory by the shortest suffix of its id that is unique; a memory that has a name keeps it."""
    given = dict(known or {})
    every = sorted({*ids, *given})
    taken = set(given.values())
    tails = {each: each.hex for each in every}
    for length in range(FEWEST_CHARACTERS, 33):
        ends: dict[str, list[UUID]] = {}
        for each in every:
            ends.setdefault(tails[each][-length:], []).append(each)
        for end, owners in ends.items():
            if len(owners) == 1 and owners[0] not in given and f"m{end}" not in taken:
                given[owners[0]] = f"m{end}"
    return given


def write_line(
    remembered: BlockMemory, level: Level = Level.FULL, zone: tzinfo = UTC, wording: Wording = ENGLISH
) -> str:
    """Write one memory: its short id, the day it happened, who said it, and what, as far as the level lets it."""
    memory = remembered.memory
    opening = f"[{remembered.short_id}] {_date(memory, zone, wording.until)}{_by(memory)}: "
    if level is Level.FULL:
        said = fold(memory.content)
    elif len(memory.content.splitlines()) > 1 and level is Level.COMPACT:
        said = _excerpt_lines(memory.content, wording)
    else:
        said = shorten(fold(memory.content), WIDTHS[level])
    return f"{opening}{said}\n{''.join(_write_sources(remembered, level, wording))}"


def write_summary(memory: Memory, wording: Wording = ENGLISH) -> str:
    """Write a running summary on one line."""
    return f"{wording.summary}{fold(memory.content)}\n"


def shorten(text: str, width: int) -> str:
    """Cut a text that is wider, after a sentence or a word if there is one in its second half, and mark the cut."""
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


def fill(candidates: Sequence[BlockMemory], room: int, gauge: Gauge, most: int) -> FittedLines:
    """Show memories while there is room, and at most so many: all in full if that fits, else the better the fuller.

    The first three quarters of the room go to lines in full, what is left of nine tenths to compact ones, the rest to
    abstract ones; then lines are raised again, the best first, as far as there is room. Only if not one fits, the
    first is cut.
    """
    lines, spent = _place(candidates, room, gauge, most, dict.fromkeys(Level, 1.0))
    if not _is_all(lines, candidates, most):
        lines, spent = _place(candidates, room, gauge, most, SHARES)
        spent = _raise(lines, candidates, room, spent, gauge)
    if candidates and not lines and room > 0 and most > 0:
        return _cut_first(candidates[0], room, gauge)
    return FittedLines(lines, spent, exhausted=_is_all(lines, candidates, most))


def order(lines: Iterable[Line]) -> list[Line]:
    """Sort lines by kind, and within by when it happened: of two that contradict each other the later is read last.

    What is pinned comes before all others, the newest first.
    """
    places = {kind: place for place, kind in enumerate(ENGLISH.groups)}
    by_age = sorted(lines, key=lambda line: (line.occurred_at, line.memory_id))
    pinned = [line for line in reversed(by_age) if line.pinned]
    return pinned + sorted((line for line in by_age if not line.pinned), key=lambda line: places[line.kind])


def lay_out(lines: Iterable[Line], summary: str = "", wording: Wording = ENGLISH) -> str:
    """Group lines under the names of their kinds, in heading and tags; nothing where there are none."""
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
    """Put texts between heading and closing tag."""
    return f"{wording.heading}\n{OPENING}\n{''.join(texts)}{CLOSING}"


def cut_line(line: str, room: int, gauge: Gauge) -> str:
    """Shorten a line from its end until it fits, and mark the cut; nothing if no word of the content would be left."""
    if room > 0 and len(line) <= room * MOST_CHARACTERS_PER_TOKEN and gauge.count(line) <= room:
        return line
    said = line.index(": ") + 2
    # Beyond this many characters nothing can fit: they need not be counted.
    beginning = line[: room * MOST_CHARACTERS_PER_TOKEN]
    for most in range(room - gauge.count(f"{ELLIPSIS}\n"), 0, -1):
        shortened = f"{gauge.cut(beginning, most).rstrip()}{ELLIPSIS}\n"
        if len(shortened) <= said + 2:
            return ""
        if gauge.count(shortened) <= room:
            return shortened
    return ""


def leave_least(lines: Sequence[Line], fits: Callable[[Sequence[Line]], bool]) -> list[Line]:
    """Leave out the last of lines while all together do not fit."""
    kept = list(lines)
    while kept and not fits(kept):
        kept.pop()
    return kept


def _place(
    candidates: Sequence[BlockMemory], room: int, gauge: Gauge, most: int, shares: Mapping[Level, float]
) -> tuple[dict[UUID, Line], int]:
    """Take memories from the front, each at the best level whose part of the room is not used up."""
    lines: dict[UUID, Line] = {}
    headings: set[str] = set()
    spent = misses = 0
    for each in candidates:
        if len(lines) == most or misses == MOST_MISSES or spent >= room:
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


def _raise(lines: dict[UUID, Line], candidates: Sequence[BlockMemory], room: int, spent: int, gauge: Gauge) -> int:
    """Show lines at a better level, the best first, as far as there is room; return what is used then."""
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


def _cut_first(first: BlockMemory, room: int, gauge: Gauge) -> FittedLines:
    above = gauge.count(_heading(first, gauge))
    whole = write_line(replace(first, source_texts={}), Level.ABSTRACT, gauge.zone, gauge.wording)
    text = cut_line(whole, room - above, gauge)
    if not text:
        return FittedLines({}, 0, exhausted=False)
    line = _line(first, Level.ABSTRACT, text, gauge.count(text))
    return FittedLines({first.memory.id: line}, line.tokens + above, exhausted=False)


def _heading(remembered: BlockMemory, gauge: Gauge) -> str:
    """Return the heading above the line of a memory."""
    return gauge.wording.pinned if remembered.pinned else gauge.wording.groups[remembered.memory.kind]


def _levels(remembered: BlockMemory) -> list[Level]:
    """List the levels that a memory may be shown at, the fullest first."""
    levels = list(Level)
    return levels[levels.index(remembered.ceiling) :]


def _is_all(lines: Mapping[UUID, Line], candidates: Sequence[BlockMemory], most: int) -> bool:
    """Tell whether as many as possible are shown, each at its best level."""
    shown = [(each.ceiling, lines[each.memory.id].level) for each in candidates if each.memory.id in lines]
    whole = all(level in (ceiling, Level.FULL) for ceiling, level in shown)
    return whole and len(lines) == min(len(candidates), most)


def _fit(remembered: BlockMemory, level: Level, left: int, gauge: Gauge) -> Line | None:
    """Write a line at a level if it fits; what is the same at a better level is at that level."""
    text = write_line(remembered, level, gauge.zone, gauge.wording)
    if left <= 0 or len(text) > left * MOST_CHARACTERS_PER_TOKEN:
        return None
    tokens = gauge.count(text)
    if tokens > left:
        return None
    same = (each for each in Level if each is level or write_line(remembered, each, gauge.zone, gauge.wording) == text)
    return _line(remembered, next(same), text, tokens)


def _line(remembered: BlockMemory, level: Level, text: str, tokens: int) -> Line:
    memory = remembered.memory
    return Line(
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


def _write_sources(remembered: BlockMemory, level: Level, wording: Wording) -> Iterable[str]:
    """Write some of the sources of a summary, one a line."""
    if level is Level.ABSTRACT or not any(each in remembered.source_texts for each in remembered.memory.evidence):
        return
    for source in excerpt(remembered.memory.evidence, compact=level is Level.COMPACT):
        if isinstance(source, int):
            yield f"  {wording.left_out.format(count=source)}\n"
        elif text := remembered.source_texts.get(source):
            yield f"  > {fold(text.speaker) or wording.said}: {shorten(fold(text.content), LONGEST_SOURCE)}\n"


def _excerpt_lines(content: str, wording: Wording) -> str:
    """Show a content of many lines by its beginning, middle and end."""
    spoken = [folded for line in content.splitlines() if (folded := fold(line))]
    return " ".join(
        wording.left_out.format(count=each) if isinstance(each, int) else shorten(each, LONGEST_SOURCE)
        for each in excerpt(spoken)
    )


def _date(memory: Memory, zone: tzinfo, until: str) -> str:
    """Give the day it happened; of a fact that is over, from when until when it was true."""
    day = (memory.valid_at or memory.occurred_at).astimezone(zone).date().isoformat()
    return f"{day}{until}{memory.invalid_at.astimezone(zone).date().isoformat()}" if memory.invalid_at else day


def _by(memory: Memory) -> str:
    speaker = fold(memory.speaker)
    role = memory.role.value if memory.role else ""
    if speaker and role:
        return f" {speaker} ({role})"
    return f" {speaker or role}" if speaker or role else ""
