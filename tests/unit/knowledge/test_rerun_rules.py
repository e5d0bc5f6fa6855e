"""What reading history again costs, and what a run keeps in mind of its own words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from recollect.core.knowledge.rerun import (
    TYPICAL_COMPLETION,
    RerunFacts,
    RunCosts,
    expect,
    list_statements,
    name_statement,
    separate_spans,
)
from recollect.models.knowledge import Cost, Fact, Mention, ParsedExtraction, Statement, ValidTime

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
ONE, TWO, THREE = UUID(int=1), UUID(int=2), UUID(int=3)


def parsed(*statements, mentions=("Ann", "Oslo", "Rome")):
    return ParsedExtraction(mentions=tuple(Mention(name) for name in mentions), statements=statements)


def lives(place, *replaces):
    return Statement("Ann", "lives in", place, f"Ann lives in {place}.", replaces=replaces)


def test_an_estimate_goes_by_the_ledger_or_by_a_typical_answer():
    assert expect(RunCosts(), [100, 300]) == Cost(2, 400, 2 * TYPICAL_COMPLETION)
    assert expect(RunCosts(), []) == Cost(0, 0, 0)
    past = RunCosts(segments=10, prompt_tokens=50, completion_tokens=1_000)
    assert expect(past, [100, 300]) == Cost(2, 410, 200)


def test_a_statement_has_the_same_name_whenever_its_extraction_is_read():
    assert name_statement(ONE, 0) == name_statement(ONE, 0)
    assert len({name_statement(segment, place) for segment in (ONE, TWO) for place in range(3)}) == 6


def test_what_is_told_begins_when_it_was_said_unless_a_date_is_given():
    dated = Statement("Ann", "likes", "Rome", "Ann likes Rome.", ValidTime(NOON - timedelta(days=3)))
    first, second = list_statements(ONE, parsed(lives("Oslo"), dated), (), NOON)
    assert (first.fact.span, second.fact.span) == (ValidTime(NOON), dated.span)
    assert first.fact.id == name_statement(ONE, 0)


def test_what_was_told_is_found_by_any_name_of_its_subject_and_the_newest_first():
    stated = RerunFacts()
    told = ParsedExtraction(mentions=(Mention("Ann", aliases=("Annie",)), Mention("Oslo")), statements=(lives("Oslo"),))
    stated.add_statements(list_statements(ONE, told, (), NOON))
    stated.add_statements(list_statements(TWO, parsed(lives("Rome")), (), NOON))
    assert [fact.text for fact in stated.about(["annie"])] == ["Ann lives in Oslo."]
    assert [fact.text for fact in stated.about(["ann"])] == ["Ann lives in Rome.", "Ann lives in Oslo."]
    assert stated.about(["oslo"]) == []


def test_what_was_replaced_is_shown_no_more_but_can_be_found():
    stated = RerunFacts()
    [oslo] = list_statements(ONE, parsed(lives("Oslo")), (), NOON)
    stated.add_statements([oslo])
    stated.add_statements(list_statements(TWO, parsed(lives("Rome", 1)), (oslo.fact,), NOON))
    assert [fact.text for fact in stated.about(["ann"])] == ["Ann lives in Rome."]
    assert stated.find_fact(oslo.fact.id) == oslo.fact
    assert stated.find_fact(THREE) is None
    # Said again after it was replaced, it lasts again.
    stated.add_statements(list_statements(THREE, parsed(lives("Oslo")), (), NOON))
    assert [fact.text for fact in stated.about(["ann"])] == ["Ann lives in Oslo.", "Ann lives in Rome."]


def test_what_is_told_twice_is_shown_once_and_numbers_beyond_the_list_replace_nothing():
    stated = RerunFacts()
    stated.add_statements(list_statements(ONE, parsed(lives("Oslo")), (), NOON))
    stated.add_statements(list_statements(TWO, parsed(lives("Oslo", 7)), (), NOON))
    assert [fact.id for fact in stated.about(["ann"])] == [name_statement(ONE, 0)]


def fact(identity, place="Acme"):
    return Fact(identity, ONE, "works at", place, f"Ann works at {place}.", ValidTime(), NOON)


def test_facts_that_say_the_same_do_not_overlap_once_they_are_given_their_spans_back():
    year = timedelta(days=365)
    spans = {ONE: ValidTime(NOON), TWO: ValidTime(NOON + 2 * year), THREE: ValidTime(NOON)}
    placed = separate_spans([fact(ONE), fact(TWO), fact(THREE, "Globex")], spans)
    found = {each.id: each.span for each in placed}
    assert found == {ONE: ValidTime(NOON, NOON + 2 * year), TWO: ValidTime(NOON + 2 * year), THREE: ValidTime(NOON)}


def test_of_facts_that_say_the_same_from_the_same_moment_on_one_is_given_its_span_back():
    assert [
        each.id for each in separate_spans([fact(ONE), fact(TWO)], {ONE: ValidTime(NOON), TWO: ValidTime(NOON)})
    ] == [TWO]
    assert [each.id for each in separate_spans([fact(ONE), fact(TWO)], {ONE: ValidTime(), TWO: ValidTime()})] == [TWO]
