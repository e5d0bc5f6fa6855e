"""The same minds for callers without an event loop: in this process through a portal, on a server without one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from recollect.client.client import Client
from recollect.client.transport import BlockingTransport, SyncRunner
from recollect.loading import load
from recollect.sync.blocking import SyncConversation, SyncItems, SyncMind
from recollect.sync.portal import Portal, blocking

if TYPE_CHECKING:
    from recollect.mind.service import Recollect
    from recollect.models.service import CostReport
    from recollect.settings import Settings

__all__ = [
    "SyncClient",
    "SyncConversation",
    "SyncItems",
    "SyncMind",
    "SyncMinds",
    "SyncRecollect",
    "connect",
    "open",
    "using",
]


@dataclass(frozen=True)
class SyncMinds:
    """Anything that gives minds, with blocking ones."""

    inner: Client | Recollect
    portal: Portal

    receipts = blocking(Client.receipts)

    def mind(self, agent: str, user: str = "") -> SyncMind:
        """Open a scope."""
        return SyncMind(self.portal.call(self.inner.mind, agent, user), self.portal)

    def ledger(self, agent: str = "", user: str = "", *, days: int = 30) -> CostReport:
        """Sum up what models cost by day, step and model: in one scope, or in all if no agent is named."""
        added: CostReport = self.portal.call(partial(self.inner.ledger, agent, user, days=days))
        return added


@dataclass(frozen=True)
class SyncRecollect(SyncMinds):
    """A Recollect of this process."""

    inner: Recollect

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait until no job of the scopes opened here is ready or runs; return whether that was in time."""
        done: bool = self.portal.call(self.inner.wait, timeout_seconds)
        return done


@dataclass(frozen=True)
class SyncClient(SyncMinds):
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
    tune = blocking(Client.tune)
    export_scopes = blocking(Client.export_scopes)
    import_scopes = blocking(Client.import_scopes)
    forget_user = blocking(Client.forget_user)
    erasures = blocking(Client.erasures)

    def close(self) -> None:
        """Close the connection."""
        self.portal.call(self.inner.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(url: str | None = None, key: str | None = None, *, timeout_seconds: float = 15.0) -> SyncClient:
    """Connect to a server without an event loop or a thread: under gevent, in threads, inside a running loop too."""
    return SyncClient(Client(url, key, timeout_seconds=timeout_seconds, transport=BlockingTransport), SyncRunner())


@contextmanager
def open(  # noqa: A001 - `sync.open()` is meant
    settings: Settings | None = None, *, work: bool = True
) -> Iterator[SyncRecollect]:
    """Open Recollect in this process. A worker runs in the background unless `work` is false."""
    opening = load("recollect.wiring", "engine").open_recollect(settings, work=work)
    with entered(opening) as (opened, portal):
        yield SyncRecollect(opened, portal)


@contextmanager
def using(opening: AbstractAsyncContextManager[Client | Recollect]) -> Iterator[SyncMinds]:
    """Use anything that gives minds, such as a `Client`, from code without an event loop."""
    with entered(opening) as (opened, portal):
        yield SyncMinds(opened, portal)


@contextmanager
def entered(opening: AbstractAsyncContextManager[Any]) -> Iterator[tuple[Any, Portal]]:
    """Enter a context in a new event loop, and yield its value and the portal."""
    start = load("anyio.from_thread").start_blocking_portal
    with start() as portal, portal.wrap_async_context_manager(opening) as opened:
        yield opened, portal
