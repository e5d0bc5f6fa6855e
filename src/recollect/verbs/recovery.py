"""The one loop that repeats a call after an error from which an optional part can recover."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

from recollect.models.service import Caller
from recollect.store.database.calls import track_commits

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
Recovered: TypeAlias = Callable[Concatenate[Any, Caller, Given], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Recovery:
    """How calls continue after an error."""

    error: type[Exception]
    refresh: Callable[[int, Any], Awaitable[None]]
    """Called with the tenant and the error, before the next attempt."""
    pauses: Sequence[float]
    """Seconds to wait before each new attempt of a call."""


async def recover(
    recoveries: Sequence[Recovery],
    tenant_id: int,
    attempt: Callable[[], Awaitable[Answer]],
    again: Callable[[], Awaitable[Answer]] | None = None,
    *,
    repeats: bool = True,
) -> Answer:
    """Make a call; after an error in the list, refresh and try again, unless the call has committed a part.

    Later attempts call `again` if it is given. A call that does not repeat raises its error after the refresh.
    """
    left = {each.error: iter(each.pauses) for each in recoveries}
    while True:
        with track_commits() as commits:
            try:
                return await attempt()
            except Exception as problem:
                recovery = next((each for each in recoveries if isinstance(problem, each.error)), None)
                if recovery is None or (pause := next(left[recovery.error], None)) is None:
                    raise
                met = problem
        await asyncio.sleep(pause)
        await recovery.refresh(tenant_id, met)
        if commits.any or not repeats:
            raise met
        attempt = again or attempt


class HasRecoveries(Protocol):
    """The dependencies of a call."""

    @property
    def recoveries(self) -> Sequence[Recovery]:
        """Return how the call continues after errors."""
        ...


class HasParts(Protocol):
    """An object with dependencies."""

    @property
    def parts(self) -> HasRecoveries:
        """Return the dependencies."""
        ...


def recovered(method: Recovered[Given, Answer]) -> Recovered[Given, Answer]:
    """Decorate a method with a caller, so that it is tried again after errors in the list."""

    @wraps(method)
    async def call(self: HasParts, caller: Caller, /, *arguments: Given.args, **named: Given.kwargs) -> Answer:
        return await recover(self.parts.recoveries, caller.tenant_id, lambda: method(self, caller, *arguments, **named))

    return call
