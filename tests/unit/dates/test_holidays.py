"""Every holiday and season is found by its name, on its days of 2026 as calendars have them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recollect.core.dates.holidays import CHINESE_HOLIDAYS, CHINESE_SEASONS, ENGLISH_HOLIDAYS, ENGLISH_SEASONS
from support.memories.date_phrases import find, read_span

NEXT_YEAR = datetime(2027, 6, 1, tzinfo=UTC)
ENDINGS = {"春": "天", "夏": "天", "秋": "天", "冬": "天", "十一": "假期"}
"""Without one, 十一 is eleven."""
NAMES = """
2026-01-01  new year's day, new year's, new year, 元旦
2026-01-15/2026-03-01  寒假
2026-01-19  martin luther king day
2026-02-14  valentine's day, valentine's, 情人节
2026-02-16  除夕, 大年三十, 年三十
2026-02-16/2026-02-24  chinese new year, lunar new year, spring festival, 春节, 过年
2026-02-17  大年初一
2026-02-18  大年初二
2026-02-19  大年初三
2026-03-01/2026-06-01  spring, 春
2026-03-03  元宵节
2026-03-08  women's day, 妇女节, 三八节
2026-03-12  植树节
2026-03-17  st patrick's day
2026-04-01  april fools' day, april fool's day, 愚人节
2026-04-03  good friday
2026-04-05  easter, 清明
2026-04-06  easter monday
2026-04-22  earth day
2026-05-01/2026-05-06  五一, 劳动节
2026-05-04  青年节
2026-05-10  mother's day, 母亲节
2026-05-25  memorial day
2026-06-01  儿童节, 六一
2026-06-01/2026-09-01  summer, 夏
2026-06-18  618
2026-06-19  juneteenth, dragon boat festival, 端午
2026-06-21  father's day, 父亲节
2026-07-01  建党节
2026-07-01/2026-09-01  暑假
2026-07-04  independence day, fourth of july, 4th of july
2026-08-01  建军节
2026-08-19  七夕
2026-09-01/2026-12-01  autumn, fall, 秋
2026-09-07  labor day
2026-09-10  教师节
2026-09-25  mid autumn festival, 中秋
2026-10-01/2026-10-08  国庆, 十一
2026-10-18  重阳
2026-10-31  halloween, 万圣节
2026-11-11  veterans day, 双十一, 双11
2026-11-26  thanksgiving, 感恩节
2026-11-27  black friday
2026-12-01/2027-03-01  winter, 冬
2026-12-12  双十二, 双12
2026-12-24  christmas eve, 平安夜
2026-12-25  christmas, xmas, 圣诞
2026-12-26  boxing day
2026-12-31  new year's eve, 跨年夜
"""
DAYS = {
    name: days
    for line in NAMES.split("\n")
    if line
    for days, _, names in [line.partition("  ")]
    for name in names.split(", ")
}


def test_every_name_has_its_days_here():
    assert DAYS.keys() == {*ENGLISH_HOLIDAYS, *CHINESE_HOLIDAYS, *ENGLISH_SEASONS, *CHINESE_SEASONS}


@pytest.mark.parametrize("name", DAYS)
def test_a_holiday_is_found_by_its_name(name):
    chinese = name in CHINESE_HOLIDAYS or name in CHINESE_SEASONS
    said = name + ENDINGS.get(name, "")
    text = f"2026年{said}我们去了哪里？" if chinese else f"Where were we on {said} 2026?"
    assert find(text, "zh" if chinese else "en", NEXT_YEAR) == [read_span(DAYS[name])]
