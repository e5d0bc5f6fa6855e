"""What becomes of facts when one entity absorbs another, and when that is taken back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from recollect.core.knowledge.merges import EndedMerge, find_remainder, plan_merge, plan_split
from recollect.models.knowledge import Fact, ValidTime

KEPT, ABSORBED, OTHER, THIRD = (UUID(int=number) for number in (1, 2, 3, 4))


def year(number):
    return datetime(number, 1, 1, tzinfo=UTC)


def span(start=None, end=None):
    return ValidTime(start and year(start), end and year(end))


def fact(number, subject, predicate, object_, when=None, **more):
    return Fact(
        UUID(int=100 + number), subject, predicate, object_, "", when or span(2020), created_at=year(2021), **more
    )


def test_facts_get_the_other_end_as_a_further_version():
    told = [fact(1, ABSORBED, "likes", OTHER), fact(2, OTHER, "knows", ABSORBED, version=3)]
    planned = plan_merge(KEPT, ABSORBED, told, [])
    assert [(each.fact.subject, each.fact.object, each.fact.version) for each in planned.changes] == [
        (KEPT, OTHER, 2),
        (OTHER, KEPT, 4),
    ]
    assert [each.before for each in planned.changes] == told
    assert planned.closed == ()


def test_what_joins_the_two_or_is_known_already_is_not_said_again():
    between, same = fact(1, KEPT, "also called", ABSORBED), fact(2, ABSORBED, "Likes", OTHER)
    planned = plan_merge(KEPT, ABSORBED, [between, same], [fact(3, KEPT, "likes", OTHER)])
    assert planned.changes == ()
    assert planned.closed == (between, same)


def test_a_fact_keeps_the_part_of_its_time_that_no_other_covers():
    assert find_remainder(span(2010, 2030), []) == span(2010, 2030)
    assert find_remainder(span(2010, 2030), [span(2020)]) == span(2010, 2020)
    assert find_remainder(span(2010, 2030), [span(None, 2020)]) == span(2020, 2030)
    assert find_remainder(span(2010, 2030), [span(2020, 2030), span(2005, 2020)]) is None
    assert find_remainder(span(2010, 2030), [span(2030)]) == span(2010, 2030)
    assert find_remainder(span(), [span()]) is None


def ended(number, **more):
    return fact(number, ABSORBED, "likes", OTHER, superseded_at=year(2022), **more)


MERGE = EndedMerge(ABSORBED, KEPT, year(2022))


def test_a_split_gives_back_what_a_fact_became():
    was = ended(1)
    cut = replace(was, subject=KEPT, span=span(2020, 2021), version=2, created_at=year(2022), superseded_at=None)
    [change] = plan_split(MERGE, [was], {was.id: cut}).changes
    assert (change.fact.subject, change.fact.span, change.fact.version) == (ABSORBED, was.span, 3)
    later = replace(cut, version=3, created_at=year(2023), span=span(2020, 2024))
    [change] = plan_split(MERGE, [was], {was.id: later}).changes
    assert (change.fact.span, change.fact.version) == (span(2020, 2024), 4)


def test_a_split_brings_back_what_was_not_said_twice():
    was = ended(1)
    [change] = plan_split(MERGE, [was], {}).changes
    assert (change.fact.subject, change.fact.superseded_at, change.fact.version) == (ABSORBED, None, 2)


def test_a_split_leaves_what_has_gone_to_a_third_one():
    was = ended(1)
    elsewhere = replace(was, subject=THIRD, version=3, created_at=year(2023), superseded_at=None)
    assert plan_split(MERGE, [was], {was.id: elsewhere}).changes == ()
