"""Holidays and seasons: their dates in a given year."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from recollect.core.dates.calendar import DAY, Span, Yearly, date_of, easter_of, month_of, weekday_in

LUNAR: Mapping[int, tuple[tuple[int, int], ...]] = {
    2015: ((2, 19), (6, 20), (8, 20), (9, 27), (10, 21)),
    2016: ((2, 8), (6, 9), (8, 9), (9, 15), (10, 9)),
    2017: ((1, 28), (5, 30), (8, 28), (10, 4), (10, 28)),
    2018: ((2, 16), (6, 18), (8, 17), (9, 24), (10, 17)),
    2019: ((2, 5), (6, 7), (8, 7), (9, 13), (10, 7)),
    2020: ((1, 25), (6, 25), (8, 25), (10, 1), (10, 25)),
    2021: ((2, 12), (6, 14), (8, 14), (9, 21), (10, 14)),
    2022: ((2, 1), (6, 3), (8, 4), (9, 10), (10, 4)),
    2023: ((1, 22), (6, 22), (8, 22), (9, 29), (10, 23)),
    2024: ((2, 10), (6, 10), (8, 10), (9, 17), (10, 11)),
    2025: ((1, 29), (5, 31), (8, 29), (10, 6), (10, 29)),
    2026: ((2, 17), (6, 19), (8, 19), (9, 25), (10, 18)),
    2027: ((2, 6), (6, 9), (8, 8), (9, 15), (10, 8)),
    2028: ((1, 26), (5, 28), (8, 26), (10, 3), (10, 26)),
    2029: ((2, 13), (6, 16), (8, 16), (9, 22), (10, 16)),
    2030: ((2, 3), (6, 5), (8, 5), (9, 12), (10, 5)),
    2031: ((1, 23), (6, 24), (8, 24), (10, 1), (10, 24)),
    2032: ((2, 11), (6, 12), (8, 12), (9, 19), (10, 12)),
    2033: ((1, 31), (6, 1), (8, 1), (9, 8), (10, 1)),
    2034: ((2, 19), (6, 20), (8, 20), (9, 27), (10, 20)),
    2035: ((2, 8), (6, 10), (8, 10), (9, 16), (10, 9)),
}
"""Dates of the Chinese calendar: New Year, Dragon Boat, Double Seventh, Mid-Autumn, Double Ninth. Checked against the
new moons by Meeus (Astronomical Algorithms, chapter 49)."""


def season(first_month: int, year: int) -> Span:
    """Return the three months of a season; winter extends into the next year."""
    return month_of(year, first_month, 3)


def months(first: int, count: int) -> Yearly:
    """Return a yearly period of `count` months."""
    return lambda year: month_of(year, first, count)


def fixed(month: int, day: int, count: int = 1) -> Yearly:
    """Return a holiday on the same date every year."""
    return lambda year: date_of(year, month, day, count)


def lunar(which: int, shift: int = 0, count: int = 1) -> Yearly:
    """Return a holiday `shift` days after one of the table; it is unknown in other years."""

    def find_lunar_days(year: int) -> Span:
        if year not in LUNAR:
            raise ValueError(year)
        start = date_of(year, *LUNAR[year][which])[0] + shift * DAY
        return start, start + count * DAY

    return find_lunar_days


def shifted(yearly: Yearly, days: int) -> Yearly:
    """Return a holiday that is `days` days after another."""

    def find_shifted_days(year: int) -> Span:
        start, end = yearly(year)
        return start + days * DAY, end + days * DAY

    return find_shifted_days


def on_weekday(month: int, weekday: int, place: int) -> Yearly:
    """Return a holiday on the first, second, ... weekday of a month."""
    return lambda year: weekday_in(year, month, weekday, place)


def _qingming(year: int) -> Span:
    """Return the day on which the sun's longitude is 15 degrees; correct from 2000 to 2099."""
    return date_of(year, 4, int(year % 100 * 0.2422 + 4.81) - year % 100 // 4)


THANKSGIVING = on_weekday(11, 3, 4)
ENGLISH_HOLIDAYS: Mapping[str, Yearly] = {
    "christmas eve": fixed(12, 24),
    "christmas": fixed(12, 25),
    "xmas": fixed(12, 25),
    "boxing day": fixed(12, 26),
    "new year's eve": fixed(12, 31),
    "new year's day": fixed(1, 1),
    "new year's": fixed(1, 1),
    "new year": fixed(1, 1),
    "valentine's day": fixed(2, 14),
    "valentine's": fixed(2, 14),
    "st patrick's day": fixed(3, 17),
    "april fools' day": fixed(4, 1),
    "april fool's day": fixed(4, 1),
    "independence day": fixed(7, 4),
    "fourth of july": fixed(7, 4),
    "4th of july": fixed(7, 4),
    "halloween": fixed(10, 31),
    "thanksgiving": THANKSGIVING,
    "black friday": shifted(THANKSGIVING, 1),
    "easter": easter_of,
    "good friday": shifted(easter_of, -2),
    "easter monday": shifted(easter_of, 1),
    "mother's day": on_weekday(5, 6, 2),
    "father's day": on_weekday(6, 6, 3),
    "memorial day": on_weekday(5, 0, -1),
    "labor day": on_weekday(9, 0, 1),
    "martin luther king day": on_weekday(1, 0, 3),
    "women's day": fixed(3, 8),
    "earth day": fixed(4, 22),
    "veterans day": fixed(11, 11),
    "juneteenth": fixed(6, 19),
    "chinese new year": lunar(0, -1, 8),
    "lunar new year": lunar(0, -1, 8),
    "spring festival": lunar(0, -1, 8),
    "dragon boat festival": lunar(1),
    "mid autumn festival": lunar(3),
}
CHINESE_HOLIDAYS: Mapping[str, Yearly] = {
    "元旦": fixed(1, 1),
    "情人节": fixed(2, 14),
    "妇女节": fixed(3, 8),
    "三八节": fixed(3, 8),
    "植树节": fixed(3, 12),
    "愚人节": fixed(4, 1),
    "清明": _qingming,
    "五一": fixed(5, 1, 5),
    "劳动节": fixed(5, 1, 5),
    "青年节": fixed(5, 4),
    "母亲节": on_weekday(5, 6, 2),
    "儿童节": fixed(6, 1),
    "六一": fixed(6, 1),
    "父亲节": on_weekday(6, 6, 3),
    "建党节": fixed(7, 1),
    "建军节": fixed(8, 1),
    "教师节": fixed(9, 10),
    "国庆": fixed(10, 1, 7),
    "十一": fixed(10, 1, 7),
    "万圣节": fixed(10, 31),
    "双十一": fixed(11, 11),
    "双11": fixed(11, 11),
    "感恩节": THANKSGIVING,
    "双十二": fixed(12, 12),
    "双12": fixed(12, 12),
    "平安夜": fixed(12, 24),
    "圣诞": fixed(12, 25),
    "跨年夜": fixed(12, 31),
    "除夕": lunar(0, -1),
    "大年三十": lunar(0, -1),
    "年三十": lunar(0, -1),
    "大年初一": lunar(0),
    "大年初二": lunar(0, 1),
    "大年初三": lunar(0, 2),
    "春节": lunar(0, -1, 8),
    "过年": lunar(0, -1, 8),
    "元宵节": lunar(0, 14),
    "端午": lunar(1),
    "七夕": lunar(2),
    "中秋": lunar(3),
    "重阳": lunar(4),
    "寒假": lambda year: (date_of(year, 1, 15)[0], month_of(year, 3)[0]),
    "暑假": months(7, 2),
    "618": fixed(6, 18),
}
ENGLISH_SEASONS: Mapping[str, Yearly] = {
    "spring": partial(season, 3),
    "summer": partial(season, 6),
    "autumn": partial(season, 9),
} | {"fall": partial(season, 9), "winter": partial(season, 12)}
CHINESE_SEASONS: Mapping[str, Yearly] = {
    "春": partial(season, 3),
    "夏": partial(season, 6),
    "秋": partial(season, 9),
    "冬": partial(season, 12),
}
