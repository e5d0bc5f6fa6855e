"""The words of English dates: numbers, months, weekdays, parts of the day."""

from __future__ import annotations

import re
from collections.abc import Mapping

UNITS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TEENS = (
    "ten",
    "eleven",
    "twelve",
    *(f"{word}teen" for word in ("thir", "four", "fif", "six", "seven", "eigh", "nine")),
)
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
FIRSTS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
LATER = ("tenth", "eleventh", "twelfth", *(f"{word}th" for word in TEENS[3:]))
NUMBERS: Mapping[str, int] = (
    {word: value for value, word in enumerate((*UNITS, *TEENS), start=1)}
    | {word: 10 * value for value, word in enumerate(TENS, start=2)}
    | {f"{ten} {one}": 10 * tens + ones for tens, ten in enumerate(TENS, start=2) for ones, one in enumerate(UNITS, 1)}
    | {"a": 1, "an": 1, "couple": 2, "couple of": 2, "a couple of": 2, "a couple": 2}
)
DAYS: Mapping[str, int] = (
    {word: value for value, word in enumerate((*FIRSTS, *LATER), start=1)}
    | {f"twenty {word}": 20 + value for value, word in enumerate(FIRSTS, start=1)}
    | {"twentieth": 20, "thirtieth": 30, "thirty first": 31}
)
ORDINALS: Mapping[str, int] = {**DAYS, "last": -1, "final": -1}
MONTH_NAMES = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
MONTHS: Mapping[str, int] = (
    {name[:3]: value for value, name in enumerate(MONTH_NAMES, start=1)}
    | {name: value for value, name in enumerate(MONTH_NAMES, start=1)}
    | {"sept": 9}
)
DAY_NAMES = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
WEEKDAYS: Mapping[str, int] = (
    {name[:3]: value for value, name in enumerate(DAY_NAMES)}
    | {name: value for value, name in enumerate(DAY_NAMES)}
    | {"tues": 1, "thur": 3, "thurs": 3}
)
HOURS: Mapping[str, tuple[float, float]] = {
    "early morning": (0, 6),
    "morning": (5, 12),
    "noon": (11, 14),
    "lunchtime": (11, 14),
} | {"afternoon": (12, 18), "evening": (17, 24), "night": (18, 30)}
SHIFTS: Mapping[str, int] = {"last": -1, "previous": -1, "this": 0, "current": 0, "next": 1, "coming": 1}


def either(words: Mapping[str, object]) -> str:
    """Write an alternative of words, the longer first."""
    ordered = sorted(words, key=len, reverse=True)
    return "(?:" + "|".join(re.escape(word).replace("\\ ", "[ -]") for word in ordered) + ")"


NUMBER = rf"(?:\d{{1,3}}|{either(NUMBERS)})"
DAY_NUMBER = rf"(?:(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?(?![\d:])|{either(DAYS)})"
MONTH = either(MONTHS)
WEEKDAY = either(WEEKDAYS)
YEAR = r"(?:19|20)\d\d(?![\d:])"
SHIFT = r"(?:last|previous|this|current|next|coming)"
UNIT = r"(?:day|week|month|year)"
DASH = r"(?: ?[-–—~] ?| (?:to|through|thru|until|till) (?:the )?)"
LEAD = (
    r"(?:in|during|of|since|until|till|by|from|to|between|and|or|before|after|around|through|throughout|for|early|mid|late|"
    r"the|as of|over)"
)


def number(words: str) -> int:
    """Read a number in digits or words."""
    plain = words.replace("-", " ")
    return int(plain) if plain.isdigit() else NUMBERS[plain]


def ordinal(words: str) -> int:
    """Read the number of a day, as 5, 5th or fifth."""
    plain = words.replace("-", " ")
    return ORDINALS.get(plain) or int(plain.rstrip("stndrh"))


def maybe_year(words: str | None) -> int | None:
    """Read a year if there is one."""
    return int(words) if words else None
