"""Values of topics: the tree, what is filed under it, and how far that reaches in recall."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Reach:
    """How readily a link is recalled by its topic, each from 0 to 1."""

    activation: float = 0.55
    """How strongly the memory belongs to the topic."""
    diffusion: float = 0.35
    """How far it leads on to related topics."""
    independence: float = 0.5
    """How well it can be understood without its context."""


USUAL_REACH = Reach()


class TopicSource(StrEnum):
    """How a recall by topic found a memory."""

    PRIMARY = "primary"
    """Filed under the topic itself."""
    RELATED = "related"
    """Filed under a topic that a primary one is related to."""
    PARENT = "parent"
    """Filed under the topic directly above."""
    DESCENDANT = "descendant"
    """Filed under a topic anywhere below; looked at only if asked."""


@dataclass(frozen=True, slots=True)
class TopicLink:
    """A memory's tie to a topic; topics are named by their paths, `a->b->c`."""

    path: str
    memory_id: UUID
    occurred_at: datetime
    """The time of its recency: when the memory happened, unless the caller gave another."""
    reach: Reach = Reach()
    related: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Filing:
    """What a caller files under a topic: a memory, and how."""

    memory_id: UUID
    reach: Reach = Reach()
    related: tuple[str, ...] = ()
    occurred_at: datetime | None = None
    """The time of its recency; when the memory happened if None."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A node of the topic tree."""

    path: str
    name: str
    """As it was first written."""
    memories: int
    """How many memories are filed under it and take part in recall."""
    below: int
    """The same for all topics below it."""
    activation: float | None = field(default=None, compare=False)
    """The mean of what is filed under it; None where nothing is."""
    newest_at: datetime | None = field(default=None, compare=False)
    """The latest time of what is filed under it."""


@dataclass(frozen=True, slots=True)
class RelatedTopic:
    """A topic to which the links of another one lead."""

    path: str
    diffusion: float
    """The highest value among the links that lead to it."""
    links: int


@dataclass(frozen=True, slots=True)
class TopicTree:
    """Topics in the order of the tree, each before those below it, and whether the list is complete."""

    topics: tuple[Topic, ...]
    whole: bool = True

    @property
    def text(self) -> str:
        """Give one line a topic: its whole path, a mark where it is a root, and how many memories it has."""
        return "".join(f"{topic.path}{_mark(topic)} {{memories: {topic.memories}}}\n" for topic in self.topics)


def _mark(topic: Topic) -> str:
    return " [root]" if topic.path == topic.name else ""
