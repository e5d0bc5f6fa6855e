"""Chinese dates: which words make which date expression."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta

from recollect.core.dates import calendar
from recollect.core.dates.calendar import DAY, Span, date_of, day_of, unit_of, week_of, weekend_of
from recollect.core.dates.holidays import CHINESE_HOLIDAYS, CHINESE_SEASONS, months
from recollect.core.dates.numeric import NUMERIC
from recollect.core.dates.parts import DateExpression, DateMatch, Make, Rule, ago

DIGITS: Mapping[str, int] = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
UNITS: Mapping[str, str] = {"天": "day", "日": "day", "周": "week", "星期": "week", "礼拜": "week"} | {
    "月": "month",
    "年": "year",
    "季度": "quarter",
}
WEEKDAYS: Mapping[str, int] = {sign: value for value, sign in enumerate("一二三四五六日")} | {"天": 6}
DAYS: Mapping[str, int] = {"大前天": -3, "前天": -2, "前日": -2, "昨天": -1, "昨日": -1, "昨": -1} | {
    "今天": 0,
    "今日": 0,
    "今": 0,
    "明天": 1,
    "明日": 1,
    "明": 1,
    "后天": 2,
    "大后天": 3,
}
YEARS: Mapping[str, int] = {"大前年": -3, "前年": -2, "去年": -1, "今年": 0, "本年": 0, "明年": 1, "后年": 2}
SHIFTS: Mapping[str, int] = {"上上": -2, "上": -1, "这": 0, "本": 0, "下": 1, "下下": 2}
HOURS: Mapping[str, tuple[float, float]] = (
    {"凌晨": (0, 6), "清晨": (4, 9), "早晨": (5, 12), "早上": (5, 12), "一早": (5, 12), "早": (5, 12)}
    | {"上午": (5, 12), "中午": (11, 14), "正午": (11, 14), "午后": (12, 18), "下午": (12, 18), "傍晚": (17, 20)}
    | {"晚上": (18, 30), "晚间": (18, 30), "夜里": (18, 30), "夜晚": (18, 30), "深夜": (21, 30), "半夜": (21, 30)}
    | {"晚": (18, 30), "夜": (18, 30)}
)
YEAR_PARTS: Mapping[str, tuple[int, int]] = {
    "年初": (1, 3),
    "年中": (6, 2),
    "年底": (11, 2),
    "年末": (11, 2),
    "年终": (11, 2),
} | {"上半年": (1, 6), "下半年": (7, 6)}
"""The first month, and the number of months."""
LONG_HOLIDAYS = frozenset(("端午", "中秋", "清明", "元旦"))
"""One-day festivals that become a holiday with two more days."""

NUMBER = "(?:[0-9]{1,3}|[零〇一二两三四五六七八九十百]{1,5})"
MONTH = "(?:1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])"
DAY_NUMBER = "(?:3[01]|[12][0-9]|0?[1-9]|三十一?|二?十[一二三四五六七八九]?|[一二三四五六七八九])"
SHIFT = "(?:上上|上|这|本|下下|下)"
WEEK = "(?:周|星期|礼拜)"
FAR_AHEAD = 20
"""A two-digit year is at most this many years in the future, else in the last century."""
NOT_COUNTED = "(?<![0-9零〇一二两三四五六七八九十百几每第多数个])"


def read_number(words: str) -> int:
    """Parse a number below 1,000 in digits or in Chinese numerals."""
    if words.isdigit():
        return int(words)
    hundreds, hundred, rest = words.rpartition("百")
    tens, ten, ones = rest.rpartition("十")
    value = 100 * _digits(hundreds, 1) if hundred else 0
    value += (10 * _digits(tens.lstrip("零〇"), 1) if ten else 0) + _digits(ones, 0)
    if value >= 1000:
        raise ValueError(words)
    return value


def _digits(words: str, empty: int) -> int:
    value = 0
    for sign in words:
        if sign not in DIGITS:
            raise ValueError(words)
        value = 10 * value + DIGITS[sign]
    return value if words else empty


def _year(seen: DateMatch) -> DateExpression:
    year = int(seen["year"]) if seen["year"].isdigit() else _digits(seen["year"], 0)
    if year < 100:
        year += 2000 if 2000 + year <= seen.now.year + FAR_AHEAD else 1900
    return DateExpression(year=year)


def _named_year(seen: DateMatch) -> DateExpression:
    return DateExpression(year=seen.now.year + YEARS[seen.match[0]])


def _month(seen: DateMatch) -> DateExpression:
    return DateExpression(month=read_number(seen["month"]))


def _date(seen: DateMatch) -> DateExpression:
    return DateExpression(month=read_number(seen["month"]), day=read_number(seen["day"]))


def _days(seen: DateMatch) -> DateExpression:
    month, first, last = read_number(seen["month"]), read_number(seen["first"]), read_number(seen["last"])
    if last < first:
        raise ValueError(last)

    def find_days_of_year(year: int) -> Span:
        return date_of(year, month, first)[0], date_of(year, month, last)[1]

    return DateExpression(yearly=find_days_of_year)


def _months(seen: DateMatch) -> DateExpression:
    first, last = read_number(seen["first"]), read_number(seen["last"])
    return DateExpression(yearly=months(first, (last - first) % 12 + 1))


def _day(seen: DateMatch) -> DateExpression:
    return DateExpression(day=read_number(seen["day"]))


def _shifted_month(seen: DateMatch) -> DateExpression:
    return ago(seen.now, "month", -SHIFTS[seen["shift"]])


def _week(seen: DateMatch) -> DateExpression:
    return DateExpression(span=week_of(seen.now, SHIFTS[seen["shift"]]))


def _weekend(seen: DateMatch) -> DateExpression:
    if seen["shift"]:
        return DateExpression(span=weekend_of(seen.now, SHIFTS[seen["shift"]]))
    span = weekend_of(seen.now)
    return DateExpression(span=span if span[0] <= seen.now else weekend_of(seen.now, -1), loose=True)


def _weekday(seen: DateMatch) -> DateExpression:
    weekday = WEEKDAYS[seen["weekday"]]
    if not seen["shift"]:
        return DateExpression(weekday=weekday, loose=True)
    return DateExpression(span=day_of(week_of(seen.now, SHIFTS[seen["shift"]])[0] + weekday * DAY))


def _named_day(seen: DateMatch) -> DateExpression:
    return DateExpression(span=day_of(seen.now + DAYS[seen.match[0]] * DAY))


def _season(seen: DateMatch) -> DateExpression:
    yearly = CHINESE_SEASONS[seen["season"]]
    if seen["part"]:
        place = 0 if seen["part"] in "初早" else 2
        return DateExpression(yearly=lambda year: calendar.third_of(yearly(year), place))
    return DateExpression(yearly=yearly, loose="季" in seen.match[0])


def _feast(seen: DateMatch) -> DateExpression:
    yearly = CHINESE_HOLIDAYS[seen["name"]]
    if seen["long"] and seen["name"] in LONG_HOLIDAYS:
        return DateExpression(yearly=lambda year: (yearly(year)[0] - DAY, yearly(year)[1] + DAY))
    return DateExpression(yearly=yearly)


def _year_part(seen: DateMatch) -> DateExpression:
    return DateExpression(yearly=months(*YEAR_PARTS[seen.match[0]]))


def _quarter(seen: DateMatch) -> DateExpression:
    return DateExpression(yearly=months(3 * read_number(seen["place"]) - 2, 3))


def _month_part(seen: DateMatch) -> DateExpression:
    place = {"初": 0, "中": 1, "底": 2, "末": 2}[seen["part"]]
    spans = [calendar.third_of(calendar.month_of(seen.now.year, seen.now.month - back), place) for back in (0, 1)]
    return DateExpression(span=spans[0] if spans[0][0] <= seen.now else spans[1], loose=True)


def _ago(seen: DateMatch) -> DateExpression:
    unit = UNITS[seen["unit"]]
    if seen["count"] == "几":
        return DateExpression(span=calendar.few_ago(seen.now, unit))
    if seen["count"] != "半" and not seen["half"]:
        return ago(seen.now, unit, read_number(seen["count"]))
    if unit == "day":
        return DateExpression(span=day_of(seen.now - DAY / 2))
    whole = calendar.step(seen.now, unit, -(0 if seen["count"] == "半" else read_number(seen["count"])))
    if unit == "year":
        return DateExpression(span=unit_of(calendar.add_months(whole, -6), "month"))
    return DateExpression(span=unit_of(whole - (15 if unit == "month" else 3) * DAY, "week"))


def _hours_ago(seen: DateMatch) -> DateExpression:
    hours = seen["unit"] != "分钟"
    count = 0.5 if seen["count"] == "半" else float(read_number(seen["count"]))
    back = seen.now - (timedelta(hours=count) if hours else timedelta(minutes=count))
    slack = timedelta(minutes=30 if hours and count >= 1 else 10)
    return DateExpression(span=(back - slack, back + slack), exact=True)


def _later(seen: DateMatch) -> DateExpression:
    return ago(seen.now, UNITS[seen["unit"]], -read_number(seen["count"]))


def _rolling(seen: DateMatch) -> DateExpression:
    sign = 1 if seen["which"] in ("未来", "今后") else -1
    unit, count = UNITS[seen["unit"]], seen["count"]
    if count == "半":
        span = (
            calendar.rolling(seen.now, "month", sign * 6)
            if unit == "year"
            else calendar.rolling(seen.now, "day", sign * 15)
        )
        return DateExpression(span=span)
    number = calendar.FEW if count == "几" else read_number(count)
    if unit == "quarter":
        unit, number = "month", 3 * number
    span = calendar.rolling(seen.now, unit, sign * number)
    if seen["which"] == "前":
        span = span[0], day_of(seen.now)[0]
    return DateExpression(span=span)


def _rolling_hours(seen: DateMatch) -> DateExpression:
    count = read_number(seen["count"])
    back = timedelta(minutes=count) if seen["unit"] == "分钟" else timedelta(hours=count)
    return DateExpression(span=(seen.now - back, seen.now), exact=True)


def _just_now(seen: DateMatch) -> DateExpression:
    return DateExpression(span=(seen.now - timedelta(hours=1), seen.now), exact=True)


def _decade(seen: DateMatch) -> DateExpression:
    words = seen["decade"]
    decade = int(words) if words.isdigit() else read_number(words)
    century = 0 if decade > 100 else 1900 if decade > 20 else 2000
    return DateExpression(span=calendar.year_of(century + decade, 10))


def _clock(seen: DateMatch) -> DateExpression:
    hour, part = read_number(seen["hour"]), seen["part"]
    minute = 30 if seen["half"] else 15 * read_number(seen["quarter"]) if seen["quarter"] else 0
    minute = read_number(seen["minute"]) if seen["minute"] else minute
    if hour > 24 or minute > 59:
        raise ValueError(hour)
    if part and hour < 12 and HOURS[part][0] >= 11 and not (part in ("中午", "正午") and hour == 11):
        hour += 12
    return DateExpression(hours=(hour + minute / 60, hour + minute / 60 + 1))


def _part(seen: DateMatch) -> DateExpression:
    return DateExpression(hours=HOURS[seen.match[0]])


def either(words: Mapping[str, object]) -> str:
    """Return an alternative of words, the longest first."""
    return "(?:" + "|".join(sorted(words, key=len, reverse=True)) + ")"


def rule(pattern: str, make: Make) -> Rule:
    """Pair a pattern with the function that makes its date expression."""
    return re.compile(pattern), make


BARE_HOLIDAYS = {name: holiday for name, holiday in CHINESE_HOLIDAYS.items() if name != "十一"}
"""Holidays whose names need no other word; the remaining one can also mean the number eleven."""
FULL_HOURS = {word: hours for word, hours in HOURS.items() if len(word) > 1}
TO = " ?(?:-|~|至|到) ?"
RULES = (
    *NUMERIC,
    rule("(?<![0-9])(?P<year>(?:19|20)[0-9]{2}|[一二][零〇一二三四五六七八九]{3}) ?年(?!级|代)", _year),
    rule("(?<![0-9])(?P<year>[0-9]{2})年(?=[0-9]{1,2}月)", _year),
    rule(either(YEARS), _named_year),
    rule(f"{NOT_COUNTED}(?P<month>{MONTH}) ?月(?:份)?(?!初[一二三四五六七八九十]|天|饼|亮)", _month),
    rule(f"{NOT_COUNTED}(?P<month>{MONTH}) ?月 ?(?P<day>{DAY_NUMBER}) ?[日号]", _date),
    rule(
        f"{NOT_COUNTED}(?:从|自)?(?P<month>{MONTH})月(?P<first>{DAY_NUMBER})[日号]?{TO}(?P<last>{DAY_NUMBER})[日号]",
        _days,
    ),
    rule(
        f"{NOT_COUNTED}(?:从|自)?(?P<first>{MONTH})(?:月份?)?{TO}(?P<last>{MONTH})月(?!{DAY_NUMBER}[日号])(?:份)?",
        _months,
    ),
    rule(f"(?<=[和与及、,到至~-])(?P<day>{DAY_NUMBER})[日号]", _day),
    rule(f"(?<=[在于])(?P<day>{DAY_NUMBER})[日号](?=[,。?!的]|那天|当天|$|上午|下午|晚上|早上|中午|凌晨)", _day),
    rule(f"(?<=月)的?(?P<day>{DAY_NUMBER})[日号]", _day),
    rule(f"(?P<shift>{SHIFT})(?:一)?个?月(?:份)?", _shifted_month),
    rule(f"(?P<shift>{SHIFT})(?:一)?个?{WEEK}(?![一二三四五六日天末围边年])", _week),
    rule(f"(?P<shift>{SHIFT})(?:一)?个?{WEEK}末", _weekend),
    rule(f"{NOT_COUNTED}{WEEK}末", _weekend),
    rule(f"(?P<shift>{SHIFT})(?:一)?个?{WEEK}(?P<weekday>[一二三四五六日天])(?![次个两])", _weekday),
    rule(f"{NOT_COUNTED}{WEEK}(?P<weekday>[一二三四五六日天])(?![次个两])", _weekday),
    rule("大前天|大后天|前天|前日|昨天|昨日|今天|今日|明天|明日|后天|[昨今明](?=[早晚夜])", _named_day),
    rule("(?<![春夏秋冬])(?P<part>[初早深晚])?(?P<season>[春夏秋冬])(?:天|季|日(?!本))", _season),
    rule("(?P<part>[初早深晚])(?P<season>[春夏秋冬])", _season),
    rule("(?<=年)(?P<season>[春夏秋冬])(?!节)", _season),
    rule(
        f"(?<!通)(?P<name>{either(BARE_HOLIDAYS)})(?!广场|路|大道|商圈|上河|度)(?:节)?(?P<long>期间|假期|小长假|长假|黄金周|放假)?",
        _feast,
    ),
    rule("(?P<name>十一)(?P<long>假期|长假|黄金周|期间|放假)", _feast),
    rule(either(YEAR_PARTS), _year_part),
    rule("(?:第)?(?P<place>[一二三四1-4])季度", _quarter),
    rule("(?<![0-9一二三四五六七八九十个上下本这])月(?P<part>[初中底末])(?!旬)", _month_part),
    rule(f"(?<![0-9])(?P<count>{NUMBER}|几|半)(?:个)?(?P<unit>天|周|星期|礼拜|年)(?:之|以)?前", _ago),
    rule(f"(?P<count>{NUMBER}|几|半)个(?P<unit>月)(?:之|以)?前", _ago),
    rule(f"(?<![0-9])(?P<count>{NUMBER})(?P<unit>年)(?P<half>半)(?:之|以)?前", _ago),
    rule(f"(?P<count>{NUMBER})个(?P<half>半)(?P<unit>月)(?:之|以)?前", _ago),
    rule(f"(?P<count>{NUMBER}|半)个?(?P<unit>小时|钟头|分钟)(?:之|以)?前", _hours_ago),
    rule(f"(?<![一-鿿])(?P<count>{NUMBER})(?:个)?(?P<unit>天|周|星期|礼拜|月|年)(?:之|以)?后", _later),
    rule(
        f"(?P<which>最近|过去|近|未来|今后)(?:的)?(?P<count>{NUMBER}|几|半)个?"
        "(?P<unit>天|周|星期|礼拜|月|年|季度)(?!级|前)(?:以来|来|内|里)?",
        _rolling,
    ),
    rule("(?<![的日号])(?P<which>这|前)(?P<count>[几两])(?P<unit>天)", _rolling),
    rule(f"(?:最近|过去|近)的?(?P<count>{NUMBER})个?(?P<unit>小时|钟头|分钟)", _rolling_hours),
    rule("刚才", _just_now),
    rule("(?:上世纪|二十世纪)?(?P<decade>(?:(?:19|20)?[0-9]|[二三四五六七八九]?十)0?)年代", _decade),
    rule(
        f"(?P<part>{either(FULL_HOURS)}|[早晚])?(?P<hour>{NUMBER})[点时](?!间|候|代|段|刻[不]|了)"
        f"(?:(?P<half>半)|(?P<quarter>[一三])刻|(?P<minute>{NUMBER})分?|钟|整)?",
        _clock,
    ),
    rule(f"(?P<part>{either(FULL_HOURS)})?(?P<hour>[0-9]{{1,2}}):(?P<minute>[0-9]{{2}})", _clock),
    rule(either(FULL_HOURS), _part),
    rule("(?<=[昨今明])[早晚夜]", _part),
)
