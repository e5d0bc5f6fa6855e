"""English time expressions: dates, and the words before, after and between them."""

from __future__ import annotations

import re
from collections.abc import Callable

from recollect.core.dates import calendar
from recollect.core.dates.calendar import DAY, Span
from recollect.core.dates.english_rules import MONTH, NUMBER, ORDINALS, RULES, UNIT, WEEKDAY, WEEKDAYS, number
from recollect.core.dates.parts import NEVER, Change, End, Grammar, Modifier

THIRDS = {"early": 0, "beginning": 0, "start": 0, "mid": 1, "middle": 1, "late": 2, "end": 2}
PLACE = r"(?P<place>first|second|third|fourth|last|final|1st|2nd|3rd|4th)"


def _third(match: re.Match[str]) -> Change:
    return lambda span: calendar.third_of(span, THIRDS[match["third"]])


def _half(match: re.Match[str]) -> Change:
    return lambda span: calendar.half_of(span, 0 if match["place"] in ("first", "1st") else 1)


def _week(match: re.Match[str]) -> Change:
    place = match["place"]
    ordinal = ORDINALS.get(place) or int(place[0])
    if match["end"]:
        return lambda span: _weekend_in(span, ordinal)
    return lambda span: calendar.week_in(span, ordinal if ordinal < 0 else ordinal - 1)


def _weekend_in(span: Span, place: int) -> Span:
    start = calendar.weekday_in(span[0].year, span[0].month, 5, place)[0]
    return start, start + 2 * DAY


def _part(match: re.Match[str]) -> Change:
    count, unit = number(match["count"] or "1"), match["unit"]
    if match["place"] == "first":
        return lambda span: (span[0], min(calendar.step(span[0], unit, count), span[1]))
    return lambda span: (max(calendar.step(span[1], unit, -count), span[0]), span[1])


def _shift(match: re.Match[str]) -> Change:
    """Shift by a number of units before or after a day.

    "The week before" without a number is the seven days before it.
    """
    unit, later = match["unit"], match["side"] in ("after", "following")
    if not match["count"]:
        return _neighbour(unit, later=later)
    count = number(match["count"]) if later else -number(match["count"])
    return lambda span: calendar.day_of(calendar.step(span[0], unit, count))


def _neighbour(unit: str, *, later: bool) -> Change:
    if unit == "weekend":
        return lambda span: calendar.weekend_of(span[0], 1 if later and span[0].weekday() > 4 else 0 if later else -1)
    if later:
        return lambda span: (span[1], calendar.step(span[1], unit, 1))
    return lambda span: (calendar.step(span[0], unit, -1), span[0])


def _weekday(match: re.Match[str]) -> Change:
    weekday = WEEKDAYS[match["weekday"]]
    if match["side"] == "before":
        return lambda span: calendar.day_of(span[0] - ((span[0].weekday() - weekday - 1) % 7 + 1) * DAY)
    return lambda span: calendar.day_of(span[1] + (weekday - span[1].weekday()) % 7 * DAY)


def _within(match: re.Match[str]) -> Change:
    unit = calendar.weekend_of if match["unit"] == "weekend" else calendar.week_of
    return lambda span: unit(span[0])


def before(pattern: str, make: Callable[[re.Match[str]], Change]) -> Modifier:
    """Pair a pattern directly before a date with the change that it makes."""
    return open_side(pattern, "")[0], make


def open_side(pattern: str, side: str) -> End:
    """Pair a pattern directly before a date with the side that it leaves open."""
    return re.compile(rf"(?<!\w)(?:{pattern})(?: the)?[ -]$"), side


ENGLISH = Grammar(
    hint=re.compile(
        rf"\d|(?<!\w){MONTH}(?!\w)|day|tomorrow|week|month|year|ago(?!\w)|night|morning|evening|afternoon|hour|minute|"
        r"spring|summer|autumn|fall|winter|quarter|christmas|xmas|easter|halloween|thanksgiving|valentine|juneteenth|"
        r"festival|(?<!\w)(?:mon|tue|tues|wed|thu|thur|thurs|fri|sat|sun)(?!\w)"
    ),
    rules=RULES,
    joins=re.compile(r",? (?:(?:of|in|on|at|around|about|during) )?(?:the )?"),
    ranges=re.compile(r" ?[-~] ?| (?:to|through|thru|until|till|up to|and)(?: the| early| late| mid)? "),
    lists=re.compile(r" ?(?:,|,? and|,? or|&|/)(?: in| on)?(?: the)? ?"),
    opening=re.compile(r"(?<!\w)(?:from|between)(?: the)? $"),
    pairing=(re.compile(r"(?<!\w)between(?: the)? $"), NEVER),
    before=(
        before(r"(?:(?:in|at|by|towards?) )?(?:the )?(?:very )?(?P<third>early|mid|late)", _third),
        before(r"(?:(?:in|at|by|towards?) )?(?:the )?(?:very )?(?P<third>beginning|start|middle|end) of", _third),
        before(r"(?:in )?(?:the )?(?P<place>first|second|1st|2nd) half of", _half),
        before(rf"(?:in |during |over )?(?:the )?{PLACE} week(?P<end>end)? (?:of|in)", _week),
        before(rf"(?:the )?(?P<place>first|last|final) (?:(?P<count>{NUMBER}) )?(?P<unit>{UNIT})s? of", _part),
        before(rf"(?:the )?(?P<count>{NUMBER}) (?P<unit>{UNIT})s? (?P<side>before|after)", _shift),
        before(
            r"(?:the |last )?(?P<count>)(?P<unit>day|week|month|year|weekend) (?P<side>before|after|following)", _shift
        ),
        before(rf"(?:the )?(?P<weekday>{WEEKDAY}) (?P<side>before|after|following)", _weekday),
        before(r"(?:the )?(?P<unit>week|weekend) of", _within),
    ),
    after=(),
    ends_before=(
        open_side(r"(?:ever )?since|starting(?: in| on| from)?", "since"),
        open_side(r"after", "after"),
        open_side(r"before|prior to", "before"),
        open_side(r"until|till|up to|up until|no later than", "until"),
        open_side(r"around|circa", "around"),
    ),
    ends_after=(
        (re.compile(r" (?:onwards?|and later|or later|on(?=[,.?!;]|$))(?!\w)"), "since"),
        (re.compile(r" or (?:earlier|before)(?!\w)"), "until"),
    ),
)
