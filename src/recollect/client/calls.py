"""How the SDK calls an operation of a server: by its entry in the list of operations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import pydantic

from recollect.client.operations import OPERATIONS
from recollect.loading import load


class Sender(Protocol):
    """Anything that sends requests to a server: a client."""

    async def send(self, method: str, path: str, **content: Any) -> bytes:  # noqa: ANN401 - the HTTP library's own
        """Send a request, and retry where the server is unavailable; return the body."""
        ...

    async def send_once(self, method: str, path: str, seconds: float, **content: Any) -> bytes:  # noqa: ANN401
        """Send a request that must not be repeated, and wait so long for its answer; return the body."""
        ...

    def stream(self, path: str, parameters: Mapping[str, str]) -> AsyncIterator[bytes]:
        """Read a long answer piece by piece."""
        ...

    async def pause(self, seconds: float) -> None:
        """Wait before the next request."""
        ...


@dataclass(frozen=True, slots=True)
class RemoteView:
    """A scope, or a part of one, on a server."""

    client: Sender
    agent: str
    user: str

    async def call(self, key: str, **arguments: object) -> Any:  # noqa: ANN401 - what the operation gives
        """Ask the server for an operation, and read its answer."""
        method, path, content = write(self, key, arguments)
        return read(key, await self.client.send(method, path, **content))


@dataclass(frozen=True, slots=True)
class ConversationPart(RemoteView):
    """A conversation on a server."""

    conversation: str


def write(view: RemoteView, key: str, arguments: Mapping[str, object]) -> tuple[str, str, dict[str, Any]]:
    """Build a request: its method, its path, and its content."""
    written: tuple[str, str, dict[str, Any]] = load("recollect.client.bodies").write(view, key, arguments)
    return written


def read(key: str, answer: bytes) -> Any:  # noqa: ANN401 - what the operation gives
    """Read the answer of an operation; a list or a number comes under the name of a field."""
    operation = OPERATIONS[key]
    if operation.gives is None:
        return None
    read_json = reader(operation.gives, operation.answer)
    return read_json(answer)[operation.answer] if operation.answer else read_json(answer)


@cache
def reader(gives: Callable[[], Any], answer: str = "") -> Callable[[bytes], Any]:
    """Make the reader of a type at its first use, because that is slow."""
    kind: Any = gives()
    whole: Any = dict.__class_getitem__((str, kind)) if answer else kind
    adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(whole)
    return adapter.validate_json
