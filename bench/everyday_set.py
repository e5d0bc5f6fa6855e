"""The sets of everyday questions: their filler memories, and how a memory is recognized in an answer.

A set is a JSON file with the fields

- `half`, `language`, `user`, and `now`: the time at which every question is asked
- `parts`: for each part of bench/everyday_measures.py its `memories` and its questions, or the `scope` of another part
- `filler`: the `seed`, `events`, `chats` and `slots` that filler memories are made from

A memory has a `key`, a `form` (`event`, `message` or `fact`), a `text`, a time `at`, and a `mark`: words that are in no
other memory of its scope. So a memory is found even if it was rewritten, merged or derived.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

Values = Mapping[str, Any]
"""A part of a set as it is in the file: the set itself, a memory or a question."""

CHAT_SHARE = 1 / 3
NEWEST_DAYS, RANGE_DAYS = 8, 722
"""The age of filler memories: at least the first, and less than the sum of both."""

MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
DATE = rf"(?:\d{{4}}-\d\d-\d\d|\d{{4}}年\d{{1,2}}月(?:\d{{1,2}}日)?|\d{{4}}-\d\d|\d{{1,2}} {MONTH} \d{{4}})"
POINT = rf"(\d{{4}}-\d{{2}}(?:-\d{{2}})?|{MONTH}\.? \d{{4}}|\d{{4}}年(?:\d{{1,2}}月)?(?:\d{{1,2}}日)?|\d{{4}})"
"""A date as a limit of a range: a day, a month or a year."""
BULLET = re.compile(r"^\s*(?:[-*•]\s*)?(?:\[[^\]]{1,12}\]\s*)?")
LEADING_DATE = re.compile(rf"^{DATE}(?:[ T]\d\d:\d\d)?(?: [\w ]{{1,40}})?\s*[:：,，]\s*")
HEADING = re.compile(r"[:：]\s*$")
NUMBERED_LINE = re.compile(r"^\s*(?:\[m|[-*•] )", re.MULTILINE)
MEMORIES = re.compile(r"<memories>(.*?)</memories>", re.DOTALL)
RANGE = re.compile(rf"{POINT}\s*(?:-|–|—|~|to|until|till|至|到)\s*{POINT}", re.IGNORECASE)
ENDED = re.compile(
    r"\b(until|till|no longer|former|formerly|previous|previously|past|earlier|before|ended|was|were|used to|outdated"
    r"|replaced|superseded|old|lived|worked|drove|had|rode|did|belonged|earned|weighed|ate|took|played|reported"
    r"|rented)\b|截至|直到|不再|曾|以前|之前|此前|过去|结束|原来|旧|已被|[至到]\s*\d|止",
    re.IGNORECASE,
)
"""Words that say that something is over."""
BEGUN = re.compile(
    r"\b(since|from|now|current|currently|today|at present|onwards?|present|moved|then)\b|自|起|从|现在|目前|如今|当前",
    re.IGNORECASE,
)
"""Words that say when something began."""


class Line(NamedTuple):
    """A memory in a block: without its ID, also without its date, and the heading above it."""

    text: str
    dated: str
    heading: str


def make_filler(data: Values, size: int) -> list[dict[str, str]]:
    """Return `size` ordinary memories, the same ones every time; a chat counts as two."""
    recipe, known = data["filler"], set[str]()
    chance, now = random.Random(recipe["seed"]), datetime.fromisoformat(data["now"])
    made: list[dict[str, str]] = []
    count = 0
    while count < size:
        is_chat = chance.random() < CHAT_SHARE and count + 2 <= size
        template = chance.choice(recipe["chats"] if is_chat else recipe["events"])
        words = {slot: chance.choice(choices) for slot, choices in recipe["slots"].items()}
        text = (template["user"] if is_chat else template).format(u=data["user"], **words)
        text = text[0].upper() + text[1:] if text[0].islower() else text
        at = now - timedelta(days=NEWEST_DAYS + RANGE_DAYS * chance.random())
        if text in known:
            continue
        known.add(text)
        memory = {"form": "message" if is_chat else "event", "text": text, "at": at.replace(microsecond=0).isoformat()}
        made.append({**memory, "reply": template["reply"]} if is_chat else memory)
        count += 2 if is_chat else 1
    return made


def list_memories(data: Values, scope: str, size: int) -> list[Values]:
    """Return all memories of a scope, filler included, oldest first."""
    return sorted([*data["parts"][scope]["memories"], *make_filler(data, size)], key=lambda memory: memory["at"])


def fold(text: str) -> str:
    """Return a text without differences of case and blanks."""
    return re.sub(r"\s+", " ", text.casefold())


def has_mark(mark: str, text: str) -> bool:
    """Return whether a text contains a mark, but not within a longer word or number."""
    if not mark or not text:
        return False
    folded = fold(mark)
    before = "(?<![0-9a-z])" if re.match("[0-9a-z]", folded) else ""
    # A word may have an ending, such as that of a plural. A number may not.
    after = "(?![0-9])" if re.match("[0-9]", folded[-1]) else ""
    return re.search(before + re.escape(folded) + after, fold(text)) is not None


def read_lines(block: str) -> list[Line]:
    """Return the memories of a block, with the last heading above each."""
    inner = MEMORIES.search(block)
    found, heading = [], ""
    for raw in (inner[1] if inner else block).split("\n"):
        if HEADING.search(raw) and not raw.lstrip().startswith("["):
            heading = raw
        elif raw.strip():
            dated = BULLET.sub("", raw)
            found.append(Line(LEADING_DATE.sub("", dated), dated, heading))
    return found


def is_dated(line: Line, memory: Values, *, later: bool) -> bool:
    """Return whether a line says that its memory is over or, if `later`, when it began.

    Words of the memory itself do not count. A date at the head of the line says neither.
    """
    rest = fold(line.dated)
    for field in ("object", "predicate", "subject"):
        rest = rest.replace(fold(memory[field]), " ")
    limits = RANGE.search(line.dated)
    if ENDED.search(rest) or ENDED.search(line.heading) or (limits and limits[1] != limits[2]):
        return True
    return later and bool(BEGUN.search(rest) or BEGUN.search(line.heading))
