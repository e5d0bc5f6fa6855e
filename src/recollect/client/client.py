"""The SDK: the verbs of a mind over HTTP, with retries that cannot store anything twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from recollect import models
from recollect.client.calls import reader
from recollect.client.mind import RemoteMind
from recollect.client.transport import Transport

if TYPE_CHECKING:
    from recollect.models.service import Job, Jobs, JobState, Ledger


JOB, JOBS, LEDGER = (lambda: models.Job), (lambda: models.Jobs), (lambda: models.Ledger)
"""The types of answers, which are loaded at their first use."""


class Client:
    """A connection to a Recollect server, as the holder of one API key."""

    def __init__(
        self, url: str, key: str, *, timeout_seconds: float = 15.0, transport: type[Transport] = Transport
    ) -> None:
        self._transport = transport(url, key, timeout_seconds)

    async def mind(self, agent: str, user: str = "") -> RemoteMind:
        """Choose a scope; nothing is sent."""
        return RemoteMind(self, agent, user)

    async def jobs(
        self, state: JobState | None = None, *, task: str = "", cursor: str | None = None, limit: int = 50
    ) -> Jobs:
        """Fetch one page of the tenant's jobs that wait, run or have failed, the newest first."""
        chosen = {"state": state, "task": task, "cursor": cursor, "limit": limit}
        parameters = {name: str(value) for name, value in chosen.items() if value}
        found: Jobs = reader(JOBS)(await self.send("GET", "/v1/jobs", params=parameters))
        return found

    async def retry_job(self, job_id: str) -> Job:
        """Retry a failed job of the tenant; needs the right `admin`."""
        job: Job = reader(JOB)(await self.send("POST", f"/v1/jobs/{quote(job_id, safe='')}/retry"))
        return job

    async def ledger(self, agent: str = "", user: str = "", *, days: int = 30) -> Ledger:
        """Sum up what models cost by day, step and model: in one scope, or in all if no agent is named."""
        parameters = {"agent": agent, "user": user, "days": str(days)}
        added: Ledger = reader(LEDGER)(await self.send("GET", "/v1/ledger", params=parameters))
        return added

    async def close(self) -> None:
        """Close the connection."""
        await self._transport.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def send(self, method: str, path: str, **content: Any) -> bytes:  # noqa: ANN401 - httpx's own arguments
        """Send a request, and retry where the server or the network is unavailable; return the body."""
        return await self._transport.send(method, path, **content)

    def stream(self, path: str, parameters: Mapping[str, str]) -> AsyncIterator[str]:
        """Read a long answer piece by piece; once it has begun nothing is sent again."""
        return self._transport.stream(path, parameters)

    async def send_once(self, method: str, path: str, seconds: float, **content: Any) -> bytes:  # noqa: ANN401
        """Send a request that must not be repeated, and wait so long for its answer; return the body."""
        return await self._transport.send_once(method, path, seconds, **content)

    async def pause(self, seconds: float) -> None:
        """Wait before the next request."""
        await self._transport.pause(seconds)
