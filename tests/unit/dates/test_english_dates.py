"""What English says of times, asked on Wednesday, 10 July 2024, at 15:00, means the period that stands beside it."""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta

import pytest

from recollect.core.dates.english import before, open_side
from recollect.core.dates.english_rules import either, rule
from support.memories.date_phrases import NOW, find, read_moment, read_span

DAY = timedelta(days=1)
ONES = "one two three four five six seven eight nine"
TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
ORDINALS = """first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth
    fifteenth sixteenth seventeenth eighteenth nineteenth twentieth twenty-first twenty-second twenty-third
    twenty-fourth twenty-fifth twenty-sixth twenty-seventh twenty-eighth twenty-ninth thirtieth thirty-first"""


def read_table(table):
    """Read lines of what is said and what it means; nothing behind the bar means that no time is named."""
    pairs = [line.partition(" | ") for line in table.strip().splitlines()]
    return [(said.strip(" |"), [read_span(span) for span in meant.split(", ") if span]) for said, _, meant in pairs]


COUNTED = """
a day ago | 2024-07-09
couple days ago | 2024-07-08
couple of days ago | 2024-07-08
a couple days ago | 2024-07-08
a couple of weeks ago | 2024-06-24/2024-07-01
10 days back | 2024-06-30
several weeks ago | 2024-05-27/2024-07-01
some months ago | 2024-01/2024-06
a few years back | 2018/2023
half a month ago | 2024-06-24/2024-07-01
two and a half years ago | 2022-01
two years and a half ago | 2022-01
three and a half months ago | 2024-03-25/2024-04-01
a month and a half ago | 2024-05-20/2024-05-27
an hour ago | 2024-07-10T13:30/2024-07-10T14:30
half an hour ago | 2024-07-10T14:20/2024-07-10T14:40
ten minutes ago | 2024-07-10T14:40/2024-07-10T15:00
in two weeks | 2024-07-22/2024-07-29
in 3 months' time | 2024-10
in a year | 2025
5 days from now | 2024-07-15
two years from today | 2026
the last three days | 2024-07-07/2024-07-11
coming three months | 2024-07-10/2024-10-11
previous several weeks | 2024-05-29/2024-07-11
next few years | 2024-07-10/2030-07-11
over the last month | 2024-06-10/2024-07-11
the last hour | 2024-07-10T14:00/2024-07-10T15:00
past 30 minutes | 2024-07-10T14:30/2024-07-10T15:00
"""
NAMED = """
this May | 2024-05
previous July | 2023-07
last August | 2023-08
current August | 2024-08
coming June | 2025-06
next July | 2025-07
this summer | 2024-06/2024-09
next summer | 2025-06/2025-09
last summer | 2023-06/2023-09
last winter | 2023-12/2024-03
this winter | 2024-12/2025-03
this Christmas | 2024-12-25
next Christmas | 2024-12-25
mid-autumn festival 2023 | 2023-09-29
over the summer | 2024-06/2024-09
fall 2020 | 2020-09/2020-12
sept 2022 | 2022-09
Sept. 5 | 2023-09-05
Mar-2022 | 2022-03
July | 2024-07
during March | 2024-03
March 5 miles |
in 2000 steps |
on the 10th | 2024-07-10
on the 11th of last month | 2024-06-11
by the 31st. | 2024-05-31
since the 5th floor |
in 2019 | 2019
year 2019 | 2019
circa 2010 | 2009-07-03/2011-07-02
the 80s | 1980/1990
the 30s | 1930/1940
the '20s | 2020/2030
the 10s | 2010/2020
2010s | 2010/2020
q1 | 2024-01/2024-04
q4 2023 | 2023-10/2024
first quarter of 2022 | 2022-01/2022-04
third quarter 2021 | 2021-07/2021-10
the last quarter of 2022 | 2022-10/2023
"""
NEAR = """
day before yesterday | 2024-07-08
the-day-before-yesterday | 2024-07-08
over the weekend of 18 May | 2024-05-18/2024-05-20
over the weekend, on 8 July | 2024-07-08
day after tomorrow | 2024-07-12
the night before last | 2024-07-08T18:00/2024-07-09T06:00
this afternoon | 2024-07-10T12:00/2024-07-10T18:00
this evening | 2024-07-10T17:00/2024-07-11
yesterday early-morning | 2024-07-09/2024-07-09T06:00
yesterday in the morning | 2024-07-09T05:00/2024-07-09T12:00
yesterday at lunchtime | 2024-07-09T11:00/2024-07-09T14:00
previous month | 2024-06
coming month | 2024-08
current year | 2024
last quarter | 2024-04/2024-07
this quarter | 2024-07/2024-10
next quarter | 2024-10/2025
next weekend | 2024-07-20/2024-07-22
coming weekend | 2024-07-13/2024-07-15
the year before last | 2022
the weekend before last | 2024-06-29/2024-07-01
earlier this week | 2024-07-08/2024-07-11
later this week | 2024-07-10/2024-07-15
later this month | 2024-07-10/2024-08
the other night | 2024-07-03/2024-07-10
last Wednesday | 2024-07-03
last Thursday | 2024-07-04
past Tuesday | 2024-07-09
previous Sunday | 2024-07-07
this Wednesday | 2024-07-10
this Sunday | 2024-07-14
next Wednesday | 2024-07-17
next Sunday | 2024-07-21
coming Monday | 2024-07-15
coming Wednesday | 2024-07-17
coming Thursday | 2024-07-11
current Friday | 2024-07-12
on Wednesday | 2024-07-10
by tues | 2024-07-09
on thur | 2024-07-04
until thurs | 1924-07-05/2024-07-05
every Monday |
"""
CLOCKS = """
yesterday at 12am | 2024-07-09T00:00/2024-07-09T01:00
yesterday at 12 pm | 2024-07-09T12:00/2024-07-09T13:00
yesterday at 9 a.m. | 2024-07-09T09:00/2024-07-09T10:00
yesterday at 1:30 p.m. | 2024-07-09T13:30/2024-07-09T14:30
yesterday at 13pm | 2024-07-09
yesterday around 15:45 | 2024-07-09T15:45/2024-07-09T16:45
yesterday at 10:59 | 2024-07-09T10:59/2024-07-09T11:59
yesterday at 10:60 | 2024-07-09
yesterday at 24:00 | 2024-07-10T00:00/2024-07-10T01:00
yesterday at 25:00 | 2024-07-09
at 3 pm |
"""
RANGES = """
3 to 3 May | 2024-05-03
from 7 to 3 May | 2024-05-03
May 5-3 | 2024-05-05
between 3 and 7 May | 2024-05-03/2024-05-08
between May 3 and 7, 2022 | 2022-05-03/2022-05-08
from the 3rd to the 7th of May | 2024-05-03/2024-05-08
May 3 through the 7th | 2024-05-03/2024-05-08
3, 7 May 2023 | 2023-05-03, 2023-05-07
3rd & 7th of May | 2024-05-03, 2024-05-07
5th to 5th of May | 2024-05-05
from 5 May up to 7 May | 2024-05-05/2024-05-08
from 28 December 2023 to 3 January | 2023-12-28/2024-01-04
5 May / 7 May | 2024-05-05, 2024-05-07
"""
PARTS = """
mid-May | 2024-05-11/2024-05-21
start of May | 2024-05-01/2024-05-11
the middle of 2023 | 2023-05/2023-09
end of 2023 | 2023-09/2024
first half of May | 2024-05-01/2024-05-16
second half of May | 2024-05-16/2024-06
1st half of 2023 | 2023-01/2023-07
2nd half of 2023 | 2023-07/2024
2nd weekend of May | 2024-05-11/2024-05-13
last weekend of May | 2024-05-25/2024-05-27
the final weekend in May | 2024-05-25/2024-05-27
1st week of May | 2024-05-01/2024-05-08
the 3rd week of May | 2024-05-15/2024-05-22
final week of May | 2024-05-25/2024-06
first day of May | 2024-05-01
first 3 days of May | 2024-05-01/2024-05-04
final 3 days of May | 2024-05-29/2024-06
last month of 2023 | 2023-12
first 2 months of 2023 | 2023-01/2023-03
first 40 days of May | 2024-05
last 40 days of May | 2024-05
first week of early March | 2024-03-01/2024-03-08
"""
BESIDE = """
the day before May 5 | 2024-05-04
the week after May 5 | 2024-05-06/2024-05-13
the month following May 5 | 2024-05-06/2024-06-06
the year after 2020 | 2021
the weekend before May 5 | 2024-04-27/2024-04-29
the weekend after 10 May | 2024-05-11/2024-05-13
the weekend after 11 May | 2024-05-18/2024-05-20
2 days before May 5 | 2024-05-03
2 months after May 5 | 2024-07-05
the Saturday before May 5 | 2024-05-04
the Sunday before May 5 | 2024-04-28
the Monday before May 5 | 2024-04-29
the Monday after May 5 | 2024-05-06
the Sunday following May 5 | 2024-05-12
the week of May 5 | 2024-04-29/2024-05-06
"""
OPEN = """
ever since May | 2024-05-01/2024-07-11
starting from May 5 | 2024-05-05/2024-07-11
since today | 2024-07-10/2024-07-11
since tomorrow | 2024-07-11/2124-07-11
after next week | 2024-07-22/2124-07-22
prior to May 5 | 1924-05-05/2024-05-05
up until May 5 | 1924-05-06/2024-05-06
no later than 2020 | 1921/2021
around May | 2024-04-16/2024-06-16
around May 5 | 2024-05-02/2024-05-09
from May 5 on | 2024-05-05/2024-07-11
in 2020 or later | 2020-01-01/2024-07-11
in 2020 or earlier | 1921/2021
"""


@pytest.mark.parametrize(
    ("said", "meant"),
    read_table("\n".join(map(str.strip, (COUNTED, NAMED, NEAR, CLOCKS, RANGES, PARTS, BESIDE, OPEN)))),
)
def test_what_is_said_means_one_time(said, meant):
    assert find(said, "en") == meant


ON_OTHER_DAYS = [
    ("2024-07-13T00:00", "on the weekend", "2024-07-13/2024-07-15"),
    ("2024-07-12T23:59", "on the weekend", "2024-07-06/2024-07-08"),
    ("2024-07-12T23:59", "the coming weekend", "2024-07-13/2024-07-15"),
    ("2024-07-13T00:00", "the coming weekend", "2024-07-20/2024-07-22"),
    ("2024-07-14T12:00", "last Sunday", "2024-07-07"),
    ("2024-07-14T12:00", "last Monday", "2024-07-08"),
    ("2024-07-14T12:00", "next Monday", "2024-07-15"),
    ("2024-03-31T12:00", "last quarter", "2023-10/2024"),
    ("2024-03-31T12:00", "this quarter", "2024-01/2024-04"),
    ("2024-12-01T12:00", "next quarter", "2025-01/2025-04"),
    ("2024-03-31T12:00", "a month ago", "2024-02"),
    ("2024-01-15T12:00", "this winter", "2023-12/2024-03"),
    ("2024-01-15T12:00", "next winter", "2024-12/2025-03"),
    ("2024-03-01T00:00", "last winter", "2023-12/2024-03"),
    ("2024-02-29T23:59", "last winter", "2022-12/2023-03"),
    ("2024-12-31T12:00", "next February", "2025-02"),
    ("2024-01-01T00:30", "an hour ago", "2023-12-31T23:00/2024-01-01T00:00"),
]


@pytest.mark.parametrize(("asked", "said", "meant"), ON_OTHER_DAYS)
def test_the_same_words_mean_another_time_on_another_day(asked, said, meant):
    assert find(said, "en", read_moment(asked)) == [read_span(meant)]


def test_every_number_below_a_hundred_may_be_a_word():
    ones = ONES.split()
    words = [
        *ones,
        *TEENS.split(),
        *(f"{ten}{one}" for ten in TENS.split() for one in ("", *(f"-{one}" for one in ones))),
    ]
    today = NOW.replace(hour=0)
    for count, word in enumerate(words, start=1):
        start = today - count * DAY
        assert find(f"{word} days ago", "en") == find(f"{count} days ago", "en") == [(start, start + DAY)], word
    assert count == 99


def test_every_day_of_a_month_may_be_a_word():
    for day, word in enumerate(ORDINALS.split(), start=1):
        start = datetime(2023, 12, day, tzinfo=UTC)
        assert find(f"the {word} of December 2023", "en") == [(start, start + DAY)], word
    assert day == 31


@pytest.mark.parametrize("month", range(1, 13))
def test_every_month_has_a_long_and_a_short_name(month):
    for name in (calendar.month_name[month], calendar.month_abbr[month]):
        assert find(f"in {name} 2022", "en") == [read_span(f"2022-{month:02}")]
        assert find(f"{name} 5, 2022", "en") == [read_span(f"2022-{month:02}-05")]


@pytest.mark.parametrize("weekday", range(7))
def test_every_weekday_has_a_long_and_a_short_name(weekday):
    for name in (calendar.day_name[weekday], calendar.day_abbr[weekday]):
        assert find(f"next {name}", "en") == [read_span(f"2024-07-{15 + weekday}")]
    assert find(f"I saw her {calendar.day_name[weekday]}", "en") == [
        read_span(f"2024-07-{8 + weekday if weekday < 3 else 1 + weekday:02}")
    ]


def test_longer_words_are_tried_first_and_a_dash_is_a_blank():
    pattern = re.compile(either({"new year": 1, "new year's eve": 2, "a.m": 3}))
    found = [each[0] for each in pattern.finditer("new-year's eve, new year, a.m, axm")]
    assert found == ["new-year's eve", "new year", "a.m"]


def test_a_rule_matches_whole_words():
    pattern, make = rule("may|june", len)
    assert make is len
    assert [each.start() for each in pattern.finditer("may, dismay, mayor, june")] == [0, 20]


def test_words_before_a_date_stand_directly_before_it():
    pattern, side = open_side("since|after", "since")
    assert side == "since"
    assert all(pattern.search(text) for text in ("since ", "ever since the ", "after-"))
    assert not any(pattern.search(text) for text in ("since", "since her ", "hereafter "))
    assert before("since|after", str)[0].search("since ")
    assert before("since|after", str)[1] is str
