"""Repeat what was asked of a tenant whose buckets have gone to another server meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

from recollect.errors import MovedError
from recollect.models.service import Caller
from recollect.store.database.calls import watching_commits
from recollect.store.shards.servers import Servers

PAUSES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
"""How long to wait, each time, before what is being moved is looked for again."""
Given = ParamSpec("Given")
Answer = TypeVar("Answer")
Repeated: TypeAlias = Callable[Concatenate[Any, Caller, Given], Awaitable[Answer]]


class HasServers(Protocol):
    """What knows the servers."""

    @property
    def servers(self) -> Servers:
        """Return where the rows are."""
        ...


async def repeat(attempt: Callable[[], Awaitable[Answer]], look: Callable[[], Awaitable[None]]) -> Answer:
    """Make an attempt; where something has gone to another server, look for it and make another."""
    for pause in PAUSES:
        with watching_commits() as commits:
            try:
                return await attempt()
            except MovedError:
                # What has been written in part is not written again: the caller is told to try again.
                if commits.any:
                    raise
        await asyncio.sleep(pause)
        await look()
    return await attempt()


def following(method: Repeated[Given, Answer]) -> Repeated[Given, Answer]:
    """Let a method that is asked by a caller follow the caller's tenant."""

    @wraps(method)
    async def follow(self: HasServers, caller: Caller, /, *arguments: Given.args, **named: Given.kwargs) -> Answer:
        return await repeat(
            lambda: method(self, caller, *arguments, **named), lambda: self.servers.read_anew(caller.tenant_id)
        )

    return follow
