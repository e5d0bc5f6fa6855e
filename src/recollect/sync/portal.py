"""Ways to call asynchronous code without `await`, through a portal to where it runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, aclosing
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Portal(Protocol):
    """Where something asynchronous runs."""

    @property
    def call(self) -> Callable[..., Any]:
        """Call something asynchronous, and return when it is done."""
        ...

    @property
    def wrap_async_context_manager(self) -> Callable[[AbstractAsyncContextManager[Any]], AbstractContextManager[Any]]:
        """Enter and leave an asynchronous context manager."""
        ...


@dataclass(frozen=True)
class Blocking:
    """Something asynchronous, and the portal to where it runs."""

    inner: Any
    portal: Portal


def blocking(method: Callable[Concatenate[Any, P], Awaitable[R]]) -> Callable[Concatenate[Blocking, P], R]:
    """Return a method with the same signature without `await`; those of the SDK also serve minds in this process."""

    def call(self: Blocking, /, *arguments: P.args, **named: P.kwargs) -> R:
        bound: Callable[P, Awaitable[R]] = getattr(self.inner, method.__name__)
        result: R = self.portal.call(partial(bound, *arguments, **named))
        return result

    return wraps(method)(call)


def blocking_pieces(
    method: Callable[Concatenate[Any, P], AsyncIterator[R]],
) -> Callable[Concatenate[Blocking, P], Iterator[R]]:
    """Return a method that yields its answer piece by piece, with the same signature without `async`."""

    def call(self: Blocking, /, *arguments: P.args, **named: P.kwargs) -> Iterator[R]:
        begun: AsyncIterator[R] = getattr(self.inner, method.__name__)(*arguments, **named)
        with self.portal.wrap_async_context_manager(aclosing(begun)) as pieces:
            while (piece := self.portal.call(anext, pieces, None)) is not None:
                yield piece

    return wraps(method)(call)
