"""Turn bytes into choices, and choices into edits of JSON: a document of the right shape with wild places in it."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

from support.models.garbage import COMMANDS, DATES, NAMES, NUMBERS

MOST_EDITS = 8
WILD = (
    *NAMES, *DATES, *NUMBERS, *COMMANDS, True, False, None, [], {}, [[]], {"": ""}, "x" * 5_000, "a\nb",
    "a/b", "..", float("-inf"), [None], {"a": [{}]}, "true", "[1]", '{"a": 1}', "2024-01-01T00:00:00Z",
    1_700_000_000_000,
)  # fmt: skip


class Choices:
    """Choices made by bytes, one after the other; all are the first one when the bytes are at an end."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def number(self, below: int) -> int:
        taken = self._data[self._at : self._at + 2]
        self._at += 2
        return int.from_bytes(taken, "little") % below

    def one_of(self, choices: Sequence[Any]) -> Any:
        return choices[self.number(len(choices))]

    def rest(self) -> bytes:
        return self._data[self._at :]


def to_text(data: bytes) -> str:
    """Read bytes as text; what is no UTF-8 becomes lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


def edit(document: Any, choices: Choices) -> Any:
    """Change a document at places that the choices name, until these are at an end."""
    root = [copy.deepcopy(document)]
    for _ in range(MOST_EDITS):
        if not choices:
            break
        change(root, choices)
    return root[0] if root else None


def change(root: list[Any], choices: Choices) -> None:
    place, key = find_place(root, choices)
    if place is None:
        return
    action, value = choices.number(8), copy.deepcopy(place[key])
    if action == 0 and place is not root:
        del place[key]
    elif action == 1 and isinstance(place, list):
        place.insert(key, value)
    elif action == 2 and isinstance(place, dict):
        place[choices.one_of([*NAMES, *place])] = value
    elif action == 3:
        place[key] = [value]
    elif action == 4:
        other = choices.one_of(list_keys(place))
        place[key], place[other] = place[other], place[key]
    else:
        place[key] = copy.deepcopy(choices.one_of(WILD))


def find_place(root: list[Any], choices: Choices) -> tuple[Any, Any]:
    """Walk down to a value: what holds it, and where."""
    place: Any = root
    while keys := list_keys(place):
        key = choices.one_of(keys)
        if not isinstance(place[key], dict | list) or not place[key] or choices.number(4) == 0:
            return place, key
        place = place[key]
    return None, None


def list_keys(place: Any) -> list[Any]:
    return list(place) if isinstance(place, dict) else list(range(len(place)))


def write(value: Any) -> bytes:
    """Write JSON as loosely as programs do, with bare surrogates and numbers that JSON does not know."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
