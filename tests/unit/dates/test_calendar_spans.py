"""Spans of the calendar begin and end where days, weeks, months and years do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recollect.core.dates.calendar import (
    DAY,
    FAR_YEARS,
    LEAP_GAP,
    WEEK,
    add_months,
    current,
    date_of,
    day_of,
    easter_of,
    few_ago,
    half_of,
    hours_of,
    latest,
    midnight,
    month_of,
    next_occurrence,
    open_at,
    rolling,
    step,
    third_of,
    unit_of,
    week_in,
    week_of,
    weekday_in,
    weekend_of,
    year_of,
)
from support.memories.date_phrases import NOW, read_moment, read_span


def test_a_day_begins_at_midnight():
    moment = datetime(2024, 7, 10, 23, 59, 59, 999_999, tzinfo=UTC)
    assert midnight(moment) == read_moment("2024-07-10")
    assert day_of(moment) == date_of(2024, 7, 10) == read_span("2024-07-10")
    assert day_of(moment, 3) == date_of(2024, 7, 10, 3) == read_span("2024-07-10/2024-07-13")


@pytest.mark.parametrize("day", ["2024-07-08", "2024-07-10", "2024-07-14T23:59"])
def test_a_week_goes_from_monday_to_sunday(day):
    assert week_of(read_moment(day)) == read_span("2024-07-08/2024-07-15")
    assert week_of(read_moment(day), -2) == read_span("2024-06-24/2024-07-01")
    assert weekend_of(read_moment(day)) == read_span("2024-07-13/2024-07-15")
    assert weekend_of(read_moment(day), 1) == read_span("2024-07-20/2024-07-22")


@pytest.mark.parametrize(
    ("month", "count", "meant"),
    [(12, 1, "2024-12"), (0, 1, "2023-12"), (-11, 1, "2023-01"), (13, 1, "2025-01"), (11, 3, "2024-11/2025-02")],
)
def test_months_count_on_into_other_years(month, count, meant):
    assert month_of(2024, month, count) == read_span(meant)


def test_years_begin_in_january():
    assert year_of(2023) == read_span("2023")
    assert year_of(1990, 10) == read_span("1990/2000")


@pytest.mark.parametrize(
    ("months", "day"),
    [
        (0, "2024-01-31"),
        (1, "2024-02-29"),
        (11, "2024-12-31"),
        (12, "2025-01-31"),
        (-1, "2023-12-31"),
        (13, "2025-02-28"),
    ],
)
def test_a_month_that_is_too_short_ends_on_its_last_day(months, day):
    assert add_months(read_moment("2024-01-31"), months) == read_moment(day)


@pytest.mark.parametrize(
    ("weekday", "place", "day"),
    [
        (5, 1, "2024-06-01"),
        (6, 1, "2024-06-02"),
        (4, 1, "2024-06-07"),
        (5, 2, "2024-06-08"),
        (5, 5, "2024-06-29"),
        (6, -1, "2024-06-30"),
        (0, -1, "2024-06-24"),
        (5, -1, "2024-06-29"),
    ],
)
def test_weekdays_are_counted_within_a_month(weekday, place, day):
    assert weekday_in(2024, 6, weekday, place) == read_span(day)


EASTERS = """
1598-03-22 1818-03-22 1886-04-25 1913-03-23 1943-04-25 1954-04-18 1981-04-19 1999-04-04 2000-04-23 2008-03-23
2011-04-24 2016-03-27 2019-04-21 2021-04-04 2025-04-20 2038-04-25 2049-04-18 2076-04-19 2100-03-28 2160-03-23 2285-03-22
"""


@pytest.mark.parametrize("day", EASTERS.split())
def test_easter_is_on_the_sunday_that_churches_keep(day):
    assert easter_of(int(day[:4])) == read_span(day)


@pytest.mark.parametrize(
    ("whole", "thirds"),
    [
        ("2023-02", ("2023-02-01/2023-02-11", "2023-02-11/2023-02-21", "2023-02-21/2023-03")),
        ("2024-05", ("2024-05-01/2024-05-11", "2024-05-11/2024-05-21", "2024-05-21/2024-06")),
        ("2024", ("2024-01/2024-05", "2024-05/2024-09", "2024-09/2025")),
        ("2023-12/2024-03", ("2023-12", "2024-01", "2024-02")),
        ("2024-05-03/2024-05-12", ("2024-05-03/2024-05-06", "2024-05-06/2024-05-09", "2024-05-09/2024-05-12")),
        ("2024-05-03/2024-05-30", ("2024-05-03/2024-05-12", "2024-05-12/2024-05-21", "2024-05-21/2024-05-30")),
    ],
)
def test_a_time_has_three_parts(whole, thirds):
    assert [third_of(read_span(whole), place) for place in range(3)] == [read_span(third) for third in thirds]


@pytest.mark.parametrize(
    ("whole", "middle"),
    [
        ("2024", "2024-07"),
        ("2023-12/2024-02", "2024-01"),
        ("2024-05", "2024-05-16"),
        ("2024-05-01/2024-05-08", "2024-05-04"),
        ("2023-11/2024-02", "2023-12"),
    ],
)
def test_a_time_has_two_halves(whole, middle):
    span, cut = read_span(whole), read_moment(middle)
    assert (half_of(span, 0), half_of(span, 1)) == ((span[0], cut), (cut, span[1]))


def test_weeks_are_counted_within_a_month_and_the_fifth_is_short():
    month = read_span("2024-05")
    assert week_in(month, 0) == read_span("2024-05-01/2024-05-08")
    assert week_in(month, 1) == read_span("2024-05-08/2024-05-15")
    assert week_in(month, 4) == read_span("2024-05-29/2024-06-01")
    assert week_in(month, -1) == read_span("2024-05-25/2024-06-01")


def test_hours_beyond_midnight_lie_in_the_next_day():
    assert hours_of(read_span("2024-05-03"), (18.5, 30)) == read_span("2024-05-03T18:30/2024-05-04T06:00")


@pytest.mark.parametrize(
    ("unit", "one", "two", "later"),
    [
        ("day", "2024-07-10", "2024-07-10/2024-07-12", "2024-07-13T15:00"),
        ("week", "2024-07-08/2024-07-15", "2024-07-08/2024-07-22", "2024-07-31T15:00"),
        ("month", "2024-07", "2024-07/2024-09", "2024-10-10T15:00"),
        ("year", "2024", "2024/2026", "2027-07-10T15:00"),
    ],
)
def test_units_have_a_whole_and_a_step(unit, one, two, later):
    assert unit_of(NOW, unit) == read_span(one)
    assert unit_of(NOW, unit, 2) == read_span(two)
    assert step(NOW, unit, 3) == read_moment(later)
    assert step(read_moment(later), unit, -3) == NOW


@pytest.mark.parametrize(
    ("unit", "count", "meant"),
    [
        ("day", -1, "2024-07-09/2024-07-11"),
        ("day", 0, "2024-07-10"),
        ("day", 1, "2024-07-10/2024-07-12"),
        ("month", -2, "2024-05-10/2024-07-11"),
        ("year", 1, "2024-07-10/2025-07-11"),
    ],
)
def test_a_rolling_time_holds_today(unit, count, meant):
    assert rolling(NOW, unit, count) == read_span(meant)


@pytest.mark.parametrize(
    ("unit", "meant"),
    [("day", "2024-07-04/2024-07-09"), ("month", "2024-01/2024-06"), ("year", "2018/2023")],
)
def test_a_few_are_six_to_two(unit, meant):
    assert few_ago(NOW, unit) == read_span(meant)


def winter(year):
    return month_of(year, 12, 3)


@pytest.mark.parametrize(
    ("asked", "begun", "over", "present", "ahead"),
    [
        ("2024-07-10", 2023, 2023, 2024, 2024),
        ("2024-12-01", 2024, 2023, 2024, 2025),
        ("2024-11-30T23:59", 2023, 2023, 2024, 2024),
        ("2025-02-28T23:59", 2024, 2023, 2024, 2025),
        ("2025-03-01", 2024, 2024, 2025, 2025),
    ],
)
def test_what_comes_each_year_has_a_last_a_present_and_a_next(asked, begun, over, present, ahead):
    now = read_moment(asked)
    assert latest(winter, now) == winter(begun)
    assert latest(winter, now, over=True) == winter(over)
    assert current(winter, now) == winter(present)
    assert next_occurrence(winter, now) == winter(ahead)


def new_years_eve_before(year):
    return date_of(year - 1, 12, 31)


def test_what_belongs_to_a_year_may_lie_in_the_one_before():
    now = read_moment("2024-12-31T12:00")
    assert latest(new_years_eve_before, now) == read_span("2024-12-31")
    assert next_occurrence(new_years_eve_before, now) == read_span("2025-12-31")
    assert next_occurrence(winter, read_moment("2024-12-01") - timedelta(microseconds=1)) == winter(2024)


def leap_day(year):
    return date_of(year, 2, 29)


def test_a_leap_day_is_found_across_the_century_without_one():
    assert latest(leap_day, read_moment("2104-02-28")) == read_span("2096-02-29")
    assert next_occurrence(leap_day, read_moment("2096-03-01")) == read_span("2104-02-29")
    with pytest.raises(ValueError, match="year"):
        current(leap_day, read_moment("2025-02-28"))


def test_years_are_tried_only_so_far():
    asked = []

    def never(year):
        asked.append(year)
        raise ValueError(year)

    for find in (latest, next_occurrence, current):
        with pytest.raises(ValueError, match="year"):
            find(never, NOW)
    assert asked == [
        *range(2025, 2024 - LEAP_GAP, -1),
        *range(2023, 2024 + LEAP_GAP),
        *(2023, 2024),
    ]


@pytest.mark.parametrize(
    ("side", "meant"),
    [
        ("since", "2024-05-04/2024-07-11"),
        ("after", "2024-05-05/2024-07-11"),
        ("before", "1924-05-04/2024-05-04"),
        ("until", "1924-05-05/2024-05-05"),
        ("around", "2024-05-01/2024-05-08"),
    ],
)
def test_one_side_of_a_time_may_be_open(side, meant):
    assert open_at(read_span("2024-05-04"), side, NOW) == read_span(meant)


def test_an_open_end_is_today_unless_the_time_begins_later():
    today, tomorrow = read_span("2024-07-10"), read_span("2024-07-11")
    assert open_at(today, "since", NOW) == today
    assert open_at(today, "after", NOW) == (today[1], add_months(today[1], 12 * FAR_YEARS))
    assert open_at(tomorrow, "since", NOW) == (tomorrow[0], add_months(tomorrow[0], 12 * FAR_YEARS))


@pytest.mark.parametrize(("days", "slack"), [(1, 3), (7, 3), (8, 4), (9, 4), (31, 15)])
def test_around_a_time_is_half_as_long_again_on_both_sides(days, slack):
    start = read_moment("2024-05-01")
    assert open_at((start, start + days * DAY), "around", NOW) == (start - slack * DAY, start + (days + slack) * DAY)


def test_a_week_has_seven_days():
    assert WEEK == 7 * DAY
