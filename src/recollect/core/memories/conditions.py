"""Parse conditions on metadata, such as `project == alpha`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from recollect.core.text.checks import check_json, check_line, check_text
from recollect.errors import InvalidInputError
from recollect.models.memories import JSON

MAX_CONDITION_LENGTH = 2_000
MAX_VALUE_DEPTH = 16
OPERATORS: Mapping[str, str] = MappingProxyType(
    {
        "==": "$eq",
        "!=": "$ne",
        "<": "$lt",
        "<=": "$lte",
        ">": "$gt",
        ">=": "$gte",
        "in": "$in",
        "contains": "$contains",
        "exists": "$exists",
    }
)
"""The written form of each operator, and its name in the database."""
ORDERING = frozenset({"$lt", "$lte", "$gt", "$gte"})
WRITTEN = re.compile(
    r'\s*("(?:[^"\\]|\\.)*"|[^\s"=!<>]+)\s*(==|!=|<=|>=|<|>|(?<=\s)(?:in|contains|exists)(?!\S))\s*(.*?)\s*', re.DOTALL
)
FORM = 'invalid where. Examples: project == alpha, size >= 3, tags contains "red", due exists'


@dataclass(frozen=True, slots=True)
class WhereCondition:
    """A field of a memory's metadata, an operator and an operand."""

    field: str
    operator: str
    operand: JSON


def read_condition(text: str) -> WhereCondition:
    """Parse one condition: a field, an operator, and JSON; a value that is not JSON is text."""
    check_text("where", text, MAX_CONDITION_LENGTH)
    written = WRITTEN.fullmatch(text)
    if written is None:
        raise InvalidInputError(FORM)
    name, operator, rest = written.groups()
    field = read_field(name)
    check_line("where", field)
    condition = WhereCondition(field, OPERATORS[operator], read_operand(OPERATORS[operator], rest))
    check_operand(condition)
    return condition


def read_field(name: str) -> str:
    """Parse the name of a field, which is quoted if it contains blanks or signs."""
    if not name.startswith('"'):
        return name
    try:
        field: str = json.loads(name)
    except ValueError:
        # The quoted name has an invalid escape or a line break.
        raise InvalidInputError(FORM) from None
    return field


def read_operand(operator: str, text: str) -> JSON:
    """Parse the operand of a condition."""
    if not text and operator == "$exists":
        return True
    if not text:
        raise InvalidInputError(FORM)
    try:
        value: JSON = json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return text
    return value


def is_scalar(value: JSON) -> bool:
    """Return whether a value is neither a list nor an object."""
    return not isinstance(value, list | dict)


def refuse_constant(name: str) -> JSON:
    """Refuse constants that are not JSON, such as NaN."""
    raise ValueError(name)


def check_operand(condition: WhereCondition) -> None:
    """Refuse an operand that does not fit its operator."""
    operator, operand = condition.operator, condition.operand
    check_json("where", {"": operand}, 2 * MAX_CONDITION_LENGTH, MAX_VALUE_DEPTH)
    if operator == "$in" and (not isinstance(operand, list) or not all(map(is_scalar, operand))):
        raise InvalidInputError("where: `in` needs a list, for example project in")
    if operator == "$contains" and not is_scalar(operand):
        raise InvalidInputError("where: `contains` needs a string or a number")
    if operator == "$exists" and not isinstance(operand, bool):
        raise InvalidInputError("where: `exists` takes no value, or true or false")
    if operator in ORDERING and (isinstance(operand, bool) or not isinstance(operand, str | int | float)):
        raise InvalidInputError("where: <, <=, > and >= need a number or a string")
