"""Arguments of tools: flat and plain, because models fill them in."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias, TypeVar
from uuid import UUID

from mcp.server.context import ServerRequestContext
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from recollect.client import RemoteMind
from recollect.doors.misspelt import UNKNOWN, explain_name
from recollect.errors import ForbiddenError, InvalidInputError
from recollect.loading import own_zone
from recollect.mind.mind import Mind
from recollect.models.memories import Kind, NewMemory, RecallState, Revision, Role, Triple
from recollect.models.recall import Cue
from recollect.models.service import Bounds

AnyMind: TypeAlias = Mind | RemoteMind
Asked: TypeAlias = ServerRequestContext[Any, Any]
OpenMind: TypeAlias = Callable[[Asked, str, str], Awaitable[AnyMind]]
"""From a request and the names in it to a mind; opened again at every call, so that no two callers share one."""
OUT_OF_BOUNDS = "This server was started for other names: leave agent and user empty."
KindName: TypeAlias = Literal["message", "event", "chat", "thought", "fact", "summary"]
RoleName: TypeAlias = Literal["user", "assistant", "system", "tool"]
ROLES = "user, assistant, system, tool"
KINDS = "message, event, chat, thought, fact, summary"
MOMENT = "with an offset, as in 2026-01-31T12:00:00+08:00"
MOST_PROBLEMS = 10
LEFT_OUT = "leave empty where the key or the command names it"


def choose_names(bounds: Bounds, agent: str, user: str) -> tuple[str, str]:
    """Fill in the names that a call leaves out, and refuse any other than those that the command was given."""
    chosen = agent or bounds.agent or "", user or bounds.user or ""
    for own, asked in zip((bounds.agent, bounds.user), chosen, strict=True):
        if own is not None and asked != own:
            raise ForbiddenError(OUT_OF_BOUNDS)
    return chosen


def take_list(value: object) -> object:
    """Take a list that comes as text: as JSON, or as its only item; an empty text is an empty list."""
    if not isinstance(value, str):
        return [] if value is None else value
    with suppress(ValueError):
        read = json.loads(value)
        if isinstance(read, list):
            return read
    return [value] if value.strip() else []


Texts = Annotated[list[Annotated[str, Field(max_length=2_000)]], BeforeValidator(take_list)]
KindNames = Annotated[list[KindName], BeforeValidator(take_list)]
RoleNames = Annotated[list[RoleName], BeforeValidator(take_list)]
Ids = Annotated[list[UUID], BeforeValidator(take_list)]
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


class Scoped(Arguments):
    """The names of a scope; last, and empty unless the caller has a reason."""

    agent: str = Field("", max_length=128, description=f"Whose memory it is; {LEFT_OUT}.")
    user: str = Field("", max_length=128, description=f"Whom it is about or with; {LEFT_OUT}.")


class RememberArguments(Arguments):
    """One thing to remember."""

    content: str = Field(min_length=1, max_length=32_000, description="What to remember, understandable by itself.")
    kind: KindName = Field("event", description=f"What it is, one of {KINDS}.")
    importance: Scored = Field(None, description="1 (mundane) to 10 (life-changing); leave it out if unsure.")
    speaker: str = Field("", max_length=200, description="Who said it, if somebody did.")
    topic: str = Field("", max_length=2_000, description="The path of a topic to file it under, as in travel->Japan.")
    keywords: Texts = Field(default_factory=list[str], max_length=64, description="Words to file it under.")
    occurred_at: str = Field("", max_length=40, description=f"When it happened, {MOMENT}; now if empty.")
    pinned: bool = Field(default=False, description="Whether every context shows it, whatever is asked.")
    if_new: Literal["", "same", "near"] = Field(
        "", description="Store it only if it is not known yet: same compares texts, near also much the same words."
    )
    once: str = Field("", max_length=255, description="A name of yours for this call: sent again, it stores nothing.")

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


class FilterArguments(Arguments):
    """What to find only."""

    kinds: KindNames = Field(default_factory=list[KindName], description=f"Only these kinds, of {KINDS}; all if empty.")
    conversations: Texts = Field(default_factory=list[str], max_length=64, description="Only of these conversations.")
    roles: RoleNames = Field(default_factory=list[RoleName], description=f"Only messages of these roles, of {ROLES}.")
    speakers: Texts = Field(default_factory=list[str], max_length=64, description="Only what these have said.")
    origins: Texts = Field(default_factory=list[str], max_length=64, description="Only what came in by these ways.")
    topics: Texts = Field(default_factory=list[str], max_length=16, description="Paths of topics that come first.")
    below: bool = Field(default=False, description="Whether what lies below these topics counts as theirs.")
    topics_only: bool = Field(default=False, description="Whether to find only what is filed under these topics.")
    since: str = Field("", max_length=40, description=f"Only what happened then or later, {MOMENT}.")
    until: str = Field("", max_length=40, description="Only what happened before, written alike.")
    min_trust: int = Field(0, ge=0, le=100, description="Only what is trusted so much.")
    min_importance: float = Field(0.0, ge=0, le=10, description="Only what is so important, of 1 to 10.")
    as_of: str = Field("", max_length=40, description="By what was believed then.")
    at: str = Field("", max_length=40, description="By what was true then.")
    pinned: Either = Field(None, description="Only what is pinned, or only what is not; leave it out for both.")
    state: Literal["", "current", "in_archived", "faded", "past", "withheld"] = Field(
        "", description="Only what is in this state; current if empty."
    )
    where: Texts = Field(
        default_factory=list[str], max_length=16, description="Conditions on metadata, as in project == alpha."
    )

    def to_fields(self) -> dict[str, Any]:
        """Turn the arguments into fields of a filter."""
        given = {name: getattr(self, name) for name in FilterArguments.model_fields}
        lists = {name: tuple(each) for name, each in given.items() if isinstance(each, list)}
        moments = {name: read_moment(name, given[name]) for name in ("since", "until", "as_of", "at")}
        named = {"kinds": tuple(map(Kind, self.kinds)), "roles": tuple(map(Role, self.roles))}
        return {**given, **lists, **moments, **named, "state": RecallState(self.state) if self.state else None}


class CueArguments(FilterArguments):
    """What to find only, and how likely it must help."""

    min_relevance: Likely = Field(None, description="Only what helps at least so likely, 0 to 1; leave it out usually.")

    def to_fields(self) -> dict[str, Any]:
        """Turn the arguments into fields of a cue."""
        return {**FilterArguments.to_fields(self), "min_relevance": self.min_relevance}


class RecallArguments(CueArguments):
    """What to be reminded of."""

    text: str = Field("", max_length=8_000, description="What to be reminded of, in any language; the newest if empty.")
    limit: int = Field(10, ge=1, le=50, description="Most memories to return.")
    zone: str = Field(
        "", max_length=64, description="Time zone of who asks, as in Asia/Shanghai; the server's if empty."
    )

    def to_cue(self) -> Cue:
        """Turn the arguments into a value."""
        return Cue(self.text, limit=self.limit, zone=self.zone or own_zone(), **self.to_fields())


class AssociateArguments(Arguments):
    """Something perceived, in three parts."""

    subject: str = Field("", max_length=500, description="Who or what it is about, as in Maria Lopez.")
    predicate: str = Field("", max_length=500, description="What it does, as in drinks.")
    object: str = Field("", max_length=500, description="To whom or what, as in coffee.")
    limit: int = Field(10, ge=1, le=50, description="Most events, and most thoughts, to return.")

    def to_value(self) -> Triple:
        """Turn the arguments into a value."""
        if not (self.subject or self.predicate or self.object):
            raise InvalidInputError("name at least one of subject, predicate and object")
        return Triple(self.subject, self.predicate, self.object)


class HistoryArguments(Arguments):
    """Which conversation to read, and how much of it."""

    conversation: str = Field(min_length=1, max_length=128, description="The conversation's name.")
    max_tokens: int = Field(2_000, ge=0, le=200_000, description="How many tokens the messages may have together.")


class ContextArguments(CueArguments):
    """What to make a prompt of."""

    text: str = Field(min_length=1, max_length=8_000, description="What the user asks or says now.")
    conversation: str = Field("", max_length=128, description="The conversation it is said in, if there is one.")
    budget: int = Field(4_000, ge=1, le=200_000, description="How many tokens the context may have.")

    def to_cue(self) -> Cue:
        """Turn the arguments into a value."""
        return Cue(self.text, **self.to_fields())


class ForgetArguments(FilterArguments):
    """Which memories to delete."""

    ids: Ids = Field(
        default_factory=list[UUID], max_length=100, description="Ids of memories, as recall gives them; or a filter."
    )
    dry_run: bool = Field(default=False, description="Only list what would be deleted.")


class ReviseArguments(Arguments):
    """Which memory to revise, and what becomes of it; what is empty stays as it is."""

    id: UUID = Field(description="The id of the memory, as recall gives it.")
    content: str = Field("", max_length=32_000, description="What is remembered from now on.")
    importance: Important = Field(None, description="1 (mundane) to 10 (life-changing).")
    topic: str = Field("", max_length=2_000, description="The path of the topic to file it under, as in travel->Japan.")
    keywords: Texts = Field(default_factory=list[str], max_length=64, description="Words to file it under.")
    occurred_at: str = Field("", max_length=40, description=f"When it happened, {MOMENT}.")

    def to_value(self) -> Revision:
        """Turn the arguments into a value."""
        return Revision(
            content=self.content or None,
            importance=self.importance,
            keywords=tuple(self.keywords) or None,
            occurred_at=read_moment("occurred_at", self.occurred_at),
            topic=self.topic or None,
        )


class PinArguments(Arguments):
    """Which memories to pin, or not to pin any longer."""

    ids: Ids = Field(min_length=1, max_length=100, description="Ids of memories, as recall gives them.")
    pinned: bool = Field(default=True, description="False lets them go.")


def read_moment(name: str, text: str) -> datetime | None:
    """Read a moment that has an offset; None if it is empty."""
    if not text.strip():
        return None
    with suppress(ValueError):
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is not None:
            return moment
    raise InvalidInputError(f"{name} must be written as in 2026-01-31T12:00:00+08:00, with the offset")


def take_arguments(takes: type[Given], given: Mapping[str, object] | None) -> Given:
    """Read a call's arguments; say which are invalid and why, and never their values."""
    try:
        return takes.model_validate(given or {})
    except ValidationError as problem:
        found = [
            explain(takes, error["loc"], error["type"], error["msg"]) for error in problem.errors()[:MOST_PROBLEMS]
        ]
    raise InvalidInputError(f"Some arguments cannot be accepted, correct them and call again. {'; '.join(found)}.")


def explain(takes: type[Arguments], place: tuple[int | str, ...], kind: str, message: str) -> str:
    """Say what is wrong with one argument; an unknown name is repeated, cut to a few words."""
    if kind == UNKNOWN:
        return explain_name(str(place[-1]), takes.model_fields)
    return f"{'.'.join(map(str, place))[:200]}: {message}"
