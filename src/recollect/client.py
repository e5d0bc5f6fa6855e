"""The SDK: the verbs of a mind over HTTP, with retries that can not store anything twice."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid4

import httpx
from pydantic import BaseModel, TypeAdapter

from recollect import errors
from recollect.models import Cue, Memory, NewMemory, Page, Receipt, Recollection

ATTEMPTS = 4
LONGEST_WAIT_SECONDS = 8.0
AWAY = frozenset({429, 502, 503, 504})
ERRORS = {
    kind.code: kind
    for kind in (
        errors.InvalidInputError,
        errors.UnauthenticatedError,
        errors.ForbiddenError,
        errors.NotFoundError,
        errors.ConflictError,
        errors.UnavailableError,
    )
}
MEMORY, PAGE, RECOLLECTION = TypeAdapter(Memory), TypeAdapter(Page), TypeAdapter(Recollection)
NEW_MEMORY = TypeAdapter(NewMemory)


class Receipts(BaseModel):
    """The answer to a remember."""

    memories: list[Receipt]


class Forgotten(BaseModel):
    """The answer to a forget."""

    forgotten: list[UUID]


class Client:
    """A connection to a Recollect server, as the holder of one API key."""

    def __init__(self, url: str, key: str, *, timeout_seconds: float = 15.0) -> None:
        self._http = httpx.AsyncClient(
            base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=timeout_seconds, trust_env=False
        )

    async def mind(self, agent: str, user: str = "") -> RemoteMind:
        """Choose a scope; nothing is sent."""
        return RemoteMind(self, agent, user)

    async def close(self) -> None:
        """Close the connection."""
        await self._http.aclose()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def send(self, method: str, path: str, **content: Any) -> bytes:  # noqa: ANN401 - httpx's own arguments
        """Send a request, again where the server or the network was away; return the body."""
        for attempt in range(ATTEMPTS):
            wait = random.uniform(0, min(LONGEST_WAIT_SECONDS, 0.2 * 2**attempt))  # noqa: S311
            try:
                answer = await self._http.request(method, path, **content)
            except httpx.TransportError as problem:
                if attempt == ATTEMPTS - 1:
                    raise errors.UnavailableError(f"The server is away ({type(problem).__name__}).") from None
            else:
                if answer.status_code not in AWAY or attempt == ATTEMPTS - 1:
                    return read(answer)
                wait = max(wait, patience(answer.headers))
            await asyncio.sleep(wait)
        raise AssertionError("the last attempt returns or raises")


def patience(headers: Mapping[str, str]) -> float:
    """Read how long the server asks to wait."""
    asked = headers.get("retry-after", "0")
    return min(LONGEST_WAIT_SECONDS, float(asked)) if asked.isdigit() else 0.0


def read(answer: httpx.Response) -> bytes:
    """Return the body, or raise the error that the server described."""
    if answer.is_success:
        return answer.content
    try:
        problem = answer.json()
        detail = str(problem["detail"]) + "".join(f" {e['field']}: {e['message']}." for e in problem["errors"])
        code = str(problem["code"])
    except (ValueError, KeyError, TypeError):
        detail, code = f"The server answered {answer.status_code}.", ""
    raise ERRORS.get(code, errors.UnavailableError if answer.status_code in AWAY else errors.RecollectError)(detail)


@dataclass(frozen=True, slots=True)
class RemoteMind:
    """One scope on a server."""

    client: Client
    agent: str
    user: str

    async def remember(
        self, memories: str | NewMemory | Sequence[str | NewMemory], *, idempotency_key: str = ""
    ) -> list[Receipt]:
        """Store one or many memories; without a key of yours one is made up, so that retries are safe."""
        many = [memories] if isinstance(memories, str | NewMemory) else memories
        items = [NewMemory(memory) if isinstance(memory, str) else memory for memory in many]
        body = self._scope() | {"memories": [to_body(item) for item in items]}
        headers = {"Idempotency-Key": idempotency_key or uuid4().hex}
        answer = await self.client.send("POST", "/v1/memories", json=body, headers=headers)
        return Receipts.model_validate_json(answer).memories

    async def recall(self, cue: str | Cue, *, limit: int | None = None) -> Recollection:
        """Give back what a cue reminds of, best first."""
        asked = Cue(cue) if isinstance(cue, str) else cue
        asked = asked if limit is None else replace(asked, limit=limit)
        body = self._scope() | {
            "text": asked.text,
            "embedding": list(asked.embedding or []),
            "limit": asked.limit,
            "kinds": list(asked.kinds),
            "min_trust": asked.min_trust,
            "as_of": asked.as_of.isoformat() if asked.as_of else None,
        }
        return RECOLLECTION.validate_json(await self.client.send("POST", "/v1/recall", json=body))

    async def get(self, memory_id: UUID) -> Memory:
        """Fetch one memory."""
        answer = await self.client.send("GET", f"/v1/memories/{memory_id}", params=self._scope())
        return MEMORY.validate_json(answer)

    async def browse(self, cursor: UUID | None = None, limit: int = 50) -> Page:
        """Fetch one page of memories, oldest first."""
        parameters = self._scope() | {"limit": str(limit)} | ({"cursor": str(cursor)} if cursor else {})
        return PAGE.validate_json(await self.client.send("GET", "/v1/memories", params=parameters))

    async def forget(self, ids: Sequence[UUID]) -> list[UUID]:
        """Delete memories and all that was derived from them."""
        body = self._scope() | {"ids": [str(memory_id) for memory_id in ids]}
        answer = await self.client.send("POST", "/v1/forget", json=body)
        return Forgotten.model_validate_json(answer).forgotten

    def _scope(self) -> dict[str, Any]:
        return {"agent": self.agent, "user": self.user}


def to_body(memory: NewMemory) -> dict[str, Any]:
    """Turn a memory into what the server takes: an absent embedding travels as an empty list."""
    body: dict[str, Any] = NEW_MEMORY.dump_python(memory, mode="json")
    return body | {"embedding": body["embedding"] or []}
