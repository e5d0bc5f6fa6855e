"""What a language brings to be understood: its rules for dates, and the words around and between them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from recollect.core.dates_marks import Change, Mark


@dataclass(frozen=True, slots=True)
class Seen:
    """Words that a rule found, and the moment they are understood from."""

    match: re.Match[str]
    now: datetime

    def __getitem__(self, part: str) -> str:
        """Read a part of the words; empty if it is not there."""
        return (self.match[part] or "") if part in self.match.re.groupindex else ""


NEVER = re.compile("(?!)")
Make: TypeAlias = Callable[[Seen], Mark | list[Mark]]
Rule: TypeAlias = tuple[re.Pattern[str], Make]
"""A pattern and what it makes; the mark begins at the group `at`, if there is one."""
Modifier: TypeAlias = tuple[re.Pattern[str], Callable[[re.Match[str]], Change]]
End: TypeAlias = tuple[re.Pattern[str], str]
"""What leaves a time open at one side, and at which."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """How a language says when."""

    hint: re.Pattern[str]
    """What is in every text that says when; most texts that do not are told by it."""
    rules: tuple[Rule, ...]
    joins: re.Pattern[str]
    """What stands between the pieces of one date."""
    ranges: re.Pattern[str]
    """What stands between the beginning and the end of a range."""
    lists: re.Pattern[str]
    """What stands between two dates that are both meant."""
    opening: re.Pattern[str]
    """What stands before a range, and belongs to it."""
    pairing: tuple[re.Pattern[str], re.Pattern[str]]
    """What stands before or after two dates to make a range of what else would be a list."""
    before: tuple[Modifier, ...]
    after: tuple[Modifier, ...]
    ends_before: tuple[End, ...]
    """What leaves one side open, standing before a date."""
    ends_after: tuple[End, ...]
