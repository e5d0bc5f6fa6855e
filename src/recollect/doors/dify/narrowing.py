"""Turn Dify's conditions into a filter, so that recall reads only memories that can meet them.

Dify compares more loosely than a filter: texts in any case, numbers written as texts, items of a list. So the filter
admits all that meets the conditions, and may admit more: each record is checked afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TypeVar

from recollect.doors.dify.conditions import NO_VALUE, FieldTest, MetadataCondition, to_number
from recollect.models.filters import MAX_CONDITIONS, Filter
from recollect.models.memories import Kind, Role

OURS = frozenset(
    {"id", "kind", "occurred_at", "created_at", "conversation", "speaker", "role", "importance", "trust", "keywords"}
)
"""Fields of a record that are ours; all others are of the caller's own metadata."""
SAME = frozenset({"is", "="})
AFTER_OPERATORS, BEFORE_OPERATORS = SAME | {">", "≥", "after"}, SAME | {"<", "≤", "before"}
BLUR = timedelta(milliseconds=1)
"""Seconds as a float do not hold every microsecond."""
MAX_VALUE_LENGTH = 200
Choice = TypeVar("Choice", bound=StrEnum)


def narrow(condition: MetadataCondition) -> Filter:
    """Return a filter that admits whatever can meet the conditions."""
    own = [test for test in condition.demanded if test.name[0] not in OURS]
    named = {name: [test for test in condition.demanded if test.name == [name]] for name in OURS}
    since, until = find_period(named["occurred_at"])
    return Filter(
        kinds=filter_values(Kind, named["kind"]),
        roles=filter_values(Role, named["role"]),
        conversations=find_name(named["conversation"]),
        speakers=find_name(named["speaker"]),
        since=since,
        until=until,
        min_importance=min(max([0.0, *find_numbers(named["importance"], AFTER_OPERATORS)]), 10.0),
        min_trust=int(min(max([0.0, *find_numbers(named["trust"], AFTER_OPERATORS)]), 100.0)),
        where=tuple(written for test in own if (written := write_condition(test)))[:MAX_CONDITIONS],
    )


def filter_values(values: Iterable[Choice], tests: Sequence[FieldTest]) -> tuple[Choice, ...]:
    """List those of a few values that meet the tests of a field; none if it may be empty, too."""
    met = [value for value in (None, *values) if all(test.holds({test.name[0]: value}) for test in tests)]
    return () if None in met else tuple(value for value in met if value is not None)


def find_name(tests: Sequence[FieldTest]) -> tuple[str, ...]:
    """Return the one text that a field must equal; an empty tuple if no test requires one."""
    texts = [str(test.value) for test in tests if test.comparison_operator in SAME and is_text(test.value)]
    return tuple(texts[:1])


def is_text(value: object) -> bool:
    """Return whether a value equals only texts with the same characters."""
    plain = isinstance(value, str) and 0 < len(value) <= MAX_VALUE_LENGTH and value.isprintable()
    return plain and to_number(value) is None and str(value).casefold() not in {"true", "false"}


def find_numbers(tests: Sequence[FieldTest], operators: frozenset[str]) -> list[float]:
    """List the numbers that tests by these operators compare with."""
    found = [to_number(test.value) for test in tests if test.comparison_operator in operators]
    return [number for number in found if number is not None]


def find_period(tests: Sequence[FieldTest]) -> tuple[datetime | None, datetime | None]:
    """Return the times between which a time must be."""
    since = until = None
    with suppress(ValueError, OverflowError, OSError):
        since = max((to_moment(each) - BLUR for each in find_numbers(tests, AFTER_OPERATORS)), default=None)
        until = min((to_moment(each) + BLUR for each in find_numbers(tests, BEFORE_OPERATORS)), default=None)
    return since, until if since is None or until is None or since < until else None


def to_moment(seconds: float) -> datetime:
    """Convert seconds since 1970 to a time."""
    return datetime.fromtimestamp(seconds, UTC)


def write_condition(test: FieldTest) -> str:
    """Write what a field of the caller's metadata must be as a condition of a filter; empty if it may be missing."""
    [name] = test.name
    if test.comparison_operator == "empty" or (test.comparison_operator not in NO_VALUE and test.value is None):
        return ""
    if not (0 < len(name) <= MAX_VALUE_LENGTH and name.isprintable()):
        return ""
    field = json.dumps(name, ensure_ascii=False)
    if test.comparison_operator in SAME and is_text(test.value):
        return f"{field} contains {json.dumps(test.value, ensure_ascii=False)}"
    return f"{field} exists"
