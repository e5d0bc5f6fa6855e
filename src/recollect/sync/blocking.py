"""The views of a scope for callers without an event loop, here or on a server.

Written by tools/clients.py: change the methods of recollect.mind that declare the operations, and run it.
"""

from __future__ import annotations

from recollect.client.conversations import RemoteConversation
from recollect.client.items import RemoteItems
from recollect.client.knowledge import RemoteKnowledge
from recollect.client.memories import RemoteFading
from recollect.client.mind import RemoteMind
from recollect.client.recall import RemoteBlocks, RemoteRecalls
from recollect.client.topics import RemoteTopics
from recollect.sync.portal import Blocking, blocking, blocking_pieces


class SyncConversation(Blocking):
    """Conversation whose methods return when they are done."""

    append = blocking(RemoteConversation.append)
    archive = blocking(RemoteConversation.archive)
    close_segment = blocking(RemoteConversation.close_segment)
    context = blocking(RemoteConversation.context)
    converse = blocking(RemoteConversation.converse)
    delete = blocking(RemoteConversation.delete)
    describe = blocking(RemoteConversation.describe)
    history = blocking(RemoteConversation.history)
    leaves = blocking(RemoteConversation.leaves)
    messages = blocking(RemoteConversation.messages)
    purge = blocking(RemoteConversation.purge)
    read = blocking(RemoteConversation.read)
    receipts = blocking(RemoteConversation.receipts)
    restore = blocking(RemoteConversation.restore)
    segments = blocking(RemoteConversation.segments)


class SyncBlocks(Blocking):
    """Blocks whose methods return when they are done."""

    resolve = blocking(RemoteBlocks.resolve)
    show = blocking(RemoteBlocks.show)


class SyncFading(Blocking):
    """Fading whose methods return when they are done."""

    explain = blocking(RemoteFading.explain)
    fade = blocking(RemoteFading.fade)
    faded = blocking(RemoteFading.faded)
    revive = blocking(RemoteFading.revive)


class SyncItems(Blocking):
    """Items whose methods return when they are done."""

    batch = blocking(RemoteItems.batch)
    drop = blocking(RemoteItems.drop)
    find = blocking(RemoteItems.find)
    get = blocking(RemoteItems.get)
    paths = blocking(RemoteItems.paths)
    put = blocking(RemoteItems.put)


class SyncKnowledge(Blocking):
    """Knowledge whose methods return when they are done."""

    add = blocking(RemoteKnowledge.add)
    connections = blocking(RemoteKnowledge.connections)
    end = blocking(RemoteKnowledge.end)
    entities = blocking(RemoteKnowledge.entities)
    entities_by_facts = blocking(RemoteKnowledge.entities_by_facts)
    entity = blocking(RemoteKnowledge.entity)
    export = blocking_pieces(RemoteKnowledge.export)
    fact_versions = blocking(RemoteKnowledge.fact_versions)
    facts = blocking(RemoteKnowledge.facts)
    merge = blocking(RemoteKnowledge.merge)
    neighbours = blocking(RemoteKnowledge.neighbours)
    proposed_merges = blocking(RemoteKnowledge.proposed_merges)
    split = blocking(RemoteKnowledge.split)
    timeline = blocking(RemoteKnowledge.timeline)


class SyncTopics(Blocking):
    """Topics whose methods return when they are done."""

    link = blocking(RemoteTopics.link)
    links = blocking(RemoteTopics.links)
    merge = blocking(RemoteTopics.merge)
    move = blocking(RemoteTopics.move)
    related = blocking(RemoteTopics.related)
    rename = blocking(RemoteTopics.rename)
    tree = blocking(RemoteTopics.tree)
    unlink = blocking(RemoteTopics.unlink)


class SyncRecalls(Blocking):
    """Recalls whose methods return when they are done."""

    explain = blocking(RemoteRecalls.explain)
    list = blocking(RemoteRecalls.list)
    replay = blocking(RemoteRecalls.replay)


class SyncMind(Blocking):
    """Mind whose methods return when they are done."""

    activity = blocking(RemoteMind.activity)
    associate = blocking(RemoteMind.associate)
    browse = blocking(RemoteMind.browse)
    changes = blocking_pieces(RemoteMind.changes)
    conversations = blocking(RemoteMind.conversations)
    evidence = blocking(RemoteMind.evidence)
    feedback = blocking(RemoteMind.feedback)
    forget = blocking(RemoteMind.forget)
    forget_everything = blocking(RemoteMind.forget_everything)
    get = blocking(RemoteMind.get)
    get_many = blocking(RemoteMind.get_many)
    last_chat = blocking(RemoteMind.last_chat)
    load = blocking(RemoteMind.load)
    metadata = blocking(RemoteMind.metadata)
    overview = blocking(RemoteMind.overview)
    pin = blocking(RemoteMind.pin)
    profile = blocking(RemoteMind.profile)
    recall = blocking(RemoteMind.recall)
    recall_each = blocking(RemoteMind.recall_each)
    reflect = blocking(RemoteMind.reflect)
    reflect_later = blocking(RemoteMind.reflect_later)
    reflection = blocking(RemoteMind.reflection)
    remember = blocking(RemoteMind.remember)
    revise = blocking(RemoteMind.revise)
    set_profile = blocking(RemoteMind.set_profile)
    tune = blocking(RemoteMind.tune)
    versions = blocking(RemoteMind.versions)

    def conversation(self, conversation: str) -> SyncConversation:
        """Choose a conversation by your own name for it; nothing is sent, and it begins with the first message."""
        return SyncConversation(self.inner.conversation(conversation), self.portal)

    @property
    def blocks(self) -> SyncBlocks:
        """Return the view for blocks: memories that match a query as text for prompts, and memories by short ID."""
        return SyncBlocks(self.inner.blocks, self.portal)

    @property
    def fading(self) -> SyncFading:
        """Return the view for fading: memories that fade, faded memories, and how to restore them."""
        return SyncFading(self.inner.fading, self.portal)

    @property
    def items(self) -> SyncItems:
        """Return the view of the scope's items: JSON values under names of your own."""
        return SyncItems(self.inner.items, self.portal)

    @property
    def knowledge(self) -> SyncKnowledge:
        """Return the view of the facts and entities of the scope."""
        return SyncKnowledge(self.inner.knowledge, self.portal)

    @property
    def topics(self) -> SyncTopics:
        """Return the view of the scope's topics: the tree, and the memories filed under it."""
        return SyncTopics(self.inner.topics, self.portal)

    @property
    def recalls(self) -> SyncRecalls:
        """Return the view of kept recalls, to be explained and replayed."""
        return SyncRecalls(self.inner.recalls, self.portal)
