"""Check a record's metadata against the conditions that Dify sends, with Dify's own rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, Field

from recollect.doors.http.bodies.fields import Number
from recollect.models.memories import JSON

Operator: TypeAlias = Literal[
    "contains",
    "not contains",
    "start with",
    "end with",
    "is",
    "is not",
    "in",
    "not in",
    "empty",
    "not empty",
    "=",
    "≠",
    ">",
    "<",
    "≥",
    "≤",
    "before",
    "after",
]
Value: TypeAlias = str | float | list[str]
Test: TypeAlias = Callable[[JSON, Value], bool]
NO_VALUE = {"empty", "not empty"}


def to_names(value: object) -> object:
    """Accept one name as a list of one: Dify's descriptions have both."""
    return [value] if isinstance(value, str) else value


class FieldTest(BaseModel):
    """One condition on a field of the metadata; on any of them, where several are named."""

    name: Annotated[
        list[str], BeforeValidator(to_names, json_schema_input_type=str | list[str]), Field(min_length=1, max_length=16)
    ]
    comparison_operator: Operator
    value: str | Number | list[str] | None = Field(
        None, description="Value to compare with. Omit for empty / not empty."
    )

    def holds(self, metadata: Mapping[str, JSON]) -> bool:
        """Return whether metadata meet the condition; one without a value excludes nothing, as in Dify."""
        found = [metadata.get(name) for name in self.name]
        if self.comparison_operator in NO_VALUE:
            return any(is_empty(each) == (self.comparison_operator == "empty") for each in found)
        if self.value is None:
            return True
        test, value = TESTS[self.comparison_operator], self.value
        return any(not is_empty(each) and test(each, value) for each in found)


class MetadataCondition(BaseModel):
    """Conditions that records have to meet, all of them or any."""

    logical_operator: Literal["and", "or"] | None = "and"
    conditions: list[FieldTest] | None = Field(None, max_length=64)

    def holds(self, metadata: Mapping[str, JSON]) -> bool:
        """Return whether metadata meet the conditions; true if there are none."""
        met = [condition.holds(metadata) for condition in self.conditions or []]
        return not met or (any(met) if self.logical_operator == "or" else all(met))

    @property
    def demanded(self) -> list[FieldTest]:
        """List the conditions on one field that all records have to meet."""
        tests = self.conditions or []
        several = self.logical_operator == "or" and len(tests) > 1
        return [] if several else [test for test in tests if len(test.name) == 1]


def is_empty(found: JSON) -> bool:
    """Return whether a field is empty."""
    return found is None or found in ("", [], {})


def in_text(compare: Callable[[str, str], bool]) -> Test:
    """Compare as text, ignoring case; of a list, any item may match."""

    def test(found: JSON, value: Value) -> bool:
        items = found if isinstance(found, list) else [found]
        wanted = to_text(value)
        return any(compare(to_text(item), wanted) for item in items)

    return test


def in_order(compare: Callable[[float, float], bool]) -> Test:
    """Compare as numbers, or as times; other values do not match."""

    def test(found: JSON, value: Value) -> bool:
        left, right = to_number(found), to_number(value)
        return left is not None and right is not None and compare(left, right)

    return test


def equal(found: JSON, value: Value) -> bool:
    """Return whether a field equals a value: a text exactly or as a time, anything else as a number."""
    if isinstance(found, list):
        return any(equal(item, value) for item in found)
    read = to_seconds if isinstance(found, str) else to_number
    left, right = read(found), read(value)
    if left is not None and right is not None:
        return left == right
    return str(found) == str(value) if isinstance(found, str) else to_text(found) == to_text(value)


def among(found: JSON, value: Value) -> bool:
    """Return whether a field is one of several values: a list, or a text with commas between them."""
    wanted: Sequence[Value] = value if isinstance(value, list) else str(value).split(",")
    return any(equal(found, each.strip() if isinstance(each, str) else each) for each in wanted)


def to_text(value: object) -> str:
    """Write a value as it is compared."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value).casefold()


def to_number(value: object) -> float | None:
    """Read a number; a time is the seconds since 1970, as Dify stores times."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return to_seconds(str(value))


def to_seconds(value: object) -> float | None:
    """Read a time; one without an offset is in UTC."""
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def negated(test: Test) -> Test:
    """Negate a test."""
    return lambda found, value: not test(found, value)


CONTAINS = in_text(lambda text, wanted: wanted in text)
LESS, MORE = in_order(lambda left, right: left < right), in_order(lambda left, right: left > right)
TESTS: Mapping[str, Test] = MappingProxyType(
    {
        "contains": CONTAINS,
        "not contains": negated(CONTAINS),
        "start with": in_text(lambda text, wanted: text.startswith(wanted)),
        "end with": in_text(lambda text, wanted: text.endswith(wanted)),
        "is": equal,
        "=": equal,
        "is not": negated(equal),
        "≠": negated(equal),
        "in": among,
        "not in": negated(among),
        "<": LESS,
        "before": LESS,
        ">": MORE,
        "after": MORE,
        "≤": in_order(lambda left, right: left <= right),
        "≥": in_order(lambda left, right: left >= right),
    }
)
