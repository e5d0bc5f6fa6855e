"""Find the thread of a message: its parents up to the root, by strict rules or as Dify does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.conversations import LEGACY

NIL = str(LEGACY)
MAX_DIFY_TURNS = 500
"""Maximum number of turns that Dify reads of a conversation."""


@dataclass(frozen=True, slots=True)
class ThreadNode:
    """A message as a node of a tree: its ID and its parent."""

    id: str
    parent: str | None


def walk(nodes_newest_first: Sequence[ThreadNode], leaf: str | None = None) -> list[str]:
    """List the IDs from a leaf to its root; the default leaf is the newest node without children.

    A node without a parent, or with a missing parent, is a root. NIL as a parent means the nearest older node that also
    has NIL. In a cycle, the oldest node counts as the root.
    """
    parents = _resolve(nodes_newest_first[::-1])
    if leaf is None:
        taken = set(parents.values())
        leaf = next((node.id for node in nodes_newest_first if node.id not in taken), None)
    elif leaf not in parents:
        raise NotFoundError("leaf must be a message of this conversation")
    return _climb(parents, leaf)


def walk_upstream(nodes_newest_first: Sequence[ThreadNode]) -> list[str]:
    """List the IDs of the newest thread as Dify does: one pass over the nodes, any root ends it."""
    thread: list[str] = []
    wanted: str | None = None
    for node in nodes_newest_first:
        if not node.parent:
            return [*thread, node.id]
        if wanted is None or wanted in (node.id, NIL):
            thread.append(node.id)
            wanted = node.parent
    return thread


def bound_fetch(message_limit: int | None) -> int:
    """Return the number of turns that Dify reads for a limit; without a limit, the maximum."""
    return min(message_limit, MAX_DIFY_TURNS) if message_limit and message_limit > 0 else MAX_DIFY_TURNS


def order_nodes(nodes_oldest_first: Sequence[ThreadNode]) -> list[tuple[ThreadNode, str | None]]:
    """Pair every node with its parent as `walk` finds it, parents before their children.

    Other nodes keep their order. A parent that comes late moves before its first child, so the leaves keep their order
    and the newest leaf stays the newest.
    """
    parents = _resolve(nodes_oldest_first)
    by_id = {node.id: node for node in nodes_oldest_first}
    ordered: dict[str, str | None] = {}
    for node in nodes_oldest_first:
        missing: list[str] = []
        each: str | None = node.id
        while each is not None and each not in ordered:
            missing.append(each)
            each = parents[each]
        ordered.update((each, parents[each]) for each in reversed(missing))
    return [(by_id[each], parent) for each, parent in ordered.items()]


def _resolve(nodes_oldest_first: Sequence[ThreadNode]) -> dict[str, str | None]:
    """Return for every node an existing parent or None, so that the result is a forest."""
    known = {node.id for node in nodes_oldest_first}
    if len(known) < len(nodes_oldest_first):
        raise InvalidInputError("message ids must be unique within a conversation")
    parents: dict[str, str | None] = {}
    legacy: str | None = None
    for node in nodes_oldest_first:
        if node.parent == NIL:
            parents[node.id], legacy = legacy, node.id
        else:
            parents[node.id] = node.parent if node.parent and node.parent in known else None
    return _cut_circles(parents)


def _cut_circles(parents: dict[str, str | None]) -> dict[str, str | None]:
    """Remove the parent of the oldest member of every cycle; the keys are sorted oldest first."""
    places = {each: place for place, each in enumerate(parents)}
    seen: dict[str, str] = {}
    for start in parents:
        each: str | None = start
        while each is not None and each not in seen:
            seen[each] = start
            each = parents[each]
        # Only a path that meets itself is a new cycle: other cycles that it meets are already cut.
        if each is not None and seen[each] == start:
            circle = [each]
            while (parent := parents[circle[-1]]) is not None and parent != each:
                circle.append(parent)
            parents[min(circle, key=places.__getitem__)] = None
    return parents


def _climb(parents: dict[str, str | None], leaf: str | None) -> list[str]:
    thread: list[str] = []
    while leaf is not None:
        thread.append(leaf)
        leaf = parents[leaf]
    return thread
