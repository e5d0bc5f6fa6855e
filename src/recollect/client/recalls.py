"""The SDK's view of the kept recalls of one scope on a server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.client.bodies import JsonType, to_parameters
from recollect.client.fading import Sender
from recollect.models.kept import Explanation, KeptRecalls, Replay

EXPLANATION, RECALLS, REPLAY = JsonType(Explanation), JsonType(KeptRecalls), JsonType(Replay)


@dataclass(frozen=True, slots=True)
class RemoteRecalls:
    """The kept recalls of one scope on a server."""

    client: Sender
    agent: str
    user: str

    async def list(self, cursor: UUID | None = None, limit: int = 50) -> KeptRecalls:
        """Fetch one page of kept recalls, the latest first."""
        parameters = self._scope() | to_parameters(cursor=cursor, limit=limit)
        return RECALLS.validate_json(await self.client.send("GET", "/v1/recalls", params=parameters))

    async def explain(self, recall_id: UUID) -> Explanation:
        """Say what a recall was ranked by, what each channel proposed, and where each candidate came to stand."""
        answer = await self.client.send("GET", f"/v1/recalls/{recall_id}", params=self._scope())
        return EXPLANATION.validate_json(answer)

    async def replay(
        self, recall_id: UUID, weights: Mapping[str, float] | None = None, *, as_of: datetime | None = None
    ) -> Replay:
        """Rank what a recall found by other weights; or ask it anew as of a moment, counting no access."""
        moment = {"as_of": as_of.isoformat()} if as_of else {}
        body = self._scope() | {"weights": dict(weights or {})} | moment
        return REPLAY.validate_json(await self.client.send("POST", f"/v1/recalls/{recall_id}/replay", json=body))

    def _scope(self) -> dict[str, str]:
        return {"agent": self.agent, "user": self.user}
