"""The same minds for callers without an event loop: every call goes through a portal to one in a thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from recollect.mind import Mind
from recollect.models import Receipt, Recollection
from recollect.settings import Settings
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


class Opened(Protocol):
    """Whatever gives minds."""

    @property
    def mind(self) -> Callable[[str, str], Awaitable[Verbs]]:
        """Open a scope."""
        ...


def blocking(method: Callable[Concatenate[Mind, P], Awaitable[R]]) -> Callable[Concatenate[BlockingMind, P], R]:
    """Give a method of a mind the same signature without `await`."""

    def call(self: BlockingMind, /, *arguments: P.args, **named: P.kwargs) -> R:
        bound: Callable[P, Awaitable[R]] = getattr(self.inner, method.__name__)
        return self.portal.call(partial(bound, *arguments, **named))

    call.__doc__ = method.__doc__
    return call


@dataclass(frozen=True)
class BlockingMind:
    """A mind whose verbs return when they are done; here or on a server."""

    inner: Verbs
    portal: BlockingPortal

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


@dataclass(frozen=True)
class BlockingRecollect:
    """A Recollect, or a client of one, that gives blocking minds."""

    inner: Opened
    portal: BlockingPortal

    def mind(self, agent: str, user: str = "") -> BlockingMind:
        """Open a scope."""
        return BlockingMind(self.portal.call(self.inner.mind, agent, user), self.portal)


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
