"""Read and write the paths of topics, and build their tree.

A path is written `a->b->c`. A topic is the same whatever the case, width and marks around its names are: what it is
known by in the database are labels of plain ASCII that are made from its normalised names, and no two names share one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from recollect.core.text.names import CONTROL, normalise_name
from recollect.errors import InvalidInputError
from recollect.models.topics import Reach, Topic

Names: TypeAlias = tuple[str, ...]
"""A path taken apart, from the root down."""
ARROW = "->"
MARK = re.compile(r"\[[^\]]*\]|\{\s*\w+\s*:\s*\d+\s*\}")
"""Decorations of a shown tree, such as `[root]` and `{memories: 3}`."""
LONGEST_TOPIC, MOST_LEVELS, MOST_RELATED = 100, 16, 16
LONGEST_TEXT = 2_000
LONGEST_LABEL, LONGEST_LABELS = 900, 2_000
"""In letters of the encoding: one label, and all of a path, which must fit an index page."""


@dataclass(frozen=True, slots=True)
class TopicNode:
    """A topic as the store lists it: its labels, name, links, and whether anything of it is visible."""

    labels: tuple[str, ...]
    name: str
    memories: int
    seen: bool
    activation: float | None = None
    newest_at: datetime | None = None


def parse_topic(text: str) -> Names:
    """Split a path: decorations of a shown tree are no part of names, and what is empty is no level."""
    while True:
        levels = [" ".join(MARK.sub("", level).split()) for level in text.split(ARROW)]
        names = tuple(level for level in levels if normalise_name(level))
        if (shown := ARROW.join(names)) == text:
            return names
        # Only now what is left may look like a decoration or an arrow.
        text = shown


def show_topic(names: Names) -> str:
    """Write a path."""
    return ARROW.join(names)


def read_topic(text: str, field: str = "path") -> Names:
    """Split a path that must be valid, or say what is wrong with it."""
    if len(text) > LONGEST_TEXT or CONTROL.search(text):
        raise InvalidInputError(f"{field} must be one line of at most {LONGEST_TEXT} characters")
    names = parse_topic(text)
    if not names:
        raise InvalidInputError(f"{field} must name a topic, as in travel->Japan")
    if len(names) > MOST_LEVELS or any(len(name) > LONGEST_TOPIC for name in names):
        raise InvalidInputError(f"{field} must have at most {MOST_LEVELS} levels of {LONGEST_TOPIC} characters each")
    encoded = encode(names)
    if len(encoded) > LONGEST_LABELS or max(map(len, encoded.split("."))) > LONGEST_LABEL:
        raise InvalidInputError(f"{field} is too long: give its topics shorter names, or fewer levels")
    return names


def find_topics(texts: Iterable[str]) -> list[Names]:
    """Split those paths that are valid, each topic once."""
    found: dict[str, Names] = {}
    for text in texts:
        try:
            names = read_topic(text)
        except InvalidInputError:
            continue
        found.setdefault(encode(names), names)
    return list(found.values())


def check_reach(reach: Reach) -> None:
    """Refuse values outside 0 to 1."""
    for field in ("activation", "diffusion", "independence"):
        if not 0 <= getattr(reach, field) <= 1:
            raise InvalidInputError(f"{field} must be between 0 and 1")


def check_filing(topic: str, related: Sequence[str], reach: Reach) -> None:
    """Refuse what a memory cannot be filed under."""
    check_reach(reach)
    if len(related) > MOST_RELATED:
        raise InvalidInputError(f"related_topics must hold at most {MOST_RELATED} items")
    if topic:
        read_topic(topic, "topic")
    elif related:
        raise InvalidInputError("related_topics need a topic that they are related to")
    for path in related:
        read_topic(path, "related_topics")


def encode(names: Names) -> str:
    """Write a path as the labels that identify it, joined by dots."""
    return ".".join(encode_label(name) for name in names)


def encode_label(name: str) -> str:
    """Write a name as letters, digits, `-` and `_` of ASCII; equal for equal normalised names, and only for them."""
    return "".join(map(_encode_letter, normalise_name(name)))


def decode_label(label: str) -> str:
    """Read the normalised name that a label was made from."""
    return re.sub(r"__([0-9a-f]{6})|_([0-9a-f]{4})|-", _decode_letter, label)


def _encode_letter(letter: str) -> str:
    if "a" <= letter <= "z" or "0" <= letter <= "9":
        return letter
    if letter == " ":
        return "-"
    return f"_{ord(letter):04x}" if ord(letter) <= 0xFFFF else f"__{ord(letter):06x}"


def _decode_letter(found: re.Match[str]) -> str:
    written = found[1] or found[2]
    return chr(int(written, 16)) if written else " "


def prefixes(names: Names) -> list[Names]:
    """List a path and all paths above it, from the root down."""
    return [names[:level] for level in range(1, len(names) + 1)]


def choose_paths(paths: Sequence[Names], label: str) -> tuple[str, tuple[str, ...]]:
    """Choose where a segment belongs: the first path that was found for it, the others being related; or its label."""
    found = find_topics([show_topic(path) for path in paths]) or find_topics([label])
    shown = [show_topic(names) for names in found[: MOST_RELATED + 1]]
    return (shown[0], tuple(shown[1:])) if shown else ("", ())


def grow(nodes: Sequence[TopicNode], level: int = 1) -> list[Topic]:
    """Build the tree of names and counts, from a level on, without topics that have nothing visible."""
    names = {node.labels: node.name for node in nodes}
    below: Counter[tuple[str, ...]] = Counter()
    seen: set[tuple[str, ...]] = set()
    for node in nodes:
        above = [node.labels[:level] for level in range(1, len(node.labels))]
        below.update(dict.fromkeys(above, node.memories))
        if node.seen:
            seen.update((*above, node.labels))
    return [
        Topic(
            show_topic(_name(node.labels, names)),
            node.name,
            node.memories,
            below[node.labels],
            node.activation,
            node.newest_at,
        )
        for node in sorted(nodes, key=lambda node: node.labels)
        if node.labels in seen and len(node.labels) >= level
    ]


def _name(labels: tuple[str, ...], names: Mapping[tuple[str, ...], str]) -> Names:
    return tuple(names[labels[:level]] for level in range(1, len(labels) + 1))
