"""Parse and format topic paths, and build topic trees.

A path is written `a->b->c`. Case, width and punctuation around names do not matter: in the database, topics have labels
of plain ASCII made from their normalized names, and no two names share a label.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from recollect.core.text.names import CONTROL, normalize_name
from recollect.errors import InvalidInputError
from recollect.models.topics import LinkStrength, Topic

Names: TypeAlias = tuple[str, ...]
"""The names of a path, from the root down."""
ARROW = "->"
MARK = re.compile(r"\[[^\]]*\]|\{\s*\w+\s*:\s*\d+\s*\}")
"""Decorations of a shown tree, such as `[root]` and `{memories: 3}`."""
MAX_TOPIC_LENGTH, MAX_LEVELS, MAX_RELATED = 100, 16, 16
MAX_TEXT_LENGTH = 2_000
MAX_LABEL_LENGTH, MAX_LABELS_LENGTH = 900, 2_000
"""Maximum characters of the encoding: of one label, and of a whole path, which must fit an index page."""


@dataclass(frozen=True, slots=True)
class TopicNode:
    """A topic from the store: its labels, name, number of links, and whether any of its memories is visible."""

    labels: tuple[str, ...]
    name: str
    memories: int
    seen: bool
    activation: float | None = None
    newest_at: datetime | None = None


def parse_topic(text: str) -> Names:
    """Split a path; decorations of a shown tree and empty levels are removed."""
    while True:
        levels = [" ".join(MARK.sub("", level).split()) for level in text.split(ARROW)]
        names = tuple(level for level in levels if normalize_name(level))
        if (shown := ARROW.join(names)) == text:
            return names
        # After the first pass, the rest may again look like a decoration or an arrow.
        text = shown


def show_topic(names: Names) -> str:
    """Format a path."""
    return ARROW.join(names)


def read_topic(text: str, field: str = "path") -> Names:
    """Parse a path, or raise an error if it is invalid."""
    if len(text) > MAX_TEXT_LENGTH or CONTROL.search(text):
        raise InvalidInputError(f"{field} must be one line of at most {MAX_TEXT_LENGTH} characters")
    names = parse_topic(text)
    if not names:
        raise InvalidInputError(f"{field} must be a topic path, for example travel->Japan")
    if len(names) > MAX_LEVELS or any(len(name) > MAX_TOPIC_LENGTH for name in names):
        raise InvalidInputError(f"{field} must have at most {MAX_LEVELS} levels of {MAX_TOPIC_LENGTH} characters each")
    encoded = encode(names)
    if len(encoded) > MAX_LABELS_LENGTH or max(map(len, encoded.split("."))) > MAX_LABEL_LENGTH:
        raise InvalidInputError(f"{field} is too long: give its topics shorter names, or fewer levels")
    return names


def find_topics(texts: Iterable[str]) -> list[Names]:
    """Parse the valid paths, without duplicate topics."""
    found: dict[str, Names] = {}
    for text in texts:
        try:
            names = read_topic(text)
        except InvalidInputError:
            continue
        found.setdefault(encode(names), names)
    return list(found.values())


def check_reach(reach: LinkStrength) -> None:
    """Refuse values outside 0..1."""
    for field in ("activation", "diffusion", "independence"):
        if not 0 <= getattr(reach, field) <= 1:
            raise InvalidInputError(f"{field} must be between 0 and 1")


def check_filing(topic: str, related: Sequence[str], reach: LinkStrength) -> None:
    """Refuse invalid topics and link strengths of a memory."""
    check_reach(reach)
    if len(related) > MAX_RELATED:
        raise InvalidInputError(f"related_topics must hold at most {MAX_RELATED} items")
    if topic:
        read_topic(topic, "topic")
    elif related:
        raise InvalidInputError("related_topics requires topic")
    for path in related:
        read_topic(path, "related_topics")


def encode(names: Names) -> str:
    """Encode a path as labels joined by dots, which identify it."""
    return ".".join(encode_label(name) for name in names)


def encode_label(name: str) -> str:
    """Encode a name as ASCII letters, digits, `-` and `_`; equal only for equal normalized names."""
    return "".join(map(_encode_letter, normalize_name(name)))


def decode_label(label: str) -> str:
    """Decode the normalized name of a label."""
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
    """Choose the topic of a segment: its first path, with the others as related topics, or its label."""
    found = find_topics([show_topic(path) for path in paths]) or find_topics([label])
    shown = [show_topic(names) for names in found[: MAX_RELATED + 1]]
    return (shown[0], tuple(shown[1:])) if shown else ("", ())


def grow(nodes: Sequence[TopicNode], level: int = 1) -> list[Topic]:
    """Build the tree of names and counts, from a level on, without topics that have no visible memories."""
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
