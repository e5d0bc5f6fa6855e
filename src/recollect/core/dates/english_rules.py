"""English dates: which words make which date expression."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta

from recollect.core.dates import calendar
from recollect.core.dates.calendar import DAY, Span, Yearly, date_of, day_of, month_of, unit_of, weekend_of
from recollect.core.dates.holidays import ENGLISH_HOLIDAYS, ENGLISH_SEASONS, months
from recollect.core.dates.numeric import NUMERIC
from recollect.core.dates.parts import DateExpression, DateMatch, Make, Rule, ago

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
    """Return an alternative of words, the longest first."""
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
    r"the|as of|over|circa|no later than)"
)


def number(words: str) -> int:
    """Parse a number in digits or words."""
    plain = words.replace("-", " ")
    return int(plain) if plain.isdigit() else NUMBERS[plain]


def ordinal(words: str) -> int:
    """Parse the number of a day, such as 5, 5th or fifth."""
    plain = words.replace("-", " ")
    return ORDINALS.get(plain) or int(plain.rstrip("stndrh"))


def maybe_year(words: str | None) -> int | None:
    """Parse a year if there is one."""
    return int(words) if words else None


def _date(seen: DateMatch) -> DateExpression:
    day, month, year = seen["day"], seen["month"], seen["year"]
    return DateExpression(day=ordinal(day), month=MONTHS[month], year=maybe_year(year))


def _days(seen: DateMatch) -> DateExpression:
    month, first, last = MONTHS[seen["month"]], ordinal(seen["first"]), ordinal(seen["last"])
    if last < first:
        raise ValueError(last)

    def find_days_of_year(year: int) -> Span:
        return date_of(year, month, first)[0], date_of(year, month, last)[1]

    return DateExpression(yearly=find_days_of_year, year=maybe_year(seen["year"]))


def _two_days(seen: DateMatch) -> list[DateExpression]:
    month, year = MONTHS[seen["month"]], maybe_year(seen["year"])
    return [
        DateExpression(seen.match.start(part), seen.match.end(end), day=ordinal(seen[part]), month=month, year=year)
        for part, end in (("first", "first"), ("last", 0))
    ]


def _month(seen: DateMatch) -> DateExpression:
    return DateExpression(month=MONTHS[seen["month"]], year=maybe_year(seen["year"]))


def _shifted_month(seen: DateMatch) -> DateExpression:
    span = _choose(seen["shift"], months(MONTHS[seen["month"]], 1), seen.now)
    return DateExpression(month=MONTHS[seen["month"]], year=span[0].year)


def _choose(word: str, yearly: Yearly, now: datetime) -> Span:
    """Choose a year's occurrence: the last that is over, the present one or the next one."""
    shift = SHIFTS[word]
    if shift < 0:
        return calendar.latest(yearly, now, over=True)
    return calendar.next_occurrence(yearly, now) if shift > 0 else calendar.current(yearly, now)


def _yearly(words: Mapping[str, Yearly]) -> Make:
    def make(seen: DateMatch) -> DateExpression:
        yearly = words[seen["name"].replace("-", " ")]
        if seen["shift"]:
            return DateExpression(span=_choose(seen["shift"], yearly, seen.now))
        return DateExpression(yearly=yearly, year=maybe_year(seen["year"]))

    return make


RELATIVE_DAYS: Mapping[str, tuple[int, tuple[float, float] | None]] = (
    {"yesterday": (-1, None), "today": (0, None), "tomorrow": (1, None), "tonight": (0, (18, 30))}
    | {"last night": (-1, (18, 30)), "the day before yesterday": (-2, None), "day before yesterday": (-2, None)}
    | {"the day after tomorrow": (2, None), "day after tomorrow": (2, None), "the night before last": (-2, (18, 30))}
    | {"this morning": (0, (5, 12)), "this afternoon": (0, (12, 18)), "this evening": (0, (17, 24))}
)


def _relative_day(seen: DateMatch) -> DateExpression:
    shift, hours = RELATIVE_DAYS[seen.match[0].replace("-", " ")]
    return DateExpression(span=day_of(seen.now + shift * DAY), hours=hours)


def _ago(seen: DateMatch) -> DateExpression:
    return ago(seen.now, seen["unit"], number(seen["count"]))


def _few_ago(seen: DateMatch) -> DateExpression:
    return DateExpression(span=calendar.few_ago(seen.now, seen["unit"]))


def _half_ago(seen: DateMatch) -> DateExpression:
    count = number(seen["count"]) if seen["count"] else 0
    back = calendar.step(seen.now, seen["unit"], -count)
    if seen["unit"] == "year":
        return DateExpression(span=unit_of(calendar.add_months(back, -6), "month"))
    return DateExpression(span=unit_of(back - 15 * DAY, "week"))


def _hours_ago(seen: DateMatch) -> DateExpression:
    unit = seen["unit"]
    back = seen.now - (timedelta(minutes=30) if seen["half"] else timedelta(**{unit + "s": number(seen["count"])}))
    slack = timedelta(minutes=30 if unit == "hour" and not seen["half"] else 10)
    return DateExpression(span=(back - slack, back + slack), exact=True)


def _in_some(seen: DateMatch) -> DateExpression:
    return ago(seen.now, seen["unit"], -number(seen["count"]))


def _rolling(seen: DateMatch) -> DateExpression:
    count = calendar.FEW if seen["few"] else number(seen["count"] or "1")
    ahead = seen["which"] in ("next", "coming")
    return DateExpression(span=calendar.rolling(seen.now, seen["unit"], count if ahead else -count))


def _rolling_hours(seen: DateMatch) -> DateExpression:
    back = timedelta(**{seen["unit"] + "s": number(seen["count"] or "1")})
    return DateExpression(span=(seen.now - back, seen.now), exact=True)


def _unit(seen: DateMatch) -> DateExpression:
    shift = SHIFTS[seen["shift"]]
    if seen["unit"] == "weekend":
        ahead = seen["shift"] == "coming" and weekend_of(seen.now)[0] > seen.now
        return DateExpression(span=weekend_of(seen.now, 0 if ahead else shift))
    if seen["unit"] == "quarter":
        return DateExpression(span=month_of(seen.now.year, (seen.now.month - 1) // 3 * 3 + 1 + 3 * shift, 3))
    return ago(seen.now, seen["unit"], -shift)


def _before_last(seen: DateMatch) -> DateExpression:
    if seen["unit"] == "weekend":
        return DateExpression(span=weekend_of(seen.now, -2))
    return ago(seen.now, seen["unit"], 2)


def _earlier(seen: DateMatch) -> DateExpression:
    start, end = unit_of(seen.now, seen["unit"])
    today = day_of(seen.now)
    return DateExpression(span=(start, today[1]) if seen["when"] == "earlier" else (today[0], end))


def _other_day(seen: DateMatch) -> DateExpression:
    today = day_of(seen.now)[0]
    return DateExpression(span=(today - 7 * DAY, today))


def _weekend(seen: DateMatch) -> DateExpression:
    span = weekend_of(seen.now)
    return DateExpression(span=span if span[0] <= seen.now else weekend_of(seen.now, -1), loose=True)


def _weekday(seen: DateMatch) -> DateExpression:
    weekday, shift = WEEKDAYS[seen["weekday"]], seen["shift"]
    if not shift:
        return DateExpression(weekday=weekday, loose=True)
    ahead = (weekday - seen.now.weekday() - 1) % 7 + 1
    if shift == "coming":
        return DateExpression(span=day_of(seen.now + ahead * DAY))
    if shift in ("this", "next", "current"):
        return DateExpression(span=day_of(calendar.week_of(seen.now, SHIFTS[shift])[0] + weekday * DAY))
    return DateExpression(span=day_of(seen.now + (ahead - 7 if ahead < 7 else -7) * DAY))


def _year(seen: DateMatch) -> DateExpression:
    return DateExpression(year=int(seen["year"]))


def _decade(seen: DateMatch) -> DateExpression:
    decade = int(seen["decade"])
    century = 0 if decade > 100 else 1900 if decade > 20 else 2000
    return DateExpression(span=calendar.year_of(century + decade, 10))


def _quarter(seen: DateMatch) -> DateExpression:
    place = int(seen["digit"]) if seen["digit"] else ORDINALS[seen["word"]]
    return DateExpression(yearly=months(3 * (place if place > 0 else 4) - 2, 3), year=maybe_year(seen["year"]))


def _month_day(seen: DateMatch) -> DateExpression:
    return DateExpression(day=ordinal(seen["day"]))


def _clock(seen: DateMatch) -> DateExpression:
    hour, minute = int(seen["hour"]), int(seen["minute"] or 0)
    half = seen["half"]
    if hour > (12 if half else 24) or minute > 59:
        raise ValueError(hour)
    hour = hour % 12 + (12 if half.startswith("p") else 0) if half else hour
    return DateExpression(hours=(hour + minute / 60, hour + minute / 60 + 1))


def _part(seen: DateMatch) -> DateExpression:
    return DateExpression(hours=HOURS[seen["part"].replace("-", " ")])


def rule(pattern: str, make: Make) -> Rule:
    """Pair a pattern of whole words with the function that makes its date expression."""
    return re.compile(rf"(?<!\w)(?:{pattern})(?!\w)"), make


OF_YEAR = rf"(?:,? ?(?:of |in )?(?P<year>{YEAR}))?"
DAY_MONTH = rf"(?: of)?[ -](?P<month>{MONTH})\.?{OF_YEAR}"
NO_MONTH = rf"(?! (?:of )?{MONTH})"
FIRST, LAST = rf"(?:the )?(?P<first>{DAY_NUMBER})", rf"(?:the )?(?P<last>{DAY_NUMBER})"
COUNTED = r"(?! (?:people|miles|km|times|percent|steps|words|dollars|calories|met(?:er|re)s|users|pages|kg|years)\b)"
PLAIN_MONTH = r"(?:january|february|july|september|october|november|december)"
SPOKEN_ON = r"(?= of (?:last|this|next|the|that) month|[,.?!;:]|$| (?:at|and|to|in the|for|i|we|he|she|they|did|was)\b)"
BESIDE = r"(?:on|since|until|till|by|from|to|before|after) "
SEASON = rf"(?P<name>{either(ENGLISH_SEASONS)})"

RULES = (
    *NUMERIC,
    rule(rf"(?P<day>{DAY_NUMBER}){DAY_MONTH}", _date),
    rule(rf"(?P<month>{MONTH})\.? (?:the )?(?P<day>{DAY_NUMBER}){COUNTED}{OF_YEAR}", _date),
    rule(rf"(?:from )?{FIRST}{DASH}{LAST}{DAY_MONTH}", _days),
    rule(rf"between {FIRST} and {LAST}{DAY_MONTH}", _days),
    rule(rf"(?:from )?(?P<month>{MONTH})\.? {FIRST}{DASH}{LAST}{NO_MONTH}{OF_YEAR}", _days),
    rule(rf"between (?P<month>{MONTH})\.? {FIRST} and {LAST}{NO_MONTH}{OF_YEAR}", _days),
    rule(rf"{FIRST}(?:,| and| or| &) {LAST}{DAY_MONTH}", _two_days),
    rule(rf"(?P<month>{MONTH})\.?(?:,? (?:of )?|-)(?P<year>{YEAR})", _month),
    rule(rf"(?P<month>{PLAIN_MONTH})", _month),
    rule(
        rf"(?!the (?:may|march)\b){LEAD}[ -](?P<at>)(?P<month>{MONTH})(?! (?:be|have|not|i|we|he|she|they|you)\b)",
        _month,
    ),
    rule(rf"(?P<shift>{SHIFT}) (?P<month>{MONTH})", _shifted_month),
    rule(rf"(?:(?P<shift>{SHIFT}) |{LEAD} (?:the )?(?P<at>)){SEASON}", _yearly(ENGLISH_SEASONS)),
    rule(rf"{SEASON}(?: of|,)? (?P<year>{YEAR})", _yearly(ENGLISH_SEASONS)),
    rule(rf"(?:(?P<shift>{SHIFT}) )?(?P<name>{either(ENGLISH_HOLIDAYS)}){OF_YEAR}", _yearly(ENGLISH_HOLIDAYS)),
    rule(either(RELATIVE_DAYS), _relative_day),
    rule(rf"(?P<count>{NUMBER}) (?P<unit>{UNIT})s? (?:ago|back)", _ago),
    rule(rf"(?:a few|few|several|some) (?P<unit>{UNIT})s (?:ago|back)", _few_ago),
    rule(r"half an? (?P<unit>year|month) ago", _half_ago),
    rule(rf"(?P<count>{NUMBER}) and a half (?P<unit>year|month)s ago", _half_ago),
    rule(rf"(?P<count>{NUMBER}) (?P<unit>year|month)s? and a half ago", _half_ago),
    rule(rf"(?P<count>{NUMBER}) (?P<unit>hour|minute)s? ago", _hours_ago),
    rule(r"(?P<half>half an) (?P<unit>hour) ago", _hours_ago),
    rule(rf"in (?P<count>{NUMBER}) (?P<unit>{UNIT})s?(?:'? time)?(?=[,.?!;]|$)", _in_some),
    rule(rf"(?P<count>{NUMBER}) (?P<unit>{UNIT})s? from (?:now|today)", _in_some),
    rule(
        rf"(?:the )?(?P<which>last|past|previous|next|coming) "
        rf"(?:(?P<count>{NUMBER})|(?P<few>few|several)) (?P<unit>{UNIT})s?",
        _rolling,
    ),
    rule(rf"(?:the past|(?:in|over|within|during|for) (?P<at>)the last) (?P<unit>{UNIT})(?! of)", _rolling),
    rule(rf"(?:the )?(?:last|past|previous) (?P<count>{NUMBER})? ?(?P<unit>hour|minute)s?", _rolling_hours),
    rule(rf"(?P<shift>{SHIFT}) (?P<unit>week|month|year|weekend|quarter)", _unit),
    rule(r"(?:the )?(?P<unit>week|month|year|weekend) before last", _before_last),
    rule(r"(?P<when>earlier|later) this (?P<unit>week|month|year)", _earlier),
    rule(r"the other (?:day|night)", _other_day),
    rule(r"(?:over|at|on|during) the weekend(?! of)", _weekend),
    rule(rf"(?P<shift>{SHIFT}|past) (?P<weekday>{WEEKDAY})", _weekday),
    rule(r"(?<!every )(?<!each )(?P<weekday>(?:mon|tues|wednes|thurs|fri|satur|sun)day)(?!'s)", _weekday),
    rule(rf"{BESIDE}(?P<at>)(?P<weekday>{WEEKDAY})", _weekday),
    rule(rf"(?:{LEAD}|year)[ -](?P<at>)(?P<year>{YEAR}){COUNTED}", _year),
    rule(r"(?:the '?(?P<decade>\d0)'?s)", _decade),
    rule(r"(?:the )?(?P<decade>(?:19|20)\d0)'?s", _decade),
    rule(
        r"(?:q(?P<digit>[1-4])|(?:the )?(?P<word>first|second|third|fourth|last) quarter)" + OF_YEAR,
        _quarter,
    ),
    rule(rf"{BESIDE}(?:around )?the (?P<at>)(?P<day>\d{{1,2}}(?:st|nd|rd|th)){SPOKEN_ON}", _month_day),
    rule(r"(?:at |around )?(?P<hour>\d{1,2})(?::(?P<minute>\d\d))? ?(?P<half>[ap]\.?m\b\.?)", _clock),
    rule(r"(?:at |around )?(?P<hour>\d{1,2}):(?P<minute>\d\d)", _clock),
    rule(rf"(?:in the |the )?(?P<part>{either(HOURS)})", _part),
)
