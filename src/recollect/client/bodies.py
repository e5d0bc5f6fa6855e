"""What the SDK sends: the arguments of an operation, as the query or the body of a request."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

from pydantic_core import to_jsonable_python

from recollect import models
from recollect.client.calls import ConversationPart, RemoteView
from recollect.client.operations import OPERATIONS
from recollect.loading import load
from recollect.misspelt import read_filter

IN_PATH = re.compile(r"\{(\w+)\}")
IDEMPOTENCY_KEY = "idempotency_key"


def as_list(kind: Callable[[], type]) -> Callable[[Any], list[Any]]:
    """Return a function that turns one value or many into a list of values of a type."""

    def to_list(given: Any) -> list[Any]:  # noqa: ANN401 - one or many, of any type
        many: Sequence[Any] = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
        return [as_one(kind)(each) for each in many]

    return to_list


def as_one(kind: Callable[[], type]) -> Callable[[Any], Any]:
    """Return a function that converts an argument to a type, as a text to a cue; the type is loaded on first use."""
    return lambda given: given if isinstance(given, kind()) else kind()(given)


def in_query(ids: Sequence[UUID]) -> list[str]:
    """Write IDs for a query: short, and an empty list as an empty text, because without it the list would be longer."""
    return [str(each).replace("-", "") for each in ids] or [""]


def as_messages(given: Any) -> Any:  # noqa: ANN401 - anything that can be appended
    """Convert one message or many to a list of messages."""
    return load("recollect.core.conversations.messages").as_messages(given)


def is_named(value: object, name: str) -> bool:
    """Return whether a value's class has this name, without loading the class. No two classes share a name."""
    return type(value).__name__ == name


TAKEN: Mapping[str, Callable[[Any], Any]] = {
    "cue": as_one(lambda: models.Cue),
    "cues": as_list(lambda: models.Cue),
    "facts": as_list(lambda: models.NewFact),
    "memories": as_list(lambda: models.NewMemory),
    "filter": read_filter,
    "knowledge.entities.ids": in_query,
    "list.ids": in_query,
    "memory_id": lambda written: str(written).strip().strip("[]").lower(),
    "messages": as_messages,
    "topics.link.memories": as_list(lambda: models.NewTopicLink),
    "triples": as_list(lambda: models.Triple),
    "window": as_one(lambda: models.HistoryOptions),
}
"""How an argument of many forms becomes values, by its name, and by the operation's where that matters."""
NOT_OF_A_WINDOW = {"max_tokens", "as_of", "at"}
LEFT_OUT = {
    "conversation.context.window": NOT_OF_A_WINDOW,
    "conversation.chat.window": NOT_OF_A_WINDOW,
    "set_profile.profile": {"metadata"},
}
"""Which fields of a value an operation does not take: a prompt has one budget, and the times of its cue."""


def write(view: RemoteView, key: str, arguments: Mapping[str, object]) -> tuple[str, str, dict[str, Any]]:
    """Build a request: its method, its path, and its query, or its body and an idempotency key; None is left out."""
    operation, given = OPERATIONS[key], {name: value for name, value in arguments.items() if value is not None}
    asked = {"agent": view.agent} if operation.agent_only else {"agent": view.agent, "user": view.user}
    if isinstance(view, ConversationPart):
        given = {"conversation": view.conversation} | given
    named = {
        name: quote(str(to_payload(f"{key}.{name}", given.pop(name))), safe="")
        for name in IN_PATH.findall(operation.path)
    }
    headers = {"Idempotency-Key": given.pop(IDEMPOTENCY_KEY) or uuid4().hex} if IDEMPOTENCY_KEY in given else {}
    for name, value in given.items():
        asked |= write_argument(key, name, value)
    content = {"params": asked} if operation.method in ("GET", "DELETE") else {"json": asked, "headers": headers}
    return operation.method, operation.path.format(**named), content


def write_argument(key: str, name: str, value: object) -> dict[str, Any]:
    """Return an argument under its name. The fields of a nested value are placed next to the others."""
    place = f"{key}.{name}"
    taken = to_payload(place, value)
    if is_dataclass(taken) and not isinstance(taken, type):
        return {field: each for field, each in flatten(taken).items() if field not in LEFT_OUT.get(place, ())}
    if isinstance(taken, Sequence) and not isinstance(taken, str):
        return {name: [flatten(each) if is_dataclass(each) else to_jsonable_python(each) for each in taken]}
    return {name: to_jsonable_python(taken)}


def to_payload(place: str, value: object) -> Any:  # noqa: ANN401 - an argument of any type
    """Convert an argument to the one form that is sent."""
    known = TAKEN.get(place) or TAKEN.get(place.rpartition(".")[2])
    return known(value) if known else value


def flatten(value: Any) -> dict[str, Any]:  # noqa: ANN401 - a value of any type
    """Return a value as a body: the fields of nested values become fields of the body, and None is left out."""
    if is_named(value, "BudgetShares"):
        return {f"{name}_share": share for name, share in to_jsonable_python(value).items()}
    body = dict[str, Any]()
    for field in fields(value):
        given = getattr(value, field.name)
        if is_dataclass(given):
            body |= flatten(given)
        elif isinstance(given, tuple) and given and is_dataclass(given[0]):
            body[field.name] = [flatten(each) for each in given]
        elif given is not None:
            body[field.name] = to_jsonable_python(given)
    if is_named(value, "NewFact"):
        body |= {f"{end}_id": body.pop(end) for end in ("subject", "object") if isinstance(getattr(value, end), UUID)}
    return body
