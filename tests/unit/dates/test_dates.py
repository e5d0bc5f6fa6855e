"""Times are found in English and Chinese, mean what people mean, and nothing is taken for one that is none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import process_time
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.dates.chinese_rules import YEAR_PARTS, read_number
from recollect.core.dates.english_rules import DAYS, HOURS, LEAD, MONTHS, NUMBERS, SHIFTS, WEEKDAYS
from recollect.core.dates.find import find_periods
from recollect.core.dates.holidays import CHINESE_HOLIDAYS, ENGLISH_HOLIDAYS, LUNAR
from recollect.core.dates.periods import MAX_PERIODS, choose_periods, rate, rate_moments, to_microseconds
from recollect.models.recall import Period
from support.memories.date_phrases import NOW, find, read_phrases, read_span

NEW_YORK, SHANGHAI = ZoneInfo("America/New_York"), ZoneInfo("Asia/Shanghai")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.mark.parametrize(("text", "meant"), read_phrases("en"))
def test_english_phrases(text, meant):
    assert find(text, "en") == meant


@pytest.mark.parametrize(("text", "meant"), read_phrases("zh"))
def test_chinese_phrases(text, meant):
    assert find(text, "zh") == meant


@pytest.mark.parametrize("text", [text for text, _ in read_phrases("traps")])
def test_what_names_no_time(text):
    assert find_periods(text, NOW, UTC) == []


@pytest.mark.parametrize("name", ["en", "zh"])
def test_there_are_a_hundred_phrases_of_each(name):
    phrases = [text for text, meant in read_phrases(name) if meant]
    assert len(set(phrases)) == len(phrases) >= 100


MORE = [
    ("en", "What did we do on Tuesday, 4 June 2024?", ["2024-06-04"]),
    ("en", "What was shown on the Sunday before October 25, 2022?", ["2022-10-23"]),
    ("en", "Where were we the weekend before July 17, 2023?", ["2023-07-15/2023-07-17"]),
    ("en", "How was the year before 2020?", ["2019"]),
    ("en", "What did I do from early March to late June 2023?", ["2023-03-01/2023-07-01"]),
    ("en", "What came up on 29 February?", ["2024-02-29"]),
    ("en", "What came up on 29 February 2023?", []),
    ("en", "What came up on 31 June?", []),
    ("en", "around Christmas", ["2023-12-22/2023-12-29"]),
    ("en", "twenty-second of May", ["2024-05-22"]),
    ("en", "all from May onwards", ["2024-05/2024-07-11"]),
    ("en", "what is due in 3 days?", ["2024-07-13"]),
    ("en", "in the last 24 hours", ["2024-07-09T15:00/2024-07-10T15:00"]),
    ("en", "the first weekend of August 2023", ["2023-08-05/2023-08-07"]),
    ("en", "5.3.2024", ["2024-03-05"]),
    ("en", "on 2024-13-05", []),
    ("en", "on Black Friday", ["2023-11-24"]),
    ("en", "at Chinese New Year 2025", ["2025-01-28/2025-02-05"]),
    ("en", "earlier this year", ["2024/2024-07-11"]),
    ("en", "Who visited him in the last year?", ["2023-07-10/2024-07-11"]),
    ("en", "on the last day of May", ["2024-05-31"]),
    ("en", "the other day", ["2024-07-03/2024-07-10"]),
    ("zh", "6月中下旬", ["2024-06-11/2024-07"]),
    ("zh", "国庆假期前一周", ["2023-09-24/2023-10-01"]),
    ("zh", "6月3日、6日和28日", ["2024-06-03", "2024-06-06", "2024-06-28"]),
    ("zh", "3月5日和3月9日之间", ["2024-03-05/2024-03-10"]),
    ("zh", "2024年3月一次活动", ["2024-03"]),
    ("zh", "在2月的一个周末", ["2024-02"]),
    ("zh", "6月20日（星期四）", ["2024-06-20"]),
    ("zh", "截至5月", ["1924-06/2024-06"]),
    ("zh", "去年重阳节", ["2023-10-23"]),
    ("zh", "通过年度会议", []),
    ("zh", "这几天", ["2024-07-04/2024-07-11"]),
    ("zh", "昨天 in the park", ["2024-07-09"]),
    ("zh", "我们 last week 见过", ["2024-07-01/2024-07-08"]),
    ("zh", "2040年春节", []),
    ("zh", "秋冬季新品", []),
]


@pytest.mark.parametrize(("name", "text", "meant"), MORE)
def test_more_of_what_people_say(name, text, meant):
    assert find(text, name) == [read_span(span) for span in meant]


def test_the_words_that_name_a_time_are_given_as_they_stand():
    text = "Where was John between August 11 and August 15 2023, and on ２０２４年３月５日?"
    assert [period.phrase for period in find_periods(text, NOW, UTC)] == [
        "between August 11 and August 15 2023",
        "２０２４年３月５日",
    ]


def test_one_time_named_twice_is_one_period():
    assert len(find_periods("yesterday, 9 July 2024, 昨天", NOW, UTC)) == 1


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        (datetime(2024, 5, 5, tzinfo=UTC), "2024-05-05"),
        (datetime(2024, 5, 4, 23, 59, tzinfo=UTC), "2023-05-05"),
        (datetime(2025, 1, 1, tzinfo=UTC), "2024-05-05"),
    ],
)
def test_a_day_without_a_year_is_the_latest_not_after_now(asked, meant):
    assert find("on 5 May", "traps", asked) == find("5月5日", "traps", asked) == [read_span(meant)]


def test_today_depends_on_the_zone():
    now = datetime(2024, 7, 9, 20, tzinfo=UTC)
    [here], [there] = find_periods("today", now, NEW_YORK), find_periods("今天", now, SHANGHAI)
    assert (here.start, here.end) == (datetime(2024, 7, 9, 4, tzinfo=UTC), datetime(2024, 7, 10, 4, tzinfo=UTC))
    assert there.start == datetime(2024, 7, 9, 16, tzinfo=UTC)


@pytest.mark.parametrize(("text", "hours"), [("on 10 March 2024", 23), ("on 3 November 2024", 25), ("on 4 July", 24)])
def test_a_day_is_as_long_as_the_clocks_make_it(text, hours):
    [period] = find_periods(text, datetime(2025, 1, 1, tzinfo=UTC), NEW_YORK)
    assert period.end - period.start == hours * HOUR


def test_a_day_that_begins_when_midnight_is_left_out_begins_after_it():
    zone = ZoneInfo("Africa/Cairo")
    before, day = find_periods("on 25 April 2024 and on 26 April 2024", NOW, zone)
    assert before.end == day.start
    assert day.end - day.start == 23 * HOUR
    assert day.start.astimezone(zone).hour == 1


def test_hours_ago_are_counted_on_a_stopwatch():
    now = datetime(2024, 3, 10, 4, tzinfo=NEW_YORK)
    [period] = find_periods("what did I say three hours ago?", now, NEW_YORK)
    assert period.start + (period.end - period.start) / 2 == now.astimezone(UTC) - 3 * HOUR


@pytest.mark.parametrize(
    ("words", "number"),
    [
        ("三", 3),
        ("两", 2),
        ("十", 10),
        ("十二", 12),
        ("二十", 20),
        ("二十五", 25),
        ("一百", 100),
        ("一百零五", 105),
        ("42", 42),
    ],
)
def test_numbers_as_chinese_writes_them(words, number):
    assert read_number(words) == number


def test_a_narrower_period_rates_higher():
    def wide(days):
        return Period(NOW, NOW + days * DAY)

    assert [rate(wide(days)) for days in (0.1, 1, 2, 4, 8)] == [1, 1, 1 / 2, 1 / 3, 1 / 4]
    chosen = choose_periods([wide(days) for days in range(30, 0, -1)])
    assert [period.end - NOW for period in chosen] == [days * DAY for days in range(1, MAX_PERIODS + 1)]


def test_what_was_said_soon_after_a_period_counts_half():
    day, month = Period(NOW, NOW + DAY), Period(NOW - 3 * DAY, NOW + 29 * DAY)
    moments = (NOW - DAY / 2, NOW, NOW + DAY, NOW + 3 * DAY - HOUR, NOW + 3 * DAY, NOW + 40 * DAY)
    column = np.array([to_microseconds(moment) for moment in moments])
    assert rate_moments([day], column).tolist() == [0, 1, 0.5, 0.5, 0, 0]
    assert rate_moments([month, day], column).tolist() == [1 / 6, 1, 0.5, 0.5, 1 / 6, 0]
    assert not rate_moments([], column).any()


ENGLISH = """days weeks months years hours ago week weekend quarter half the of and to - / , . : am pm q3 yesterday
    tomorrow tonight summer fall few at st 0 1 5 12 13 29 31 32 99 1899 2023 2024 9999 0000 90s 2024-02-30"""
CHINESE = "年月日号天周末初底中旬上下前后个半几第一二三十百零两〇点时分刻早晚夜今明昨去春夏秋冬从到至和之间以来起的"
LONGER = "星期 礼拜 季度 小时 分钟 最近 过去 未来 最后 期间 假期 年代 上午 下午"
WORDS = (
    *(*MONTHS, *WEEKDAYS, *NUMBERS, *DAYS, *HOURS, *SHIFTS, *ENGLISH_HOLIDAYS, *LEAD.strip("(?:)").split("|")),
    *(*ENGLISH.split(), *CHINESE_HOLIDAYS, *YEAR_PARTS, *CHINESE, *LONGER.split()),
)
MOMENTS = st.datetimes(timezones=st.sampled_from([UTC, NEW_YORK, SHANGHAI, ZoneInfo("Pacific/Apia")]))
SENTENCES = st.lists(st.sampled_from(WORDS), max_size=14).flatmap(
    lambda words: st.sampled_from([" ".join(words), "".join(words)])
)


@given(SENTENCES | st.text(max_size=200), MOMENTS, st.sampled_from([UTC, NEW_YORK, SHANGHAI]))
def test_no_text_at_any_moment_is_too_much(text, now, zone):
    for period in find_periods(text, now, zone):
        assert period.start < period.end
        assert (period.start.tzinfo, period.end.tzinfo) == (UTC, UTC)
        assert period.phrase in text and period.phrase == period.phrase.strip()


@pytest.mark.parametrize("now", [datetime.min.replace(tzinfo=SHANGHAI), datetime.max.replace(tzinfo=NEW_YORK)])
def test_at_the_ends_of_time_nothing_is_found(now):
    assert find_periods("yesterday, 明天, three hours ago", now, UTC) == []


@given(st.dates(datetime(1970, 1, 1).date(), datetime(2099, 12, 31).date()))  # noqa: DTZ001 - days have no zone
def test_a_full_date_is_that_day_however_it_is_written(day):
    english = day.strftime("%B ") + f"{day.day}, {day.year}"
    forms = (day.isoformat(), f"{day.year}年{day.month}月{day.day}日", english, f"{day.month}/{day.day}/{day.year}")
    for form in (*forms, f"{day.day} {day:%b} {day.year}", f"{day.year}/{day.month}/{day.day}"):
        [period] = find_periods(f"on {form}", NOW, UTC)
        assert (period.start.date(), period.end - period.start) == (day, DAY)


@pytest.mark.parametrize("text", ["may ", "1", "一", "周", "5月", "from May to ", "the first ", "2024-01-", "前", " "])
def test_long_texts_take_time_in_proportion(text):
    def seconds(length):
        begun = process_time()
        find_periods((text * length)[:length], NOW, UTC)
        return process_time() - begun

    # In proportion it would be 16, and 256 if each date looked at all others.
    assert min(seconds(16_000) for _ in range(3)) < 100 * max(min(seconds(1_000) for _ in range(3)), 1e-4)


def test_the_table_of_feasts_is_whole():
    assert list(LUNAR) == list(range(2015, 2036))
    for year, days in LUNAR.items():
        moments = [datetime(year, *day, tzinfo=UTC) for day in days]
        assert moments == sorted(moments)
        assert 89 <= (moments[3] - moments[1]).days <= 130
