"""What the SDK asks about a tenant: its jobs, its scopes, its costs, and how the server stands for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from recollect import models
from recollect.client.calls import reader

if TYPE_CHECKING:
    from recollect.models.service import Job, Jobs, JobState, Ledger, ScopeOrder, Scopes, ServiceStatus

JOB, JOBS, LEDGER = (lambda: models.Job), (lambda: models.Jobs), (lambda: models.Ledger)
NUMBER: Callable[[], Any] = lambda: int  # noqa: E731 - a type, like the others
SCOPES, STATUS = (lambda: models.Scopes), (lambda: models.ServiceStatus)
"""The types of answers, which are loaded at their first use."""


class RemoteTenant:
    """A tenant on a server, as the holder of one API key sees it."""

    async def send(self, method: str, path: str, **content: Any) -> bytes:  # noqa: ANN401 - the HTTP library's own
        """Send a request; a client does."""
        raise NotImplementedError

    async def jobs(
        self,
        state: JobState | None = None,
        *,
        task: str = "",
        agent: str | None = None,
        user: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Jobs:
        """Fetch one page of the tenant's unfinished or failed jobs, the newest first; of some scopes if named."""
        chosen = {"state": state, "task": task, "cursor": cursor, "limit": limit}
        parameters = name_scopes(agent, user) | {name: str(value) for name, value in chosen.items() if value}
        found: Jobs = reader(JOBS)(await self.send("GET", "/v1/jobs", params=parameters))
        return found

    async def retry_job(self, job_id: str) -> Job:
        """Retry a failed job of the tenant; needs the right `admin`."""
        job: Job = reader(JOB)(await self.send("POST", f"/v1/jobs/{quote(job_id, safe='')}/retry"))
        return job

    async def retry_jobs(self, task: str = "", *, agent: str | None = None, user: str | None = None) -> int:
        """Retry all failed jobs of the tenant, of one task or of some scopes if named; needs the right `admin`."""
        body = name_scopes(agent, user) | ({"task": task} if task else {})
        retried: dict[str, int] = reader(NUMBER, "retried")(await self.send("POST", "/v1/jobs/retry", json=body))
        return retried["retried"]

    async def scopes(
        self,
        agent: str = "",
        *,
        search: str = "",
        order: ScopeOrder | str = "recent",
        cursor: str | None = None,
        limit: int = 50,
    ) -> Scopes:
        """Fetch one page of the tenant's scopes: the latest written, the largest, or by name; a bound key's own."""
        chosen = {"agent": agent, "search": search, "order": order, "cursor": cursor, "limit": limit}
        parameters = {name: str(value) for name, value in chosen.items() if value}
        found: Scopes = reader(SCOPES)(await self.send("GET", "/v1/scopes", params=parameters))
        return found

    async def status(self) -> ServiceStatus:
        """Say how the server is set up, and what it still has to do for the tenant."""
        status: ServiceStatus = reader(STATUS)(await self.send("GET", "/v1/status"))
        return status

    async def ledger(self, agent: str = "", user: str = "", *, days: int = 30) -> Ledger:
        """Sum up what models cost by day, step and model: in one scope, or in all if no agent is named."""
        parameters = {"agent": agent, "user": user, "days": str(days)}
        added: Ledger = reader(LEDGER)(await self.send("GET", "/v1/ledger", params=parameters))
        return added


def name_scopes(agent: str | None, user: str | None) -> dict[str, str | Sequence[str]]:
    """Name the scopes that are meant; None is left out."""
    return {name: given for name, given in (("agent", agent), ("user", user)) if given is not None}
