"""What the SDK sends, values as the bodies and queries that a server takes; and what it makes of an answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any, Generic, TypeVar
from uuid import UUID

import httpx
from pydantic import TypeAdapter

from recollect import errors
from recollect.core.memories.checks import count_characters
from recollect.models.conversations import NewMessage, Window
from recollect.models.memories import NewMemory
from recollect.models.recall import Cue

LONGEST_WAIT_SECONDS = 8.0
MOST_IN_PART, LARGEST_PART, LONGEST_PART = 1_000, 1_500_000, 250_000
"""How many memories, bytes and characters one request of a load takes: a server must read them all in time."""
UNAVAILABLE = frozenset({429, 502, 503, 504})
ERRORS = {
    kind.code: kind
    for kind in (
        errors.InvalidInputError,
        errors.UnauthenticatedError,
        errors.ForbiddenError,
        errors.NotFoundError,
        errors.ConflictError,
        errors.UnavailableError,
        errors.ChatModelError,
        errors.SetupError,
    )
}
Value = TypeVar("Value")


class JsonType(Generic[Value]):
    """A type as JSON has it; how it is read and written is worked out at the first use, because that takes its time."""

    def __init__(self, kind: type[Value]) -> None:
        self._kind = kind

    @cached_property
    def _adapter(self) -> TypeAdapter[Value]:
        return TypeAdapter(self._kind)

    def validate_json(self, text: bytes) -> Value:
        """Read a value from JSON."""
        return self._adapter.validate_json(text)

    def validate_python(self, value: object) -> Value:
        """Read a value from what JSON was read into."""
        return self._adapter.validate_python(value)

    def dump_python(self, value: Value) -> Any:  # noqa: ANN401 - whatever JSON can hold
        """Write a value as JSON has it."""
        return self._adapter.dump_python(value, mode="json")


CUE, NEW_MEMORY, NEW_MESSAGE = JsonType(Cue), JsonType(NewMemory), JsonType(NewMessage)
WINDOW = JsonType(Window)


def to_parameters(**given: str | int | UUID | datetime | None) -> dict[str, str]:
    """Write what is given as a query has it."""
    return {
        name: value.isoformat() if isinstance(value, datetime) else str(value)
        for name, value in given.items()
        if value is not None
    }


def to_body(memory: NewMemory) -> dict[str, Any]:
    """Turn a memory into what the server takes: an absent embedding travels as an empty list."""
    body: dict[str, Any] = NEW_MEMORY.dump_python(memory)
    triple: dict[str, str] = body.pop("triple")
    reach: dict[str, float] = body.pop("reach")
    return body | {"embedding": body["embedding"] or []} | triple | reach


def to_part(memories: Sequence[NewMemory], stored: Sequence[UUID]) -> tuple[int, str]:
    """Write as many memories after those that are stored as one request takes, as a JSON list; say how many."""
    start, bodies, size, characters = len(stored), list[str](), 0, 0
    for memory in memories[start : start + MOST_IN_PART]:
        sources = tuple(find_source(source, start, stored) for source in memory.evidence)
        body = json.dumps(to_body(replace(memory, evidence=sources)), ensure_ascii=False, separators=(",", ":"))
        size += len(body.encode()) + 1
        characters += count_characters(memory)
        if bodies and (size > LARGEST_PART or characters > LONGEST_PART):
            break
        bodies.append(body)
    return len(bodies), f"[{','.join(bodies)}]"


def find_source(source: UUID | int, start: int, stored: Sequence[UUID]) -> UUID | int:
    """Name a source as a part of a load can: a position counts from the part's start, and before it there are ids."""
    if isinstance(source, UUID):
        return source
    return stored[source] if 0 <= source < start else source - start


def to_cue_body(cue: Cue) -> dict[str, Any]:
    """Turn a cue into what the server takes, its weighing among the other fields."""
    body: dict[str, Any] = CUE.dump_python(cue)
    weighing = to_weighing_body(body.pop("weighing"))
    return body | {"embedding": body["embedding"] or []} | weighing


def to_weighing_body(weighing: dict[str, Any]) -> dict[str, Any]:
    """Leave out what is left open."""
    return {name: value for name, value in weighing.items() if value is not None}


def to_message_body(message: NewMessage) -> dict[str, Any]:
    """Turn a message into what the server takes: what is absent travels as empty."""
    body: dict[str, Any] = NEW_MESSAGE.dump_python(message)
    for attachment in body["attachments"]:
        attachment["side"] = attachment["side"] or ""
    parent = "" if message.parent is None else body["parent"]
    return body | {"parent": parent, "embedding": body["embedding"] or []}


def to_window_body(window: Window) -> dict[str, Any]:
    """Turn a window into what the server takes, its prefixes by name."""
    body: dict[str, Any] = WINDOW.dump_python(window)
    user_prefix, assistant_prefix = body.pop("prefixes")
    return body | {"leaf": body["leaf"] or "", "user_prefix": user_prefix, "assistant_prefix": assistant_prefix}


def retry_after(headers: Mapping[str, str]) -> float:
    """Read how long the server asks to wait."""
    asked = headers.get("retry-after", "0")
    return min(LONGEST_WAIT_SECONDS, float(asked)) if asked.isdigit() else 0.0


def read(answer: httpx.Response) -> bytes:
    """Return the body, or raise the error that the server described."""
    if answer.is_success:
        return answer.content
    try:
        problem = answer.json()
        detail = str(problem["detail"]) + "".join(f" {e['field']}: {e['message']}." for e in problem["errors"])
        code = str(problem["code"])
    except (ValueError, KeyError, TypeError):
        detail, code = f"The server answered {answer.status_code}.", ""
    raise ERRORS.get(code, errors.UnavailableError if answer.status_code in UNAVAILABLE else errors.RecollectError)(
        detail
    )
