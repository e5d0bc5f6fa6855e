"""The views of a scope for callers without an event loop, here or on a server.

Written by tools/clients.py: change the methods of recollect.mind that declare the operations, and run it.
"""

from __future__ import annotations

from recollect.client.conversations import RemoteConversation
from recollect.client.items import RemoteItems
from recollect.client.knowledge import RemoteKnowledge
from recollect.client.mind import RemoteMind
from recollect.client.recall import RemoteBlocks, RemoteRecalls
from recollect.client.topics import RemoteTopics
from recollect.sync.portal import Blocking, blocking, blocking_pieces


class SyncConversation(Blocking):
    """Conversation whose methods return when they are done."""

    append = blocking(RemoteConversation.append)
    chat = blocking(RemoteConversation.chat)
    context = blocking(RemoteConversation.context)
    delete = blocking(RemoteConversation.delete)
    get = blocking(RemoteConversation.get)
    history = blocking(RemoteConversation.history)
    messages = blocking(RemoteConversation.messages)
    purge = blocking(RemoteConversation.purge)
    segments = blocking(RemoteConversation.segments)
    update = blocking(RemoteConversation.update)


class SyncBlocks(Blocking):
    """Blocks whose methods return when they are done."""

    show = blocking(RemoteBlocks.show)


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
    duplicates = blocking(RemoteKnowledge.duplicates)
    end = blocking(RemoteKnowledge.end)
    entities = blocking(RemoteKnowledge.entities)
    export = blocking_pieces(RemoteKnowledge.export)
    facts = blocking(RemoteKnowledge.facts)
    merge = blocking(RemoteKnowledge.merge)
    neighbors = blocking(RemoteKnowledge.neighbors)
    paths = blocking(RemoteKnowledge.paths)
    split = blocking(RemoteKnowledge.split)


class SyncTopics(Blocking):
    """Topics whose methods return when they are done."""

    link = blocking(RemoteTopics.link)
    links = blocking(RemoteTopics.links)
    tree = blocking(RemoteTopics.tree)
    unlink = blocking(RemoteTopics.unlink)
    update = blocking(RemoteTopics.update)


class SyncRecalls(Blocking):
    """Recalls whose methods return when they are done."""

    explain = blocking(RemoteRecalls.explain)
    list = blocking(RemoteRecalls.list)
    replay = blocking(RemoteRecalls.replay)


class SyncMind(Blocking):
    """Mind whose methods return when they are done."""

    associate = blocking(RemoteMind.associate)
    changes = blocking_pieces(RemoteMind.changes)
    conversations = blocking(RemoteMind.conversations)
    evidence = blocking(RemoteMind.evidence)
    fade = blocking(RemoteMind.fade)
    feedback = blocking(RemoteMind.feedback)
    forget = blocking(RemoteMind.forget)
    forget_everything = blocking(RemoteMind.forget_everything)
    get = blocking(RemoteMind.get)
    list = blocking(RemoteMind.list)
    load = blocking(RemoteMind.load)
    overview = blocking(RemoteMind.overview)
    profile = blocking(RemoteMind.profile)
    recall = blocking(RemoteMind.recall)
    recall_each = blocking(RemoteMind.recall_each)
    reflect = blocking(RemoteMind.reflect)
    reflect_later = blocking(RemoteMind.reflect_later)
    reflection = blocking(RemoteMind.reflection)
    remember = blocking(RemoteMind.remember)
    restore = blocking(RemoteMind.restore)
    set_profile = blocking(RemoteMind.set_profile)
    update = blocking(RemoteMind.update)

    def conversation(self, conversation: str) -> SyncConversation:
        """Choose a conversation by your own name for it; nothing is sent, and it begins with the first message."""
        return SyncConversation(self.inner.conversation(conversation), self.portal)

    @property
    def blocks(self) -> SyncBlocks:
        """Return the view for blocks: memories that match a query as text for prompts, and memories by short ID."""
        return SyncBlocks(self.inner.blocks, self.portal)

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
