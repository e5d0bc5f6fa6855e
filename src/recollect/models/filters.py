"""The filter: what a read is restricted to, with the help and the bounds that all interfaces share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from operator import attrgetter
from types import NoneType
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

from recollect.models.memories import Kind, RecallState, Role

MAX_CONDITIONS = 16
"""Maximum number of conditions in `where`."""


def restrict(help: str, **bounds: float) -> Mapping[str, Any]:  # noqa: A002 - its name
    """Describe a field: its help, the maximum number and length of its items, or the bounds of a number."""
    return {"help": help, "bounds": bounds}


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Restrictions of a read: every channel and list applies them before it limits its result."""

    kinds: tuple[Kind, ...] = field(default=(), metadata=restrict("Only these kinds. Default: all.", items=6))
    conversations: tuple[str, ...] = field(
        default=(), metadata=restrict("Only messages of these conversations.", items=64, length=200)
    )
    roles: tuple[Role, ...] = field(default=(), metadata=restrict("Only messages of these roles.", items=4))
    speakers: tuple[str, ...] = field(default=(), metadata=restrict("Only these speakers.", items=64, length=200))
    origins: tuple[str, ...] = field(
        default=(), metadata=restrict("Only memories from these origins.", items=64, length=200)
    )
    topics: tuple[str, ...] = field(
        default=(),
        metadata=restrict(
            "Topic paths, for example travel->Japan. A recall prefers them; a list is restricted to them.",
            items=16,
            length=2000,
        ),
    )
    below: bool = field(default=False, metadata=restrict("Include subtopics."))
    topics_only: bool = field(default=False, metadata=restrict("Only memories of these topics."))
    since: datetime | None = field(default=None, metadata=restrict("Only memories from this time on."))
    until: datetime | None = field(default=None, metadata=restrict("Only memories from before this time."))
    min_trust: int = field(default=0, metadata=restrict("Minimum trust, 0 to 100.", ge=0, le=100))
    min_importance: float = field(default=0.0, metadata=restrict("Minimum importance, 1 to 10.", ge=0, le=10))
    as_of: datetime | None = field(
        default=None, metadata=restrict("Only data stored by this time, in the versions of that time. Default: now.")
    )
    at: datetime | None = field(
        default=None,
        metadata=restrict("Only data that was true, or had happened, at this time. Default: all that has not ended."),
    )
    pinned: bool | None = field(
        default=None, metadata=restrict("Only pinned memories, or only unpinned ones. Default: both.")
    )
    state: RecallState | None = field(
        default=None, metadata=restrict("Only memories in this state: current, in_archived, faded, past or withheld.")
    )
    where: tuple[str, ...] = field(
        default=(),
        metadata=restrict(
            "Metadata conditions, for example project == alpha. Operators: ==, !=, <, <=, >, >=, in, contains, exists.",
            items=MAX_CONDITIONS,
            length=2000,
        ),
    )

    @property
    def past(self) -> bool:
        """Return whether a past time is set, so that versions outside the indexes must be read."""
        return self.as_of is not None or self.at is not None

    @property
    def outside(self) -> bool:
        """Return whether the state is not in the indexes."""
        return self.state is not None and self.state is not RecallState.CURRENT

    @property
    def left(self) -> bool:
        """Return whether memories outside the indexes may match."""
        return self.past or self.outside

    @property
    def named(self) -> tuple[str, ...]:
        """Return the names of fields that are set; defaults restrict nothing."""
        given = READ_FIELDS(self)
        if given == FILTER_DEFAULTS:
            return ()
        return tuple(name for name, one, usual in zip(FIELDS, given, FILTER_DEFAULTS, strict=True) if one != usual)


FIELDS = tuple(each.name for each in fields(Filter) if each.name not in {"below", "topics_only"})
"""The fields that restrict; the two others modify them."""
FILTER_DEFAULTS = tuple(getattr(Filter(), name) for name in FIELDS)
"""The defaults of a filter's fields, stored because reading them from the class is slower than comparing them."""
READ_FIELDS = attrgetter(*FIELDS)
NO_FILTER = Filter()
FilterLike: TypeAlias = Filter | Mapping[str, object]
"""A filter, or its fields by name."""


@dataclass(frozen=True, slots=True)
class FilterField:
    """A field of the filter, as interfaces offer it."""

    name: str
    help: str
    type: Any
    """The type of the value, or of each item if there are many."""
    many: bool
    optional: bool
    """Whether the value can be None."""
    bounds: Mapping[str, Any]


def describe_field(name: str, hint: Any, metadata: Mapping[str, Any]) -> FilterField:  # noqa: ANN401 - a type hint
    """Describe a field by its type, its help and its bounds."""
    sorts = get_args(hint) or (hint,)
    return FilterField(
        name, metadata["help"], sorts[0], get_origin(hint) is tuple, NoneType in sorts, metadata["bounds"]
    )


HINTS = get_type_hints(Filter)
FILTER_FIELDS = tuple(describe_field(each.name, HINTS[each.name], each.metadata) for each in fields(Filter))
"""The table from which HTTP, MCP and the command line derive their arguments."""
