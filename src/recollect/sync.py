"""The same minds for callers without an event loop: in this process through a portal, on a server without any."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, aclosing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

from anyio.from_thread import start_blocking_portal

from recollect.client.blocks import RemoteBlocks
from recollect.client.client import Client, RemoteMind
from recollect.client.conversations import RemoteConversation
from recollect.client.fading import RemoteFading
from recollect.client.items import RemoteItems
from recollect.client.knowledge import RemoteKnowledge
from recollect.client.recalls import RemoteRecalls
from recollect.client.topics import RemoteTopics
from recollect.client.transport import BlockingTransport
from recollect.loading import load
from recollect.models.knowledge import GraphFormat
from recollect.models.memories import Receipt
from recollect.models.recall import Recollection
from recollect.models.service import Ledger

if TYPE_CHECKING:
    from recollect.settings import Settings

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
    def items(self) -> object:
        """Give the items."""
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


class GivesMinds(Protocol):
    """Whatever gives minds."""

    @property
    def mind(self) -> Callable[[str, str], Awaitable[Verbs]]:
        """Open a scope."""
        ...

    @property
    def ledger(self) -> Callable[..., Awaitable[Ledger]]:
        """Add up what models cost."""
        ...


class Portal(Protocol):
    """Where something asynchronous runs."""

    @property
    def call(self) -> Callable[..., Any]:
        """Call something asynchronous, and return when it is done."""
        ...

    @property
    def wrap_async_context_manager(self) -> Callable[[AbstractAsyncContextManager[Any]], AbstractContextManager[Any]]:
        """Enter and leave something without `async`."""
        ...


class NoLoop:
    """Runs a coroutine that never suspends, in the caller's thread."""

    def call(self, function: Callable[..., Awaitable[R]], *arguments: object) -> R:
        """Take the one step."""
        steps = function(*arguments).__await__()
        try:
            next(steps)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        raise AssertionError("a blocking transport waits for nothing")

    @contextmanager
    def wrap_async_context_manager(self, manager: AbstractAsyncContextManager[R]) -> Iterator[R]:
        """Enter and leave in one step each."""
        entered = self.call(manager.__aenter__)
        try:
            yield entered
        finally:
            self.call(manager.__aexit__, None, None, None)


@dataclass(frozen=True)
class Blocking:
    """Something asynchronous, and the portal to where it runs."""

    inner: Any
    portal: Portal


def blocking(method: Callable[Concatenate[Any, P], Awaitable[R]]) -> Callable[Concatenate[Blocking, P], R]:
    """Give a method of a mind or a conversation the same signature without `await`; those of the SDK lend theirs."""

    def call(self: Blocking, /, *arguments: P.args, **named: P.kwargs) -> R:
        bound: Callable[P, Awaitable[R]] = getattr(self.inner, method.__name__)
        result: R = self.portal.call(partial(bound, *arguments, **named))
        return result

    return wraps(method)(call)


@dataclass(frozen=True)
class BlockingConversation(Blocking):
    """A conversation whose methods return when they are done; here or on a server."""

    append = blocking(RemoteConversation.append)
    history = blocking(RemoteConversation.history)
    context = blocking(RemoteConversation.context)
    converse = blocking(RemoteConversation.converse)
    leaves = blocking(RemoteConversation.leaves)
    segments = blocking(RemoteConversation.segments)
    close_segment = blocking(RemoteConversation.close_segment)
    read = blocking(RemoteConversation.read)
    describe = blocking(RemoteConversation.describe)
    archive = blocking(RemoteConversation.archive)
    restore = blocking(RemoteConversation.restore)
    delete = blocking(RemoteConversation.delete)
    purge = blocking(RemoteConversation.purge)
    receipts = blocking(RemoteConversation.receipts)


@dataclass(frozen=True)
class BlockingBlocks(Blocking):
    """What can be shown of a scope, by methods that return when they are done; here or on a server."""

    recall = blocking(RemoteBlocks.recall)
    resolve = blocking(RemoteBlocks.resolve)


@dataclass(frozen=True)
class BlockingFading(Blocking):
    """What fades in a scope, by methods that return when they are done; here or on a server."""

    fade = blocking(RemoteFading.fade)
    explain = blocking(RemoteFading.explain)
    faded = blocking(RemoteFading.faded)
    restore = blocking(RemoteFading.restore)


@dataclass(frozen=True)
class BlockingItems(Blocking):
    """The items of a scope, by methods that return when they are done; here or on a server."""

    batch = blocking(RemoteItems.batch)
    put = blocking(RemoteItems.put)
    get = blocking(RemoteItems.get)
    drop = blocking(RemoteItems.drop)
    find = blocking(RemoteItems.find)
    paths = blocking(RemoteItems.paths)


@dataclass(frozen=True)
class BlockingKnowledge(Blocking):
    """What is known in a scope, by methods that return when they are done; here or on a server."""

    state = blocking(RemoteKnowledge.state)
    end = blocking(RemoteKnowledge.end)
    facts = blocking(RemoteKnowledge.facts)
    fact_versions = blocking(RemoteKnowledge.fact_versions)
    entities = blocking(RemoteKnowledge.entities)
    entity = blocking(RemoteKnowledge.entity)
    neighbours = blocking(RemoteKnowledge.neighbours)
    paths = blocking(RemoteKnowledge.paths)
    timeline = blocking(RemoteKnowledge.timeline)

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

    list = blocking(RemoteRecalls.list)
    explain = blocking(RemoteRecalls.explain)
    replay = blocking(RemoteRecalls.replay)


@dataclass(frozen=True)
class BlockingTopics(Blocking):
    """The topics of a scope, by methods that return when they are done; here or on a server."""

    tree = blocking(RemoteTopics.tree)
    links = blocking(RemoteTopics.links)
    related = blocking(RemoteTopics.related)
    link = blocking(RemoteTopics.link)
    unlink = blocking(RemoteTopics.unlink)
    rename = blocking(RemoteTopics.rename)
    move = blocking(RemoteTopics.move)
    merge = blocking(RemoteTopics.merge)


@dataclass(frozen=True)
class BlockingMind(Blocking):
    """A mind whose verbs return when they are done; here or on a server."""

    inner: Verbs

    remember = blocking(RemoteMind.remember)
    load = blocking(RemoteMind.load)
    recall = blocking(RemoteMind.recall)
    recall_each = blocking(RemoteMind.recall_each)
    get = blocking(RemoteMind.get)
    browse = blocking(RemoteMind.browse)
    forget = blocking(RemoteMind.forget)
    associate = blocking(RemoteMind.associate)
    last_chat = blocking(RemoteMind.last_chat)
    feedback = blocking(RemoteMind.feedback)
    overview = blocking(RemoteMind.overview)
    profile = blocking(RemoteMind.profile)
    set_profile = blocking(RemoteMind.set_profile)
    metadata = blocking(RemoteMind.metadata)
    tune = blocking(RemoteMind.tune)
    reflect = blocking(RemoteMind.reflect)
    reflect_later = blocking(RemoteMind.reflect_later)
    reflection = blocking(RemoteMind.reflection)
    conversations = blocking(RemoteMind.conversations)

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
    def items(self) -> BlockingItems:
        """Give the scope's items: JSON values under names of your own."""
        return BlockingItems(self.inner.items, self.portal)

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

    inner: GivesMinds
    portal: Portal

    def mind(self, agent: str, user: str = "") -> BlockingMind:
        """Open a scope."""
        return BlockingMind(self.portal.call(self.inner.mind, agent, user), self.portal)

    def ledger(self, agent: str = "", user: str = "", *, days: int = 30) -> Ledger:
        """Add up what models cost by day, step and model: in one scope, or in all if no agent is named."""
        added: Ledger = self.portal.call(partial(self.inner.ledger, agent, user, days=days))
        return added


@dataclass(frozen=True)
class BlockingClient(BlockingRecollect):
    """A client of a server, held open until it is closed."""

    inner: Client

    jobs = blocking(Client.jobs)
    retry_job = blocking(Client.retry_job)

    def close(self) -> None:
        """Close the connection."""
        self.portal.call(self.inner.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(url: str, key: str, *, timeout_seconds: float = 15.0) -> BlockingClient:
    """Connect to a server without an event loop or a thread: under gevent, in threads, inside a running loop too."""
    return BlockingClient(Client(url, key, timeout_seconds=timeout_seconds, transport=BlockingTransport), NoLoop())


@contextmanager
def open(settings: Settings | None = None) -> Iterator[BlockingRecollect]:  # noqa: A001 - `sync.open()` is meant
    """Open Recollect in this process."""
    with using(load("recollect.wiring", "engine").open_recollect(settings)) as recollect:
        yield recollect


@contextmanager
def using(opening: AbstractAsyncContextManager[GivesMinds]) -> Iterator[BlockingRecollect]:
    """Use anything that gives minds, such as a `Client`, from code without an event loop."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opening) as opened:
        yield BlockingRecollect(opened, portal)
