"""Several statements at once: each sees what those before it changed, and a fact gets one version."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from recollect.core.knowledge.fact_plan import ParsedFact, find_clashes, plan
from recollect.core.knowledge.facts import restate
from recollect.core.knowledge.new_facts import check_new_facts, fingerprint_facts, join_parts, to_memory
from recollect.errors import InvalidInputError
from recollect.models.knowledge import Fact, NewFact, ValidTime

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ANN = UUID(int=1)


def day(number):
    return None if number is None else NOW + timedelta(days=number)


def fact(number, place, start=None, end=None, created=-10):
    span = ValidTime(day(start), day(end))
    return Fact(UUID(int=number), ANN, "lives in", UUID(int=place), f"place {place}", span, created_at=day(created))


def spans(planned):
    return {change.fact.id.int: (change.fact.span, change.fact.version, change.causes) for change in planned.changes}


def test_new_facts_come_first_and_what_they_end_follows():
    known = [fact(10, 100, 0)]
    planned = plan([ParsedFact(fact(20, 200, 5), (UUID(int=10),))], known, NOW)
    assert [change.fact.id.int for change in planned.changes] == [20, 10]
    assert spans(planned) == {20: (ValidTime(day(5)), 1, (0,)), 10: (ValidTime(day(0), day(5)), 2, (0,))}
    assert planned.changes[1].before == known[0]


def test_a_fact_that_changes_twice_gets_one_version():
    known = [fact(10, 100, 0)]
    stated = [ParsedFact(fact(20, 200, 9), (UUID(int=10),)), ParsedFact(fact(30, 300, 4), (UUID(int=10),))]
    planned = plan(stated, known, NOW)
    assert spans(planned)[10] == (ValidTime(day(0), day(4)), 2, (0, 1))
    assert planned.outcomes == (UUID(int=20), UUID(int=30))


def test_a_statement_is_recognised_within_the_same_call():
    planned = plan([ParsedFact(fact(20, 200, 5)), ParsedFact(fact(30, 200, 7, 9))], [], NOW)
    assert planned.outcomes == (UUID(int=20), UUID(int=20))
    assert spans(planned) == {20: (ValidTime(day(5), day(9)), 1, (0, 1))}


def test_nothing_changes_where_nothing_new_is_said():
    planned = plan([ParsedFact(fact(20, 100, 5), (UUID(int=10), UUID(int=99)))], [fact(10, 100, 0)], NOW)
    assert (planned.changes, planned.outcomes) == ((), (UUID(int=10),))


def test_what_had_faded_comes_back_in_a_version_that_says_the_same():
    known = fact(10, 100, 0)
    planned = plan([ParsedFact(fact(20, 100, 5)), ParsedFact(fact(30, 100, 6))], [known], NOW, {known.id})
    assert spans(planned) == {10: (known.span, 2, (0,))}


def test_a_known_fact_ends_what_it_is_said_to_replace():
    known, other, later = fact(10, 100, 0), fact(20, 200, 2), fact(30, 300, 8)
    amendment = restate(known, ValidTime(day(5)), [other, later], NOW)
    changed = {each.id.int: each.span for each in amendment.added}
    assert changed == {20: ValidTime(day(2), day(5)), 10: ValidTime(day(0), day(8))}
    assert restate(known, ValidTime(day(0)), [], NOW) is None
    ended = fact(10, 100, 0, 4)
    assert restate(ended, ValidTime(day(1), day(9)), [], NOW) is None, "dates that were stated first stand"


def test_clashes_are_the_same_fact_for_a_common_time():
    hidden = [fact(10, 100, 0, 5), fact(11, 100, 5), fact(12, 200, 0)]
    assert find_clashes([fact(20, 100, 3, 5)], hidden) == hidden[:1]


@pytest.mark.parametrize(
    "wrong",
    [
        NewFact("Ann", "knows", "ann."),
        NewFact("", "knows", "Bob"),
        NewFact("Ann", "\n", "Bob"),
        NewFact("Ann", "knows", "B" * 201),
        NewFact("Ann", "knows", "Bob", valid_at=day(1), invalid_at=day(1)),
        NewFact("Ann", "knows", "Bob", valid_at=day(0).replace(tzinfo=None)),
        NewFact("Ann", "knows", "Bob", replaces=tuple(UUID(int=n) for n in range(65))),
        NewFact("Ann", "knows", "Bob", importance=11),
    ],
)
def test_what_cannot_be_stated(wrong):
    with pytest.raises(InvalidInputError):
        check_new_facts([wrong])


def test_a_fact_is_worded_from_its_parts():
    assert join_parts("张伟", "住在", "上海") == "张伟住在上海"
    memory = to_memory(NewFact(ANN, "knows", "Bob", importance=7), {ANN: "Ann"})
    assert (memory.content, memory.triple.subject, memory.importance) == ("Ann knows Bob", "Ann", 7)
    for wrong in ([], [NewFact("Ann", "knows", "Bob")] * 201):
        with pytest.raises(InvalidInputError):
            check_new_facts(wrong)


def test_the_same_statement_has_the_same_fingerprint():
    one = NewFact("Ann", "knows", "Bob", valid_at=day(0))
    other = NewFact("Ann", "knows", "Bob", valid_at=day(0).astimezone())
    assert fingerprint_facts([one]) == fingerprint_facts([other])
    assert fingerprint_facts([one]) != fingerprint_facts([NewFact("Ann", "knows", "Bob", valid_at=day(1))])
