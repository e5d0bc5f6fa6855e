"""Chinese time expressions: dates, and the words before, after and between them."""

from __future__ import annotations

import re
from collections.abc import Callable

from recollect.core.dates import calendar
from recollect.core.dates.calendar import DAY
from recollect.core.dates.chinese_rules import NUMBER, RULES, UNITS, WEEK, read_number
from recollect.core.dates.parts import NEVER, Change, Grammar, Modifier

THIRDS = {"上旬": 0, "初": 0, "中旬": 1, "中": 1, "下旬": 2, "底": 2, "末": 2}
BROAD = {"上中旬": 0, "中上旬": 0, "中下旬": 1}


def _third(match: re.Match[str]) -> Change:
    place = THIRDS[match["third"]]
    return lambda span: calendar.third_of(span, place)


def _two_thirds(match: re.Match[str]) -> Change:
    place = BROAD[match["third"]]
    return lambda span: (calendar.third_of(span, place)[0], calendar.third_of(span, place + 1)[1])


def _year_edge(match: re.Match[str]) -> Change:
    first, count = {"初": (1, 3), "中": (6, 2), "底": (11, 2), "末": (11, 2)}[match["part"]]
    return lambda span: calendar.month_of(span[0].year, first, count)


def _week(match: re.Match[str]) -> Change:
    place = -1 if "最后" in match["place"] else read_number(match["place"].lstrip("第")) - 1
    if match["end"]:
        return lambda span: _weekend_in(span, place)
    return lambda span: calendar.week_in(span, place)


def _weekend_in(span: calendar.Span, place: int) -> calendar.Span:
    start = calendar.weekday_in(span[0].year, span[0].month, 5, place if place < 0 else place + 1)[0]
    return start, start + 2 * DAY


def _half(match: re.Match[str]) -> Change:
    return lambda span: calendar.half_of(span, 0 if match["half"] in "上前" else 1)


def _part(match: re.Match[str]) -> Change:
    count, unit = read_number(match["count"]), UNITS[match["unit"]]
    if match["side"] == "前":
        return lambda span: (span[0], min(calendar.step(span[0], unit, count), span[1]))
    return lambda span: (max(calendar.step(span[1], unit, -count), span[0]), span[1])


def _neighbour(match: re.Match[str]) -> Change:
    count, unit = read_number(match["count"]), UNITS[match["unit"]]
    if match["side"] == "后":
        return lambda span: (span[1], calendar.step(span[1], unit, count))
    return lambda span: (calendar.step(span[0], unit, -count), span[0])


def _nth_day(match: re.Match[str]) -> Change:
    place = match["place"]
    return lambda span: calendar.day_of(span[0] + (read_number(place) - 1) * DAY if place else span[1])


def _week_of(match: re.Match[str]) -> Change:
    unit = calendar.weekend_of if match["end"] else calendar.week_of
    return lambda span: unit(span[0])


def after(pattern: str, make: Callable[[re.Match[str]], Change]) -> Modifier:
    """Pair a pattern directly after a date with the change that it makes."""
    return re.compile(pattern), make


CHINESE = Grammar(
    hint=re.compile(
        "[0-9年月日号天周节季旬期昨今明晚早午夜点晨元旦国庆中秋端午清明五一六一圣诞除夕寒暑假春夏冬]|刚才|礼拜|小时|钟头|分钟|双十|重阳"
    ),
    rules=RULES,
    joins=re.compile(r" ?的? ?"),
    ranges=re.compile(r" ?(?:-|~|至|到|直到|一直到|和|与) ?"),
    lists=re.compile(r" ?(?:和|与|及|以及|、|,|或|或者|跟) ?"),
    opening=re.compile(r"(?:从|自|介于)$"),
    pairing=(NEVER, re.compile("之间|间")),
    before=(),
    after=(
        after("的?(?P<third>上中旬|中上旬|中下旬)", _two_thirds),
        after("的?(?P<third>上旬|中旬|下旬)", _third),
        after("(?<=[月份])(?P<third>初|底|末|中(?![旬秋午国间学心下上]))", _third),
        after("(?<=年)(?P<part>初|底|末|中(?![旬秋午国间学心下上]))", _year_edge),
        after(f"的?(?P<place>第[一二三四五]|最后一)个?{WEEK}(?P<end>末)?(?![一二三四五六日天])", _week),
        after("的?(?P<half>上|下|前|后)半(?:个?月|年|段|叶)", _half),
        after(f"的(?P<side>前|最后|后)(?P<count>{NUMBER})个?(?P<unit>天|周|星期|月)", _part),
        after(f"的?(?P<side>前|后)(?P<count>{NUMBER})个?(?P<unit>天|周|星期|月|年)", _neighbour),
        after(f"的?(?:第(?P<place>{NUMBER})天|次日|隔天)", _nth_day),
        after(f"(?:的)?那(?:一)?个?{WEEK}(?P<end>末)?", _week_of),
    ),
    ends_before=(
        (re.compile("(?:自从|自)$"), "since"),
        (re.compile("(?:截至|截止到?|直到|不晚于)$"), "until"),
    ),
    ends_after=(
        (re.compile("以来|至今|到(?:现在|今天|目前)(?:为止)?|起(?![来床飞])"), "since"),
        (re.compile("前后|左右"), "around"),
        (re.compile("之后|以后|后(?![来面续])"), "after"),
        (re.compile("之前|以前|前(?![往来面])"), "before"),
        (re.compile("为止"), "until"),
    ),
)
