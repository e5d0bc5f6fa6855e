"""Arguments of tools: flat and plain, because models fill them in."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime
from enum import Enum
from types import GenericAlias
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar
from uuid import UUID

from mcp.server.context import ServerRequestContext
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema, create_model

from recollect.client import RemoteMind
from recollect.errors import ForbiddenError, InvalidInputError
from recollect.loading import local_timezone
from recollect.mind.mind import Mind
from recollect.misspelt import UNKNOWN, explain_name
from recollect.models.filters import FILTER_FIELDS, FilterField
from recollect.models.memories import Kind, NewMemory, Triple
from recollect.models.recall import Cue
from recollect.models.service import KeyBinding

AnyMind: TypeAlias = Mind | RemoteMind
Asked: TypeAlias = ServerRequestContext[Any, Any]
OpenMind: TypeAlias = Callable[[Asked, str, str], Awaitable[AnyMind]]
"""From a request and the names in it to a mind; opened again at every call, so that no two callers share one."""
KEY_BINDING_MISMATCH = "agent and user are fixed on this server: leave them empty"
KindName: TypeAlias = Literal["message", "event", "chat", "thought", "fact", "summary"]
RoleName: TypeAlias = Literal["user", "assistant", "system", "tool"]
ROLES = "user, assistant, system, tool"
KINDS = "message, event, chat, thought, fact, summary"
MOMENT = "with an offset, as in 2026-01-31T12:00:00+08:00"
MAX_PROBLEMS = 10
LEFT_OUT = "leave empty if the key or the command names it"


def choose_names(bounds: KeyBinding, agent: str, user: str) -> tuple[str, str]:
    """Fill in the names that a call leaves out, and refuse any other than those that the command was given."""
    chosen = agent or bounds.agent or "", user or bounds.user or ""
    for own, asked in zip((bounds.agent, bounds.user), chosen, strict=True):
        if own is not None and asked != own:
            raise ForbiddenError(KEY_BINDING_MISMATCH)
    return chosen


def parse_list(value: object) -> object:
    """Convert a text to a list: as JSON, or as its only item; an empty text is an empty list."""
    if not isinstance(value, str):
        return [] if value is None else value
    with suppress(ValueError):
        read = json.loads(value)
        if isinstance(read, list):
            return read
    return [value] if value.strip() else []


Texts = Annotated[list[Annotated[str, Field(max_length=2_000)]], BeforeValidator(parse_list)]
Ids = Annotated[list[UUID], BeforeValidator(parse_list)]
Either = Annotated[bool | None, WithJsonSchema({"type": "boolean"})]
Likely = Annotated[float | None, Field(ge=0, le=1), WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1})]
Important = Annotated[float | None, Field(ge=1, le=10), WithJsonSchema({"type": "number", "minimum": 1, "maximum": 10})]
"""Or left out; described without a choice of types, which some clients cannot fill in."""
Scored = Annotated[float | None, Field(ge=1, le=10), WithJsonSchema({"type": "number", "minimum": 1, "maximum": 10})]
"""Or left out, as above."""


class Arguments(BaseModel):
    """Arguments of a tool; unknown ones are refused, so that a misspelt name is noticed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Given = TypeVar("Given", bound=Arguments)


class ScopeArguments(Arguments):
    """The names of a scope; last, and empty unless the caller has a reason."""

    agent: str = Field("", max_length=128, description=f"Name of the agent whose memory it is; {LEFT_OUT}.")
    user: str = Field("", max_length=128, description=f"Name of the user it is about; {LEFT_OUT}.")


class RememberArguments(Arguments):
    """A memory to store."""

    content: str = Field(
        min_length=1,
        max_length=32_000,
        description='The memory as a self-contained sentence. Use names instead of "I" or "he".',
    )
    kind: KindName = Field("event", description=f"Kind of memory, one of {KINDS}.")
    importance: Scored = Field(None, description="1 (trivial) to 10 (life-changing). Omit if unsure.")
    speaker: str = Field("", max_length=200, description="Name of the speaker.")
    topic: str = Field("", max_length=2_000, description="Topic path, e.g. travel->Japan.")
    keywords: Texts = Field(default_factory=list[str], max_length=64, description="Keywords to find it by.")
    occurred_at: str = Field("", max_length=40, description=f"When it happened, {MOMENT}; now if empty.")
    pinned: bool = Field(default=False, description="Include it in every context.")
    if_new: Literal["", "same", "near"] = Field(
        "", description="Skip duplicates: same = same text, near = nearly the same words."
    )
    once: str = Field(
        "", max_length=255, description="Idempotency key: a repeated call with the same key stores nothing."
    )

    def to_value(self) -> NewMemory:
        """Turn the arguments into a value."""
        moment = read_moment("occurred_at", self.occurred_at)
        return NewMemory(
            self.content,
            Kind(self.kind),
            self.speaker,
            self.importance,
            keywords=tuple(self.keywords),
            occurred_at=moment,
            topic=self.topic,
            pinned=self.pinned,
        )


def describe_argument(each: FilterField) -> tuple[Any, Any]:
    """Return the type and the rules of a filter's field as an argument."""
    if each.many:
        names = [*map(str, each.type)] if issubclass(each.type, Enum) else []
        text = Annotated[str, Field(max_length=each.bounds.get("length"))]
        items = GenericAlias(list, Literal[*names] if names else text)
        said = f"{each.help} One or more of {', '.join(names)}." if names else each.help
        rules = Field(default_factory=list[Any], max_length=each.bounds["items"], description=said)
        return Annotated[items, BeforeValidator(parse_list)], rules
    if each.type is datetime:
        return str, Field("", max_length=40, description=f"{each.help} ISO 8601 {MOMENT}.")
    if issubclass(each.type, Enum):
        return Literal["", *map(str, each.type)], Field("", description=each.help)
    if each.type is bool:
        return Either if each.optional else bool, Field(None if each.optional else False, description=each.help)
    return each.type, Field(each.type(0), description=each.help, **each.bounds)


class Filtering(Arguments):
    """The restrictions of a read, as arguments."""

    def to_fields(self) -> dict[str, Any]:
        """Turn the arguments into fields of a filter."""
        return {each.name: read_value(each, getattr(self, each.name)) for each in FILTER_FIELDS}


if TYPE_CHECKING:

    class FilterArguments(Filtering):
        """What to find only."""

else:
    FilterArguments = create_model(
        "FilterArguments",
        __base__=Filtering,
        __doc__="What to find only.",
        __module__=__name__,
        **{each.name: describe_argument(each) for each in FILTER_FIELDS},
    )


class CueArguments(FilterArguments):
    """What to find only, and how likely it must help."""

    min_relevance: Likely = Field(None, description="Minimum relevance, 0 to 1. Usually omit.")

    def to_fields(self) -> dict[str, Any]:
        """Turn the arguments into fields of a cue."""
        return {**FilterArguments.to_fields(self), "min_relevance": self.min_relevance}


class RecallArguments(CueArguments):
    """Query."""

    text: str = Field(
        "",
        max_length=8_000,
        description="The query, in natural language. Names and dates help. Empty = newest memories.",
    )
    limit: int = Field(10, ge=1, le=50, description="Maximum number of results.")
    zone: str = Field("", max_length=64, description="Time zone of the user, e.g. Asia/Shanghai.")

    def to_cue(self) -> Cue:
        """Turn the arguments into a value."""
        return Cue(self.text, limit=self.limit, zone=self.zone or local_timezone(), **self.to_fields())


class AssociateArguments(Arguments):
    """Something perceived, in three parts."""

    subject: str = Field("", max_length=500, description="Subject, e.g. Maria Lopez.")
    predicate: str = Field("", max_length=500, description="Predicate, e.g. drinks.")
    object: str = Field("", max_length=500, description="Object, e.g. coffee.")
    limit: int = Field(10, ge=1, le=50, description="Maximum number of events and of thoughts.")

    def to_value(self) -> Triple:
        """Turn the arguments into a value."""
        if not (self.subject or self.predicate or self.object):
            raise InvalidInputError("name at least one of subject, predicate and object")
        return Triple(self.subject, self.predicate, self.object)


class HistoryArguments(Arguments):
    """Which conversation to read, and how much of it."""

    conversation: str = Field(min_length=1, max_length=128, description="Conversation ID.")
    max_tokens: int = Field(2_000, ge=0, le=200_000, description="Token limit.")


class ContextArguments(CueArguments):
    """What to make a prompt of."""

    text: str = Field(min_length=1, max_length=8_000, description="The user's current message.")
    conversation: str = Field("", max_length=128, description="Conversation ID, to include recent messages.")
    budget: int = Field(4_000, ge=1, le=200_000, description="Token limit of the result.")

    def to_cue(self) -> Cue:
        """Turn the arguments into a value."""
        return Cue(self.text, **self.to_fields())


class ForgetArguments(FilterArguments):
    """Which memories to delete."""

    ids: Ids = Field(default_factory=list[UUID], max_length=100, description="Memory IDs from recall.")
    dry_run: bool = Field(default=False, description="Only list what would be deleted.")


class UpdateArguments(Arguments):
    """The memory to update, and the new values; empty fields stay unchanged."""

    id: UUID = Field(description="Memory ID from recall.")
    content: str = Field("", max_length=32_000, description="New text.")
    importance: Important = Field(None, description="1 (trivial) to 10 (life-changing).")
    topic: str = Field("", max_length=2_000, description="New topic path, e.g. travel->Japan.")
    keywords: Texts = Field(default_factory=list[str], max_length=64, description="Keywords to find it by.")
    occurred_at: str = Field("", max_length=40, description=f"When it happened, {MOMENT}.")
    pinned: Either = Field(None, description="Include it in every context, or not.")


def read_value(each: FilterField, given: Any) -> object:  # noqa: ANN401 - of any type
    """Read an argument as the value of a filter's field."""
    if each.many:
        return tuple(map(each.type, given))
    if each.type is datetime:
        return read_moment(each.name, given)
    return (each.type(given) if given else None) if issubclass(each.type, Enum) else given


def read_moment(name: str, text: str) -> datetime | None:
    """Read a time with an offset; None if it is empty."""
    if not text.strip():
        return None
    with suppress(ValueError):
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is not None:
            return moment
    raise InvalidInputError(f"{name} must be written as in 2026-01-31T12:00:00+08:00, with the offset")


def parse_arguments(takes: type[Given], given: Mapping[str, object] | None) -> Given:
    """Read a call's arguments; say which are invalid and why, and never their values."""
    try:
        return takes.model_validate(given or {})
    except ValidationError as problem:
        found = [
            explain_invalid_argument(takes, error["loc"], error["type"], error["msg"])
            for error in problem.errors()[:MAX_PROBLEMS]
        ]
    raise InvalidInputError(f"Some arguments cannot be accepted, correct them and call again. {'; '.join(found)}.")


def explain_invalid_argument(takes: type[Arguments], place: tuple[int | str, ...], kind: str, message: str) -> str:
    """Describe the fault of one argument; an unknown name is repeated, cut to a few words."""
    if kind == UNKNOWN:
        return explain_name(str(place[-1]), takes.model_fields)
    return f"{'.'.join(map(str, place))[:200]}: {message}"
