"""Contradicting facts come to lie as the golden cases say, in our columns and, derived from them, in Graphiti's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5

import pytest

from recollect.core.knowledge.facts import add_version, believed_at, place
from recollect.models.knowledge import Fact, ValidTime
from support.imports.generative_agents import read_golden

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
SPACE = UUID(int=7)


@pytest.fixture
def cases(shared) -> list[dict]:
    return read_golden(shared, "golden_bitemporal")["cases"]


def moment(day: int | None) -> datetime | None:
    return None if day is None else EPOCH + timedelta(days=day)


def day(at: datetime | None) -> int | None:
    return None if at is None else (at - EPOCH).days


def name(fact: Fact) -> str:
    return fact.text


def version(column: dict, span: ValidTime, created: int, superseded: int | None = None, number: int = 1) -> Fact:
    return Fact(
        id=uuid5(SPACE, column["id"]),
        subject="Ann",
        predicate="lives in",
        object=column["id"],
        text=column["id"],
        span=span,
        created_at=moment(created),
        superseded_at=moment(superseded),
        version=number,
    )


def history(column: dict) -> list[Fact]:
    """Tell how Graphiti's row came about: what it expired at 50 was believed to last until then."""
    start, end = moment(column["valid"]), moment(column["invalid"])
    if column["expired"] is None:
        return [version(column, ValidTime(start, end), created=0)]
    return [
        version(column, ValidTime(start), created=0, superseded=column["expired"]),
        version(column, ValidTime(start, end), created=column["expired"], number=2),
    ]


def to_graphiti(versions: list[Fact]) -> dict:
    """Derive Graphiti's columns: where the newest version ends, and since when we know of any end."""
    newest = max(versions, key=lambda fact: fact.version)
    ended = [fact.created_at for fact in versions if fact.span.invalid_at is not None]
    return {
        "id": name(newest),
        "valid": day(newest.span.valid_at),
        "invalid": day(newest.span.invalid_at),
        "expired": day(min(ended, default=None)),
    }


def test_every_case_is_placed_as_expected(cases):
    assert len(cases) == 13
    for case in cases:
        known = [history(column)[-1] for column in case["contradicted_candidates"]]
        new = ValidTime(moment(case["new"]["valid"]), moment(case["new"]["invalid"]))
        placed = place(new, known)
        expected = case["expected_new"]
        assert (day(placed.span.valid_at), day(placed.span.invalid_at)) == (expected["valid"], expected["invalid"])
        assert [name(closing.fact) for closing in placed.closings] == case["invalidated"], case["name"]
        assert all(closing.invalid_at == new.valid_at for closing in placed.closings)


def test_graphitis_columns_follow_from_ours(cases):
    for case in cases:
        columns = case["contradicted_candidates"]
        lineages = {column["id"]: history(column) for column in columns}
        new = version(case["new"], ValidTime(moment(case["new"]["valid"]), moment(case["new"]["invalid"])), created=100)
        now = moment(case["now"])
        amendment = add_version(new, [lineage[-1] for lineage in lineages.values()], now)
        for old in amendment.superseded:
            lineages[name(old)][-1] = old
        for fresh in amendment.added:
            lineages.setdefault(name(fresh), []).append(fresh)
        assert to_graphiti(lineages.pop("new")) == case["expected_new"], case["name"]
        assert [to_graphiti(lineages[column["id"]]) for column in columns] == case["expected_candidates"], case["name"]


def test_nothing_that_was_believed_is_overwritten(cases):
    for case in cases:
        before = [fact for column in case["contradicted_candidates"] for fact in history(column)]
        new = version(case["new"], ValidTime(moment(case["new"]["valid"]), moment(case["new"]["invalid"])), created=100)
        amendment = add_version(new, believed_at(before), moment(case["now"]))
        superseded = {(fact.id, fact.version): fact for fact in amendment.superseded}
        after = [superseded.get((fact.id, fact.version), fact) for fact in before] + list(amendment.added)
        for at in (0, 10, 49, 50, 99):
            then = {(fact.id, fact.version, fact.span) for fact in believed_at(before, moment(at))}
            assert {(fact.id, fact.version, fact.span) for fact in believed_at(after, moment(at))} == then
        assert all(fact.superseded_at == moment(100) for fact in amendment.superseded)
        assert len(amendment.added) == 1 + len(case["invalidated"])
