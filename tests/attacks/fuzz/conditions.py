"""Conditions on metadata: what is read can be written again and means the same, and all else is refused in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import astuple

from pydantic import TypeAdapter, ValidationError

from attacks.fuzz.edits import Choices, edit, to_text
from recollect.core.memories import conditions
from recollect.core.memories.conditions import MAX_CONDITION_LENGTH, OPERATORS, read_condition
from recollect.doors.dify.conditions import MetadataCondition
from recollect.errors import InvalidInputError

WATCHED = "recollect.core.memories.conditions recollect.core.text.checks recollect.doors.dify.conditions"
WRITTEN = (
    *("project == alpha", ' "my field" != "3" ', "size>=3", "size < -1.5e3", "due <= 2026-01-31", "in in [1, null]"),
    *("tags contains red", "due exists", "due exists false", "项目 == 甲", "a == b == c", "a == NaN", "a b == 3"),
    *('"a\\u0000" == 1', '"a\\"b" == {"c": [1, {"d": null}]}', "a in [[1]]", "a == 1e999", '"" exists', "a contains"),
)
SIGNS = {operator: sign for sign, operator in OPERATORS.items()}
SENT = {
    "logical_operator": "and",
    "conditions": [
        {"name": ["project", "due"], "comparison_operator": "contains", "value": "alpha"},
        {"name": ["due"], "comparison_operator": "before", "value": "2024-01-01"},
        {"name": "size", "comparison_operator": "≥", "value": 3},
        {"name": ["tags"], "comparison_operator": "in", "value": ["red", "1"]},
        {"name": ["tags"], "comparison_operator": "empty", "value": None},
    ],
}
METADATA = {"project": "alpha", "size": 1, "tags": ["red", 2], "due": "2024-05-01", "done": True}
DIFY = TypeAdapter(MetadataCondition)
IN_DIFY = 7


def list_seeds() -> Iterator[bytes]:
    yield from (b"\0\0" + text.encode() for text in WRITTEN)
    yield bytes([IN_DIFY, 0, 1, 0, 2, 0, 1, 0, 1, 0, 1, 0, 5, 0, 9, 0])


def check(data: bytes) -> None:
    choices = Choices(data)
    if choices.number(8) == IN_DIFY:
        check_dify(choices)
    else:
        check_ours(to_text(choices.rest()))


def check_ours(text: str) -> None:
    try:
        condition = read_condition(text)
    except InvalidInputError as problem:
        assert len(str(problem)) < 200
        return
    assert len(text) <= MAX_CONDITION_LENGTH
    operand = json.dumps(condition.operand, ensure_ascii=False)
    again = f"{json.dumps(condition.field, ensure_ascii=False)} {SIGNS[condition.operator]} {operand}"
    if len(again) <= MAX_CONDITION_LENGTH:
        # As text, because a field may be compared with 1 or with 1.0.
        assert repr(astuple(read_condition(again))) == repr(astuple(condition))


def check_dify(choices: Choices) -> None:
    sent, metadata = edit(SENT, choices), edit(METADATA, choices)
    try:
        wanted = DIFY.validate_python(sent)
    except ValidationError:
        return
    if isinstance(metadata, dict):
        assert wanted.holds(metadata) in {True, False}
    assert len(wanted.demanded) <= len(wanted.conditions or [])


def plant() -> None:
    """Take what is no JSON for a mistake of the program."""
    conditions.refuse_constant = lambda name: {}[name]
