"""The same minds for callers without an event loop: every call goes through a portal to one in a thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from recollect.block_view import BlockView
from recollect.fading_view import FadingView
from recollect.knowledge_view import KnowledgeView
from recollect.mind import ConversationView, Mind
from recollect.models import Ledger, Receipt, Recollection
from recollect.models.graph import GraphFormat
from recollect.recalls_view import RecallsView
from recollect.settings import Settings
from recollect.topics_view import TopicsView
from recollect.wiring import open_recollect

P = ParamSpec("P")
R = TypeVar("R")


class Verbs(Protocol):
    """A mind, here or on a server."""

    @property
    def remember(self) -> Callable[..., Awaitable[list[Receipt]]]:
        """Store memories."""
        ...

    @property
    def recall(self) -> Callable[..., Awaitable[Recollection]]:
        """Give back what a cue reminds of."""
        ...

    @property
    def conversation(self) -> Callable[[str], object]:
        """Choose a conversation."""
        ...

    @property
    def blocks(self) -> object:
        """Give what can be shown."""
        ...

    @property
    def fading(self) -> object:
        """Give what fades."""
        ...

    @property
    def knowledge(self) -> object:
        """Give what is known."""
        ...

    @property
    def topics(self) -> object:
        """Give the topics."""
        ...

    @property
    def recalls(self) -> object:
        """Give the recalls that were kept."""
        ...


class Opened(Protocol):
    """Whatever gives minds."""

    @property
    def mind(self) -> Callable[[str, str], Awaitable[Verbs]]:
        """Open a scope."""
        ...

    @property
    def ledger(self) -> Callable[..., Awaitable[Ledger]]:
        """Add up what models cost."""
        ...


@dataclass(frozen=True)
class Blocking:
    """Something asynchronous, and the portal to where it runs."""

    inner: Any
    portal: BlockingPortal


def blocking(method: Callable[Concatenate[Any, P], Awaitable[R]]) -> Callable[Concatenate[Blocking, P], R]:
    """Give a method of a mind or a conversation the same signature without `await`."""

    def call(self: Blocking, /, *arguments: P.args, **named: P.kwargs) -> R:
        bound: Callable[P, Awaitable[R]] = getattr(self.inner, method.__name__)
        return self.portal.call(partial(bound, *arguments, **named))

    call.__doc__ = method.__doc__
    return call


@dataclass(frozen=True)
class BlockingConversation(Blocking):
    """A conversation whose methods return when they are done; here or on a server."""

    append = blocking(ConversationView.append)
    history = blocking(ConversationView.history)
    context = blocking(ConversationView.context)
    converse = blocking(ConversationView.converse)
    leaves = blocking(ConversationView.leaves)
    segments = blocking(ConversationView.segments)
    close_segment = blocking(ConversationView.close_segment)
    read = blocking(ConversationView.read)
    describe = blocking(ConversationView.describe)
    archive = blocking(ConversationView.archive)
    restore = blocking(ConversationView.restore)
    delete = blocking(ConversationView.delete)
    purge = blocking(ConversationView.purge)
    receipts = blocking(ConversationView.receipts)


@dataclass(frozen=True)
class BlockingBlocks(Blocking):
    """What can be shown of a scope, by methods that return when they are done; here or on a server."""

    recall = blocking(BlockView.recall)
    resolve = blocking(BlockView.resolve)


@dataclass(frozen=True)
class BlockingFading(Blocking):
    """What fades in a scope, by methods that return when they are done; here or on a server."""

    fade = blocking(FadingView.fade)
    explain = blocking(FadingView.explain)
    faded = blocking(FadingView.faded)
    restore = blocking(FadingView.restore)


@dataclass(frozen=True)
class BlockingKnowledge(Blocking):
    """What is known in a scope, by methods that return when they are done; here or on a server."""

    state = blocking(KnowledgeView.state)
    end = blocking(KnowledgeView.end)
    facts = blocking(KnowledgeView.facts)
    fact_versions = blocking(KnowledgeView.fact_versions)
    entities = blocking(KnowledgeView.entities)
    entity = blocking(KnowledgeView.entity)
    neighbours = blocking(KnowledgeView.neighbours)
    paths = blocking(KnowledgeView.paths)
    timeline = blocking(KnowledgeView.timeline)

    def export(
        self,
        format: GraphFormat = GraphFormat.GRAPHML,  # noqa: A002 - its name
        *,
        as_of: datetime | None = None,
        at: datetime | None = None,
    ) -> Iterator[str]:
        """Give the scope's facts and the entities they join as text, piece by piece, as long as it takes."""
        with self.portal.wrap_async_context_manager(aclosing(self.inner.export(format, as_of=as_of, at=at))) as pieces:
            while (piece := self.portal.call(anext, pieces, None)) is not None:
                yield piece


@dataclass(frozen=True)
class BlockingRecalls(Blocking):
    """The kept recalls of a scope, by methods that return when they are done; here or on a server."""

    list = blocking(RecallsView.list)
    explain = blocking(RecallsView.explain)
    replay = blocking(RecallsView.replay)


@dataclass(frozen=True)
class BlockingTopics(Blocking):
    """The topics of a scope, by methods that return when they are done; here or on a server."""

    tree = blocking(TopicsView.tree)
    links = blocking(TopicsView.links)
    related = blocking(TopicsView.related)
    link = blocking(TopicsView.link)
    unlink = blocking(TopicsView.unlink)
    rename = blocking(TopicsView.rename)
    move = blocking(TopicsView.move)
    merge = blocking(TopicsView.merge)


@dataclass(frozen=True)
class BlockingMind(Blocking):
    """A mind whose verbs return when they are done; here or on a server."""

    inner: Verbs

    remember = blocking(Mind.remember)
    recall = blocking(Mind.recall)
    recall_each = blocking(Mind.recall_each)
    get = blocking(Mind.get)
    browse = blocking(Mind.browse)
    forget = blocking(Mind.forget)
    associate = blocking(Mind.associate)
    last_chat = blocking(Mind.last_chat)
    feedback = blocking(Mind.feedback)
    overview = blocking(Mind.overview)
    profile = blocking(Mind.profile)
    set_profile = blocking(Mind.set_profile)
    reflect = blocking(Mind.reflect)
    reflect_later = blocking(Mind.reflect_later)
    conversations = blocking(Mind.conversations)

    def conversation(self, conversation: str) -> BlockingConversation:
        """Choose a conversation by your own name for it; nothing is sent, and it begins with the first message."""
        return BlockingConversation(self.inner.conversation(conversation), self.portal)

    @property
    def blocks(self) -> BlockingBlocks:
        """Give what a cue reminds of as text for a prompt, and what its short ids stand for."""
        return BlockingBlocks(self.inner.blocks, self.portal)

    @property
    def fading(self) -> BlockingFading:
        """Give what fades in the scope, what has faded, and the way back."""
        return BlockingFading(self.inner.fading, self.portal)

    @property
    def knowledge(self) -> BlockingKnowledge:
        """Give what is known in the scope: facts, and the entities that they speak of."""
        return BlockingKnowledge(self.inner.knowledge, self.portal)

    @property
    def topics(self) -> BlockingTopics:
        """Give the scope's topics: the tree, and what is filed under it."""
        return BlockingTopics(self.inner.topics, self.portal)

    @property
    def recalls(self) -> BlockingRecalls:
        """Give the recalls that were kept in the scope, to be explained and replayed."""
        return BlockingRecalls(self.inner.recalls, self.portal)


@dataclass(frozen=True)
class BlockingRecollect:
    """A Recollect, or a client of one, that gives blocking minds."""

    inner: Opened
    portal: BlockingPortal

    def mind(self, agent: str, user: str = "") -> BlockingMind:
        """Open a scope."""
        return BlockingMind(self.portal.call(self.inner.mind, agent, user), self.portal)

    def ledger(self, agent: str = "", user: str = "", *, days: int = 30) -> Ledger:
        """Add up what models cost by day, step and model: in one scope, or in all if no agent is named."""
        return self.portal.call(partial(self.inner.ledger, agent, user, days=days))


@contextmanager
def open(settings: Settings | None = None) -> Iterator[BlockingRecollect]:  # noqa: A001 - `sync.open()` is meant
    """Open Recollect in this process."""
    with using(open_recollect(settings)) as recollect:
        yield recollect


@contextmanager
def using(opening: AbstractAsyncContextManager[Opened]) -> Iterator[BlockingRecollect]:
    """Use anything that gives minds, such as a `Client`, from code without an event loop."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opening) as opened:
        yield BlockingRecollect(opened, portal)
