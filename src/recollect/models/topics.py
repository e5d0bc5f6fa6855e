"""Values of topics: the tree, the links to memories, and their strength in recall."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID


@dataclass(frozen=True, slots=True)
class LinkStrength:
    """How strongly a topic link is recalled, each 0 to 1."""

    activation: float = 0.55
    """How strongly the memory belongs to the topic."""
    diffusion: float = 0.35
    """How strongly related topics are included."""
    independence: float = 0.5
    """How understandable the memory is without its context."""


DEFAULT_LINK_STRENGTH = LinkStrength()


class TopicSource(StrEnum):
    """How a recall by topic found a memory."""

    PRIMARY = "primary"
    """Linked to the topic itself."""
    RELATED = "related"
    """Linked to a related topic of a primary one."""
    PARENT = "parent"
    """Linked to the parent topic."""
    DESCENDANT = "descendant"
    """Linked to a subtopic; only on request."""


@dataclass(frozen=True, slots=True)
class TopicLink:
    """Link between a memory and a topic path, for example a->b->c."""

    path: str
    memory_id: UUID
    occurred_at: datetime
    """The time for its recency: when the memory happened, unless the caller set another."""
    reach: LinkStrength = LinkStrength()
    related: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NewTopicLink:
    """A new link of a memory to a topic."""

    memory_id: UUID
    reach: LinkStrength = LinkStrength()
    related: tuple[str, ...] = ()
    occurred_at: datetime | None = None
    """The time for its recency; when the memory happened if None."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A node of the topic tree."""

    path: str
    name: str
    """The name as first written."""
    memories: int
    """Number of its memories in recall."""
    below: int
    """The same for all topics below it."""
    activation: float | None = field(default=None, compare=False)
    """The mean activation of its links; None if there are none."""
    newest_at: datetime | None = field(default=None, compare=False)
    """The latest time of its links."""


@dataclass(frozen=True, slots=True)
class RelatedTopic:
    """A topic that links of another topic name as related."""

    path: str
    diffusion: float
    """The highest diffusion of these links."""
    links: int


@dataclass(frozen=True, slots=True)
class TopicTree:
    """Topics in tree order, and whether the list is complete."""

    topics: tuple[Topic, ...]
    whole: bool = True
    related: tuple[RelatedTopic, ...] = ()
    """Topics related to the root of a subtree, strongest first, at most 50; empty for the whole tree."""

    @property
    def text(self) -> str:
        """Format one line per topic: its path, a mark for roots, and its number of memories."""
        return "".join(f"{topic.path}{_mark(topic)} {{memories: {topic.memories}}}\n" for topic in self.topics)


def _mark(topic: Topic) -> str:
    return " [root]" if topic.path == topic.name else ""
