"""One scope on a Recollect server, and calls to it that are written once, for event loops and for threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from recollect.client import Client, RemoteMind
from recollect.errors import RecollectError
from recollect.sync import SyncMind, connect

P = ParamSpec("P")
R = TypeVar("R")
Steps: TypeAlias = Generator[tuple[Any, ...], Any, R]
"""What to ask, step by step: a method's name and its arguments; the answer, or the error, comes back into it."""


class Connection:
    """A scope on a server; nothing is sent before something is asked."""

    def __init__(self, url: str, key: str, agent: str, user: str = "", *, timeout_seconds: float = 15.0) -> None:
        self._server, self._scope, self._timeout = (url, key), (agent, user), timeout_seconds
        self._blocking = connect(url, key, timeout_seconds=timeout_seconds)
        # Sockets belong to the loop that opened them, and a graph may be run by one loop after another.
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Client] = WeakKeyDictionary()

    @property
    def mind(self) -> SyncMind:
        """Give the scope's verbs for callers without an event loop."""
        return self._blocking.mind(*self._scope)

    async def open_mind(self) -> RemoteMind:
        """Give the scope's verbs for the running event loop."""
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            client = self._clients[loop] = Client(*self._server, timeout_seconds=self._timeout)
        return await client.mind(*self._scope)

    def close(self) -> None:
        """Hang up for callers without an event loop."""
        self._blocking.close()

    async def aclose(self) -> None:
        """Hang up for the running event loop."""
        if client := self._clients.pop(asyncio.get_running_loop(), None):
            await client.close()


def walk(steps: Steps[R], partner: Any) -> R:  # noqa: ANN401 - whoever has the methods
    """Ask step by step; give what comes out."""
    try:
        method, *arguments = next(steps)
        while True:
            try:
                answer = getattr(partner, method)(*arguments)
            except RecollectError as problem:
                method, *arguments = steps.throw(problem)
            else:
                method, *arguments = steps.send(answer)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


async def awalk(steps: Steps[R], partner: Any) -> R:  # noqa: ANN401 - whoever has the methods
    """Ask step by step from an event loop; give what comes out."""
    try:
        method, *arguments = next(steps)
        while True:
            try:
                answer = await getattr(partner, method)(*arguments)
            except RecollectError as problem:
                method, *arguments = steps.throw(problem)
            else:
                method, *arguments = steps.send(answer)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


def both(
    asking: Callable[Concatenate[Any, P], Steps[R]], part: str
) -> tuple[Callable[Concatenate[Any, P], R], Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]]:
    """Make two methods of one, for threads and for event loops; it asks that part of the connection's mind."""

    def blocking(self: Any, /, *arguments: P.args, **named: P.kwargs) -> R:  # noqa: ANN401
        return walk(asking(self, *arguments, **named), getattr(self.connection.mind, part))

    async def waiting(self: Any, /, *arguments: P.args, **named: P.kwargs) -> R:  # noqa: ANN401
        return await awalk(asking(self, *arguments, **named), getattr(await self.connection.open_mind(), part))

    return blocking, waiting
