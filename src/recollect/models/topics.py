"""The nouns of topics: the tree, what is filed under it, and how far that reaches in recall."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Reach:
    """How readily a link comes to mind when its topic does, each from 0 to 1."""

    activation: float = 0.55
    """How strongly the memory belongs to the topic."""
    diffusion: float = 0.35
    """How far it leads on, to the topics related to it and from them."""
    independence: float = 0.5
    """How well it can be understood without what was said around it."""


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
    """What its recency is computed from: when the memory happened, unless whoever filed it said otherwise."""
    reach: Reach = Reach()
    related: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Filing:
    """What a caller files under a topic: a memory, and how."""

    memory_id: UUID
    reach: Reach = Reach()
    related: tuple[str, ...] = ()
    occurred_at: datetime | None = None
    """When it happened as far as the topic is concerned; as the memory says if None."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A node of the topic tree."""

    path: str
    name: str
    """As it was first written."""
    memories: int
    """How many memories are filed under it and take part in recall."""
    below: int
    """The same for all topics below it together."""


@dataclass(frozen=True, slots=True)
class RelatedTopic:
    """A topic that what is filed under another one leads to."""

    path: str
    diffusion: float
    """The most that any of the links has which lead to it."""
    links: int


@dataclass(frozen=True, slots=True)
class TopicTree:
    """Topics in the order of the tree, each before what lies below it, and whether that is all of them."""

    topics: tuple[Topic, ...]
    whole: bool = True

    @property
    def text(self) -> str:
        """Give one line a topic: its whole path, a mark where it is a root, and how many memories it has."""
        return "".join(f"{topic.path}{_mark(topic)} {{memories: {topic.memories}}}\n" for topic in self.topics)


def _mark(topic: Topic) -> str:
    return " [root]" if topic.path == topic.name else ""
