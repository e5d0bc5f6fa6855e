"""What the bodies of requests have in common: types of fields, the names of a scope, and how they become values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Annotated, Any, TypeAlias, TypeVar, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from recollect.models.memories import ImportanceFrom, Kind

NAME, CONVERSATION = r"^[^\x00-\x1f/\x7f-\x9f]*$", r"^[A-Za-z0-9._:@-]{1,128}$"
ANY_CONVERSATION = CONVERSATION.replace("1,", "0,")
Name = Annotated[str, Field(max_length=128, pattern=NAME)]
"""An agent's or a user's name, of any script; a user's may be empty, and an agent's if the key is bound to one."""
FullName = Annotated[Name, Field(min_length=1)]
SENTENCES: Mapping[str, str] = {
    NAME: "a name must not have a slash or a control character",
    CONVERSATION: "conversation must be 1 to 128 characters (A-Z a-z 0-9 . _ : @ -)",
    ANY_CONVERSATION: "conversation must be empty, or 1 to 128 characters (A-Z a-z 0-9 . _ : @ -)",
}
"""What a pattern asks for."""
OMITTED: Any = None
"""The default of an optional list or object. It may not be null: Dify would take it for a text then."""
ConversationName = Annotated[str, Field(pattern=CONVERSATION)]
AnyConversation = Annotated[str, Field(pattern=ANY_CONVERSATION)]
"""The id of a conversation, or nothing."""
PlainKind = Annotated[Kind, WithJsonSchema({"type": "string", "enum": [*map(str, Kind)]})]
"""A kind that the document describes in place: tools like Dify do not follow a reference there."""
PlainSource = Annotated[ImportanceFrom, WithJsonSchema({"type": "string", "enum": [*map(str, ImportanceFrom)]})]
"""Who scored an importance, described in place as well."""
ScopeNames = Annotated[list[Annotated[str, Field(min_length=1, max_length=520)]], Field(max_length=4)]
"""More scopes of the tenant, each as agent or agent/user."""
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Integer = Annotated[int, Field(strict=True)]
Vector = Annotated[list[Number], Field(max_length=4096)]
TopicPath = Annotated[str, Field(max_length=2_000)]
PATH = "The path of a topic, as in `travel->Japan`."
AGENT = "Agent. May be empty if the key is bound to one."
USER = "User. Empty for the agent's own memory."
AS_OF = "Only data stored by this time, in the versions of that time. Default: now."
AT = "Only data that was true, or had happened, at this time. Default: all that has not ended."
EXAMPLE_ID = "01a1dd05-b16b-7000-b535-83c8ebea4fa9"
SCOPE: dict[str, Any] = {"agent": "ada", "user": "zhang-wei"}
"""The scope of the examples."""
Value = TypeVar("Value")


def check_written(value: object) -> object:
    """Accept times as text only: a bare number could mean seconds or milliseconds."""
    written = isinstance(value, str) and value[4:5] == "-"
    if not (written or value is None or isinstance(value, datetime)):
        raise ValueError("must be written as in 2026-01-31T12:00:00+08:00")
    return value


Moment = Annotated[datetime, BeforeValidator(check_written)]
OptionalMoment: TypeAlias = Moment | None


def build_example_config(example: Mapping[str, Any]) -> ConfigDict:
    """Return the configuration of a body with an example for the document."""
    return ConfigDict(json_schema_extra={"examples": [dict(example)]})


class Body(BaseModel):
    """A body that refuses unknown fields, so that a misspelt one is noticed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class AgentBody(Body):
    """A body that names an agent."""

    agent: Name = Field(description=AGENT)


class ScopeBody(AgentBody):
    """A body that names a scope."""

    model_config = build_example_config(SCOPE)

    user: Name = Field("", description=USER)


def build(kind: type[Value], body: Body) -> Value:
    """Build a value from a body, field by field; fields of a nested value are next to the others in the body."""
    return kind(**read_fields(kind, body))


def read_fields(kind: type[Any], body: Body) -> dict[str, Any]:
    """Read the fields of a value from a body."""
    return {name: read(body) for name, read in plan(cast("Any", kind), type(body))}


@cache
def plan(kind: type, body: type[Body]) -> tuple[tuple[str, Callable[[Body], Any]], ...]:
    """Return how each field of a value is read from a body; missing fields have the value's defaults."""
    hints, steps = get_type_hints(kind), list[tuple[str, Callable[[Body], Any]]]()
    for field in fields(kind):
        hint, known = hints[field.name], field.name in body.model_fields
        if known:
            steps.append((field.name, read_field(field.name, hint, optional=field.default is None)))
        elif is_dataclass(hint):
            steps.append((field.name, within(cast("type", hint))))
        elif field.default is MISSING and field.default_factory is MISSING:
            raise TypeError(f"{body.__name__} has no {field.name} for {kind.__name__}")
    return tuple(steps)


def read_field(name: str, hint: Any, *, optional: bool) -> Callable[[Body], Any]:  # noqa: ANN401 - a type as it is written
    """Return a reader of a field: a list becomes a tuple if the value has one; empty values become None if allowed."""
    sorts = (hint, *get_args(hint))
    tupled = any(get_origin(each) is tuple for each in sorts)
    inner: Any = next((each for each in sorts if is_dataclass(each)), None)
    chosen = next((each for each in sorts if isinstance(each, type) and issubclass(each, Enum)), None)

    def read_attribute(body: Body) -> Any:  # noqa: ANN401 - a field of any type
        given: Any = getattr(body, name)
        if optional and given in ("", [], {}):
            return None
        if tupled and isinstance(given, list):
            return tuple(build(inner, each) if inner else each for each in cast("list[Any]", given))
        return chosen(given) if chosen and given is not None else given

    return read_attribute


def within(kind: type) -> Callable[[Body], Any]:
    """Return a reader of a nested value whose fields are next to the others in a body."""

    def build_value(body: Body) -> Any:  # noqa: ANN401 - a value of any type
        return build(kind, body)

    return build_value
