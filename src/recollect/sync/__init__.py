"""The same minds for callers without an event loop: in this process through a portal, on a server without one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Self

from recollect.client.client import Client
from recollect.client.transport import BlockingTransport
from recollect.loading import load
from recollect.sync.blocking import BlockingConversation, BlockingItems, BlockingMind
from recollect.sync.portals import NoLoop, Portal, blocking

if TYPE_CHECKING:
    from recollect.models.service import Ledger
    from recollect.settings import Settings

__all__ = [
    "BlockingClient",
    "BlockingConversation",
    "BlockingItems",
    "BlockingMind",
    "BlockingRecollect",
    "connect",
    "open",
    "using",
]


class GivesMinds(Protocol):
    """Anything that gives minds."""

    @property
    def mind(self) -> Callable[[str, str], Awaitable[Any]]:
        """Open a scope."""
        ...

    @property
    def ledger(self) -> Callable[..., Awaitable[Ledger]]:
        """Sum up what models cost."""
        ...


@dataclass(frozen=True)
class BlockingRecollect:
    """A Recollect, or a client of one, with blocking minds."""

    inner: GivesMinds
    portal: Portal

    def mind(self, agent: str, user: str = "") -> BlockingMind:
        """Open a scope."""
        return BlockingMind(self.portal.call(self.inner.mind, agent, user), self.portal)

    def ledger(self, agent: str = "", user: str = "", *, days: int = 30) -> Ledger:
        """Sum up what models cost by day, step and model: in one scope, or in all if no agent is named."""
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
    start = load("anyio.from_thread").start_blocking_portal
    with start() as portal, portal.wrap_async_context_manager(opening) as opened:
        yield BlockingRecollect(opened, portal)
