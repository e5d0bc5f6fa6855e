"""The same minds for callers without an event loop: in this process through a portal, on a server without one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Self

from recollect.client.client import Client
from recollect.client.transport import BlockingTransport, NoLoop
from recollect.loading import load
from recollect.sync.blocking import BlockingConversation, BlockingItems, BlockingMind
from recollect.sync.portals import Portal, blocking

if TYPE_CHECKING:
    from recollect.mind.service import Recollect
    from recollect.models.service import Ledger
    from recollect.settings import Settings

__all__ = [
    "BlockingClient",
    "BlockingConversation",
    "BlockingItems",
    "BlockingMind",
    "BlockingMinds",
    "BlockingRecollect",
    "connect",
    "open",
    "using",
]


class GivesMinds(Protocol):
    """Anything that gives minds."""

    @property
    def mind(self) -> Callable[..., Awaitable[Any]]:
        """Open a scope."""
        ...

    @property
    def ledger(self) -> Callable[..., Awaitable[Ledger]]:
        """Sum up what models cost."""
        ...


@dataclass(frozen=True)
class BlockingMinds:
    """Anything that gives minds, with blocking ones."""

    inner: GivesMinds
    portal: Portal

    def mind(self, agent: str, user: str = "", *, max_staleness: float | None = None) -> BlockingMind:
        """Open a scope; where nothing was written, replicas may answer that are at most so many seconds behind."""
        opening = partial(self.inner.mind, agent, user, max_staleness=max_staleness)
        return BlockingMind(self.portal.call(opening), self.portal)

    def ledger(self, agent: str = "", user: str = "", *, days: int = 30) -> Ledger:
        """Sum up what models cost by day, step and model: in one scope, or in all if no agent is named."""
        added: Ledger = self.portal.call(partial(self.inner.ledger, agent, user, days=days))
        return added


@dataclass(frozen=True)
class BlockingRecollect(BlockingMinds):
    """A Recollect of this process."""

    inner: Recollect

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait until no job of the scopes opened here is ready or runs; tell whether that was in time."""
        done: bool = self.portal.call(self.inner.wait, timeout_seconds)
        return done


@dataclass(frozen=True)
class BlockingClient(BlockingMinds):
    """A client of a server, held open until it is closed."""

    inner: Client

    key = blocking(Client.key)
    keys = blocking(Client.keys)
    create_key = blocking(Client.create_key)
    revoke_key = blocking(Client.revoke_key)
    jobs = blocking(Client.jobs)
    retry_job = blocking(Client.retry_job)
    retry_jobs = blocking(Client.retry_jobs)
    scopes = blocking(Client.scopes)
    status = blocking(Client.status)
    receipts = blocking(Client.receipts)
    export_scopes = blocking(Client.export_scopes)
    import_scopes = blocking(Client.import_scopes)
    forget_user = blocking(Client.forget_user)
    erasures = blocking(Client.erasures)

    @property
    def position(self) -> str:
        """Return the newest position that this client has seen of each server; empty where there are no replicas."""
        return self.inner.position

    def see(self, position: str) -> None:
        """Take into account what another program wrote, by the position that it was answered: reads will find it."""
        self.inner.see(position)

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
def open(  # noqa: A001 - `sync.open()` is meant
    settings: Settings | None = None, *, work: bool = True
) -> Iterator[BlockingRecollect]:
    """Open Recollect in this process, with a worker in the background unless told not to."""
    opening = load("recollect.wiring", "engine").open_recollect(settings, work=work)
    with entered(opening) as (opened, portal):
        yield BlockingRecollect(opened, portal)


@contextmanager
def using(opening: AbstractAsyncContextManager[GivesMinds]) -> Iterator[BlockingMinds]:
    """Use anything that gives minds, such as a `Client`, from code without an event loop."""
    with entered(opening) as (opened, portal):
        yield BlockingMinds(opened, portal)


@contextmanager
def entered(opening: AbstractAsyncContextManager[Any]) -> Iterator[tuple[Any, Portal]]:
    """Enter a context in an event loop of its own, and give the portal to it."""
    start = load("anyio.from_thread").start_blocking_portal
    with start() as portal, portal.wrap_async_context_manager(opening) as opened:
        yield opened, portal
