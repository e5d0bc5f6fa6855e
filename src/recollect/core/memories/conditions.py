"""Read conditions on metadata, which are written as `project == alpha`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from recollect.core.text.checks import check_json, check_line, check_text
from recollect.errors import InvalidInputError
from recollect.models.memories import JSON

LONGEST_CONDITION = 2_000
DEEPEST_VALUE = 16
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
"""How a condition is written, and the operator that the database knows it by."""
ORDERING = frozenset({"$lt", "$lte", "$gt", "$gte"})
WRITTEN = re.compile(
    r'\s*("(?:[^"\\]|\\.)*"|[^\s"=!<>]+)\s*(==|!=|<=|>=|<|>|(?<=\s)(?:in|contains|exists)(?!\S))\s*(.*?)\s*', re.DOTALL
)
FORM = 'where must be written as in project == alpha, size >= 3, tags contains "red" or due exists'


@dataclass(frozen=True, slots=True)
class WhereCondition:
    """What a field of a memory's metadata is compared with, and how."""

    field: str
    operator: str
    operand: JSON


def read_condition(text: str) -> WhereCondition:
    """Read one condition: a field, an operator, and JSON; what is no JSON is a text as it stands."""
    check_text("where", text, LONGEST_CONDITION)
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
    """Read the name of a field, which stands in quotes if it has a blank or a sign in it."""
    if not name.startswith('"'):
        return name
    try:
        field: str = json.loads(name)
    except ValueError:
        # A backslash in it escapes nothing, or a line ends in it.
        raise InvalidInputError(FORM) from None
    return field


def read_operand(operator: str, text: str) -> JSON:
    """Read what a field is compared with."""
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
    """Tell whether a value has no parts."""
    return not isinstance(value, list | dict)


def refuse_constant(name: str) -> JSON:
    """Refuse what JSON does not know, as NaN."""
    raise ValueError(name)


def check_operand(condition: WhereCondition) -> None:
    """Refuse what an operator cannot compare with."""
    operator, operand = condition.operator, condition.operand
    check_json("where", {"": operand}, 2 * LONGEST_CONDITION, DEEPEST_VALUE)
    if operator == "$in" and (not isinstance(operand, list) or not all(map(is_scalar, operand))):
        raise InvalidInputError('where: `in` needs a list of texts or numbers, as in project in ["alpha", "beta"]')
    if operator == "$contains" and not is_scalar(operand):
        raise InvalidInputError("where: `contains` needs a text or a number")
    if operator == "$exists" and not isinstance(operand, bool):
        raise InvalidInputError("where: `exists` stands alone, or with true or false")
    if operator in ORDERING and (isinstance(operand, bool) or not isinstance(operand, str | int | float)):
        raise InvalidInputError("where: an order needs a number or a text")
