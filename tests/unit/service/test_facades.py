"""One facade three times: in the process, over HTTP and blocking; none of them has a method that another lacks."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

import pytest

from recollect import client, sync
from recollect.client import Client, RemoteMind
from recollect.client.blocks import RemoteBlocks
from recollect.client.conversations import RemoteConversation
from recollect.client.fading import RemoteFading
from recollect.client.items import RemoteItems
from recollect.client.knowledge import RemoteKnowledge
from recollect.client.recalls import RemoteRecalls
from recollect.client.topics import RemoteTopics
from recollect.mind import Mind
from recollect.mind.conversations import ConversationView
from recollect.mind.items import ItemsView
from recollect.mind.knowledge import KnowledgeView
from recollect.mind.memories import FadingView
from recollect.mind.recall import BlockView, RecallsView
from recollect.mind.topics import TopicsView

FACADES = (
    (Mind, RemoteMind, sync.BlockingMind),
    (BlockView, RemoteBlocks, sync.BlockingBlocks),
    (ConversationView, RemoteConversation, sync.BlockingConversation),
    (FadingView, RemoteFading, sync.BlockingFading),
    (ItemsView, RemoteItems, sync.BlockingItems),
    (KnowledgeView, RemoteKnowledge, sync.BlockingKnowledge),
    (RecallsView, RemoteRecalls, sync.BlockingRecalls),
    (TopicsView, RemoteTopics, sync.BlockingTopics),
)
PAIRS = [
    *((local, remote) for local, remote, _ in FACADES),
    *((local, blocking) for local, _, blocking in FACADES),
    *((remote, blocking) for _, remote, blocking in FACADES),
    (Client, sync.BlockingClient),
]
DIFFERENT = {
    # The way to the server itself, for the classes of the client alone.
    (Client, sync.BlockingClient): {"pause", "send", "send_once", "stream"},
}
"""What one of a pair has and the other does not need, by pair, each with its reason."""


def members(owner: type) -> dict[str, object]:
    """Give the public methods and properties of a class, inherited ones too."""
    everything = inspect.getmembers_static(owner, lambda each: inspect.isfunction(each) or isinstance(each, property))
    return {name: each for name, each in everything if not name.startswith("_")}


def describe(member: object) -> object:
    """Say how a member is used: a property is read, anything else is called with these parameters."""
    return "property" if isinstance(member, property) else list(inspect.signature(member).parameters.values())


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=lambda facade: facade.__name__)
def test_both_of_a_pair_have_the_same_methods_with_the_same_parameters(one, other):
    mine, theirs, different = members(one), members(other), DIFFERENT.get((one, other), set())
    assert mine.keys() ^ theirs.keys() == different
    for name in mine.keys() & theirs.keys():
        assert describe(mine[name]) == describe(theirs[name]), name
        assert asks_for(mine[name]) == asks_for(theirs[name]), name


def asks_for(member: object) -> str:
    """Say what a verb gives back; whoever leads to another facade leads to the one of its own kind."""
    if isinstance(member, property) or member.__name__ in {"conversation", "mind", "export"}:
        return ""
    return str(inspect.signature(member).return_annotation)


@pytest.mark.parametrize("way", [name for name, each in members(Mind).items() if isinstance(each, property)])
def test_every_part_of_a_mind_is_one_of_the_facades(way):
    """A new part must be added to the table above."""
    for kind, facades in zip((Mind, RemoteMind, sync.BlockingMind), zip(*FACADES, strict=True), strict=True):
        named = members(kind)[way].fget.__annotations__["return"]
        assert named in {facade.__name__ for facade in facades}


def test_every_remote_facade_is_in_the_table():
    """And so must a new class of the client."""
    modules = [
        import_module(f"recollect.client.{path.stem}") for path in Path(client.__file__).parent.glob("[a-z]*.py")
    ]
    found = {each for module in modules for name, each in vars(module).items() if name.startswith("Remote")}
    inner = {parent for each in found for parent in each.__mro__[1:]}
    assert found - inner == {remote for _, remote, _ in FACADES}
