"""Repeat a call of a tenant whose buckets have moved to another server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

from recollect.errors import ScopeMovedError
from recollect.models.service import Caller
from recollect.store.database.calls import track_commits
from recollect.store.shards.servers import Servers

PAUSES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
"""The pauses in seconds before each new search for moved data."""
Given = ParamSpec("Given")
Answer = TypeVar("Answer")
Repeated: TypeAlias = Callable[Concatenate[Any, Caller, Given], Awaitable[Answer]]


class HasServers(Protocol):
    """An object with servers."""

    @property
    def servers(self) -> Servers:
        """Return the servers."""
        ...


async def repeat(attempt: Callable[[], Awaitable[Answer]], look: Callable[[], Awaitable[None]]) -> Answer:
    """Run a call; if its data has moved to another server, refresh the placement and retry."""
    for pause in PAUSES:
        with track_commits() as commits:
            try:
                return await attempt()
            except ScopeMovedError:
                # A partly written call is not repeated: the caller has to try again.
                if commits.any:
                    raise
        await asyncio.sleep(pause)
        await look()
    return await attempt()


def following(method: Repeated[Given, Answer]) -> Repeated[Given, Answer]:
    """Decorate a method with a caller, so that it is retried when the caller's tenant moves."""

    @wraps(method)
    async def call_where_moved(
        self: HasServers, caller: Caller, /, *arguments: Given.args, **named: Given.kwargs
    ) -> Answer:
        return await repeat(
            lambda: method(self, caller, *arguments, **named), lambda: self.servers.read_anew(caller.tenant_id)
        )

    return call_where_moved
