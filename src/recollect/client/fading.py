"""The SDK's view of what fades in one scope on a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol
from uuid import UUID

from recollect.client.bodies import JsonType, to_parameters
from recollect.models.memories import FadedPage, Fading, FadingRules, Judgement

FADING, FADED = JsonType(Fading), JsonType(FadedPage)
JUDGEMENTS, RESTORED = JsonType(dict[str, list[Judgement]]), JsonType(dict[str, list[UUID]])


class Sender(Protocol):
    """Whatever sends a request and gives back the body of the answer."""

    async def send(self, method: str, path: str, **content: Any) -> bytes:  # noqa: ANN401 - the HTTP library's own
        """Send a request, and retry where the server is unavailable."""
        ...

    async def send_once(self, method: str, path: str, seconds: float, **content: Any) -> bytes:  # noqa: ANN401
        """Send a request that must not be repeated, and wait so long for its answer."""
        ...


@dataclass(frozen=True, slots=True)
class RemoteFading:
    """What fades in one scope on a server."""

    client: Sender
    agent: str
    user: str

    async def fade(
        self,
        rules: FadingRules = FadingRules(),  # noqa: B008 - a frozen value
        *,
        dry_run: bool = False,
        cursor: UUID | None = None,
    ) -> Fading:
        """Let memories fade that may, or only say which would; where the time is over, the cursor says how to go on."""
        body = self._body(rules) | {"dry_run": dry_run, "cursor": str(cursor) if cursor else None}
        return FADING.validate_json(await self.client.send("POST", "/v1/fading", json=body))

    async def explain(
        self,
        ids: Sequence[UUID],
        rules: FadingRules = FadingRules(),  # noqa: B008 - a frozen value
    ) -> list[Judgement]:
        """Say of memories whether they would fade now, and why; what does not take part in recall is left out."""
        body = self._body(rules) | {"ids": [str(memory_id) for memory_id in ids]}
        answer = await self.client.send("POST", "/v1/fading/explain", json=body)
        return JUDGEMENTS.validate_json(answer)["judgements"]

    async def faded(self, cursor: UUID | None = None, limit: int = 50) -> FadedPage:
        """Fetch one page of what has faded, the oldest memory first, each with its reason."""
        parameters = to_parameters(agent=self.agent, user=self.user, cursor=cursor, limit=limit)
        return FADED.validate_json(await self.client.send("GET", "/v1/faded", params=parameters))

    async def restore(self, ids: Sequence[UUID]) -> list[UUID]:
        """Bring faded memories back as they were, and tell which; from now on they may fade anew."""
        body = {"agent": self.agent, "user": self.user, "ids": [str(memory_id) for memory_id in ids]}
        answer = await self.client.send("POST", "/v1/faded/restore", json=body)
        return RESTORED.validate_json(answer)["restored"]

    def _body(self, rules: FadingRules) -> dict[str, Any]:
        return {"agent": self.agent, "user": self.user} | asdict(rules)
