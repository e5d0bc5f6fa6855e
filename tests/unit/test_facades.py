"""One facade three times: in the process, over HTTP and blocking; none of them has a method that another lacks."""

from __future__ import annotations

import inspect

import pytest

from recollect import client, sync
from recollect.block_view import BlockView
from recollect.client import Client, RemoteMind
from recollect.client_blocks import RemoteBlocks
from recollect.client_conversations import RemoteConversation
from recollect.client_fading import RemoteFading
from recollect.client_items import RemoteItems
from recollect.client_knowledge import RemoteKnowledge
from recollect.client_recalls import RemoteRecalls
from recollect.client_topics import RemoteTopics
from recollect.conversation_view import ConversationView
from recollect.fading_view import FadingView
from recollect.items_view import ItemsView
from recollect.knowledge_view import KnowledgeView
from recollect.mind import Mind
from recollect.recalls_view import RecallsView
from recollect.topics_view import TopicsView

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
    found = {each for each in vars(client).values() if inspect.isclass(each) and each.__name__.startswith("Remote")}
    inner = {parent for each in found for parent in each.__mro__[1:]}
    assert found - inner == {remote for _, remote, _ in FACADES}
