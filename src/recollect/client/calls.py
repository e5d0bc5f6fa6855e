"""Calls of the SDK to a server's operations, by the table of operations; and calls about a tenant."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

import pydantic

from recollect import models
from recollect.client.operations import OPERATIONS
from recollect.loading import load
from recollect.misspelt import name_arguments

if TYPE_CHECKING:
    from recollect.models.agents import Tuning
    from recollect.models.conversations import PurgeReceiptPage
    from recollect.models.service import CostReport, Job, JobPage, JobState, ScopeOrder, ScopePage, ServiceStatus


class RequestSender(Protocol):
    """Anything that sends requests to a server: a client."""

    async def send(self, method: str, path: str, **content: Any) -> bytes:  # noqa: ANN401 - the HTTP library's own
        """Send a request, and retry where the server is unavailable; return the body."""
        ...

    async def send_once(self, method: str, path: str, seconds: float, **content: Any) -> bytes:  # noqa: ANN401
        """Send a request that must not be repeated, wait at most `seconds` for the answer, and return its body."""
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

    client: RequestSender
    agent: str
    user: str

    def __init_subclass__(cls) -> None:
        name_arguments(cls)

    async def call(self, key: str, **arguments: object) -> Any:  # noqa: ANN401 - what the operation gives
        """Ask the server for an operation, and read its answer."""
        method, path, content = build_request(self, key, arguments)
        return parse_answer(key, await self.client.send(method, path, **content))


@dataclass(frozen=True, slots=True)
class ConversationPart(RemoteView):
    """A conversation on a server."""

    conversation: str


def build_request(view: RemoteView, key: str, arguments: Mapping[str, object]) -> tuple[str, str, dict[str, Any]]:
    """Build a request: its method, its path, and its content."""
    written: tuple[str, str, dict[str, Any]] = load("recollect.client.bodies").write(view, key, arguments)
    return written


def parse_answer(key: str, answer: bytes) -> Any:  # noqa: ANN401 - what the operation gives
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


JOB, JOBS, LEDGER = (lambda: models.Job), (lambda: models.JobPage), (lambda: models.CostReport)
NUMBER: Callable[[], Any] = lambda: int  # noqa: E731 - a type, like the others
SCOPES, STATUS = (lambda: models.ScopePage), (lambda: models.ServiceStatus)
RECEIPTS, TUNINGS = (lambda: models.PurgeReceiptPage), (lambda: list[models.Tuning])
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
    ) -> JobPage:
        """Fetch one page of the tenant's unfinished or failed jobs, the newest first; of some scopes if named."""
        chosen = {"state": state, "task": task, "cursor": cursor, "limit": limit}
        parameters = name_scopes(agent, user) | {name: str(value) for name, value in chosen.items() if value}
        found: JobPage = reader(JOBS)(await self.send("GET", "/v1/jobs", params=parameters))
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
    ) -> ScopePage:
        """Fetch one page of the tenant's scopes: the latest written, the largest, or by name; a bound key's own."""
        chosen = {"agent": agent, "search": search, "order": order, "cursor": cursor, "limit": limit}
        parameters = {name: str(value) for name, value in chosen.items() if value}
        found: ScopePage = reader(SCOPES)(await self.send("GET", "/v1/scopes", params=parameters))
        return found

    async def status(self) -> ServiceStatus:
        """Return how the server is set up, and the work that is waiting for the tenant."""
        status: ServiceStatus = reader(STATUS)(await self.send("GET", "/v1/status"))
        return status

    async def tune(self, agent: str, *, apply: bool = False) -> list[Tuning]:
        """Learn an agent's ranking weights from feedback, and apply them if they rank better and `apply` is set."""
        answer = await self.send("POST", "/v1/tune", json={"agent": agent, "apply": apply})
        learned: dict[str, list[Tuning]] = reader(TUNINGS, "tunings")(answer)
        return learned["tunings"]

    async def receipts(
        self,
        agent: str | None = None,
        user: str | None = None,
        *,
        conversation: str = "",
        cursor: str | None = None,
        limit: int = 50,
    ) -> PurgeReceiptPage:
        """Fetch one page of what purges of conversations removed, the latest first; the tenant's needs `admin`."""
        chosen = {"conversation": conversation, "cursor": cursor, "limit": limit}
        parameters = name_scopes(agent, user) | {name: str(value) for name, value in chosen.items() if value}
        found: PurgeReceiptPage = reader(RECEIPTS)(await self.send("GET", "/v1/receipts", params=parameters))
        return found

    async def ledger(self, agent: str = "", user: str = "", *, days: int = 30) -> CostReport:
        """Sum up what models cost by day, step and model: in one scope, or in all if no agent is named."""
        parameters = {"agent": agent, "user": user, "days": str(days)}
        added: CostReport = reader(LEDGER)(await self.send("GET", "/v1/ledger", params=parameters))
        return added


def name_scopes(agent: str | None, user: str | None) -> dict[str, str | Sequence[str]]:
    """Name the scopes that are meant; None is left out."""
    return {name: given for name, given in (("agent", agent), ("user", user)) if given is not None}
