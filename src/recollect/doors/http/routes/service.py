"""Routes for operators: health, jobs, keys and costs."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, Field, TypeAdapter

from recollect.doors.http.auth import DOOR, JSON, Running, Secret
from recollect.doors.http.bodies.fields import USER, Body, FullName, Integer, Moment, Name, build_example_config
from recollect.doors.http.metrics import record_pool_stats, write_metrics
from recollect.doors.http.problems import PROBLEM, TITLES, Problem, document_problems, respond
from recollect.doors.http.routing import serve
from recollect.doors.http.transfers import EVENTS, answer_in_pieces, write_events
from recollect.errors import SetupError
from recollect.mind.mind import Mind
from recollect.models.service import (
    ApiKey,
    Caller,
    CostReport,
    CurrentKey,
    Job,
    JobPage,
    JobState,
    KeyBinding,
    KeyRequest,
    NewKey,
    Right,
)

JOB, JOBS = TypeAdapter(Job), TypeAdapter(JobPage)
jobs = APIRouter(prefix="/v1", tags=["jobs"])
JOB_ID = r"^[A-Za-z0-9_-]{1,64}$"
Unfinished = Literal[JobState.WAITING, JobState.RUNNING, JobState.FAILED]
JobId = Annotated[str, Path(pattern=JOB_ID, description="Job ID.", examples=["17"])]
keys = APIRouter(prefix="/v1", tags=["keys"])
HEARTBEAT_SECONDS = 5.0
ID = UUID("6f1d2c3b-8a4e-4f60-9b7a-1c2d3e4f5a6b")
LEDGER = TypeAdapter(CostReport)
ledger = APIRouter(prefix="/v1", tags=["ledger"])
Agent = Annotated[Name, Query(description="The agent. Default: all agents of your tenant.", examples=["ada"])]
changes = APIRouter(tags=["changes"])
FOLLOWED: dict[int | str, dict[str, Any]] = {200: {"content": {EVENTS: {"schema": {"type": "string"}}}}}
Since = Annotated[str, Query(max_length=100, description="Cursor to resume after. Default: from now on.")]
LastEventId = Annotated[str, Header(max_length=100, description="Same as `since`, as sent by browsers.")]
health = APIRouter(tags=["health"])
UNHEALTHY: dict[int | str, dict[str, Any]] = {
    503: {"model": Problem, "description": TITLES[503], "content": {PROBLEM: {}}}
}
MEASURED: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {}}}, **UNHEALTHY}


class AskedJobs(NamedTuple):
    """Which jobs are asked for."""

    state: JobState | None
    task: str | None
    bounds: KeyBinding


async def read_asked(
    state: Annotated[Unfinished | None, Query(description="Only jobs in this state. Default: all.")] = None,
    task: Annotated[str | None, Query(max_length=100, pattern=r"^\w*$", description="Only jobs of this task.")] = None,
    agent: Annotated[FullName | None, Query(description="Only jobs of this agent's scopes. Default: all.")] = None,
    user: Annotated[Name | None, Query(description="Only jobs of this user; the agent's own if empty.")] = None,
) -> AskedJobs:
    """Read which jobs are asked for."""
    return AskedJobs(state, task, KeyBinding(agent, user))


@jobs.get("/jobs", response_model=JobPage, responses=document_problems())
async def list_jobs(
    recollect: Running,
    shown: Secret,
    asked: Annotated[AskedJobs, Depends(read_asked)],
    cursor: Annotated[str | None, Query(pattern=JOB_ID, description="`next_cursor` of the previous page.")] = None,
    limit: Annotated[int, Query(ge=1, le=200, description="Maximum number of jobs.")] = 50,
) -> Response:
    """List waiting, running and failed jobs, newest first."""
    caller = await recollect.authenticate(shown, DOOR)
    found = await recollect.jobs.page(caller, asked.state, asked.task, cursor, limit, asked.bounds)
    return Response(JOBS.dump_json(found), media_type=JSON)


class RetryBody(Body):
    """Which failed jobs to retry: all of the tenant's, of one task, or of some scopes."""

    model_config = build_example_config({"task": "embed"})

    task: str | None = Field(None, max_length=100, pattern=r"^\w*$", description="Only jobs of this task.")
    agent: FullName | None = Field(None, description="Only jobs of this agent's scopes.")
    user: Name | None = Field(None, description="Only jobs of this user of the agent; the agent's own if empty.")


class RetryResult(BaseModel):
    """How many jobs run again."""

    retried: int


@jobs.post("/jobs/retry", response_model=RetryResult, responses=document_problems())
async def retry_jobs(body: RetryBody, recollect: Running, shown: Secret) -> RetryResult:
    """Retry failed jobs. Needs `admin`."""
    caller = await recollect.authenticate(shown, DOOR)
    bounds = KeyBinding(body.agent, body.user)
    return RetryResult(retried=await recollect.jobs.retry_many(caller, body.task or None, bounds))


@jobs.get("/jobs/{job_id}", response_model=Job, responses=document_problems(404))
async def read_job(job_id: JobId, recollect: Running, shown: Secret) -> Response:
    """Get a waiting, running or failed job. Finished jobs are deleted."""
    caller = await recollect.authenticate(shown, DOOR)
    return Response(JOB.dump_json(await recollect.jobs.read_job(caller, job_id)), media_type=JSON)


@jobs.post("/jobs/{job_id}/retry", response_model=Job, responses=document_problems(404))
async def retry_job(job_id: JobId, recollect: Running, shown: Secret) -> Response:
    """Retry a failed job. Needs `admin`."""
    caller = await recollect.authenticate(shown, DOOR)
    return Response(JOB.dump_json(await recollect.jobs.retry(caller, job_id)), media_type=JSON)


class KeyBody(Body):
    """A key to make."""

    model_config = build_example_config({"name": "web-bot", "rights": ["read", "write"]})

    name: str = Field(min_length=1, max_length=200, description="Key name, stored as the origin of its memories.")
    rights: list[Right] = Field(min_length=1, max_length=4, description="Any of read, write, admin, delegate.")
    trust: Integer = Field(50, ge=0, le=100, description="Trust of its memories. At most that of your key.")
    agent: FullName | None = Field(None, description="Bind the key to this agent. Default: any.")
    user: Name | None = Field(None, description="Bind the key to this user. Default: any; empty: the agent alone.")
    expires_at: Moment | None = Field(None, description="When it expires. Default: never.")


class Keys(BaseModel):
    """The keys of a tenant."""

    keys: list[ApiKey]


async def administrator(recollect: Running, shown: Secret) -> Caller:
    """Authenticate an administrator."""
    return await recollect.authenticate(shown, DOOR, Right.ADMIN)


async def any_caller(recollect: Running, shown: Secret) -> Caller:
    """Authenticate any API key, bound or not."""
    return await recollect.authenticate(shown, DOOR, bound=True)


Administrator = Annotated[Caller, Depends(administrator)]
AnyCaller = Annotated[Caller, Depends(any_caller)]


@keys.get("/key", response_model=CurrentKey, responses=document_problems())
async def read_own_key(caller: AnyCaller, recollect: Running) -> CurrentKey:
    """Get the permissions, binding and expiry of your API key."""
    return await recollect.current_key(caller)


@keys.post("/keys", status_code=201, response_model=NewKey, responses=document_problems())
async def create_key(body: KeyBody, caller: AnyCaller, recollect: Running) -> NewKey:
    """Create an API key. With `delegate`, for one scope and one day. The secret is shown once."""
    bounds = KeyBinding(body.agent, body.user)
    wanted = KeyRequest(body.name, frozenset(body.rights), body.trust, bounds, body.expires_at)
    return NewKey(*await recollect.make_key(caller, wanted))


@keys.get("/keys", response_model=Keys, responses=document_problems())
async def list_keys(caller: Administrator, recollect: Running) -> Keys:
    """List API keys, including revoked ones."""
    return Keys(keys=await recollect.list_keys(caller))


@keys.delete("/keys/{key_id}", response_model=ApiKey, responses=document_problems(404))
async def revoke_key(
    key_id: Annotated[UUID, Path(description="The key's id.", examples=[ID])],
    caller: AnyCaller,
    recollect: Running,
) -> ApiKey:
    """Revoke an API key."""
    return await recollect.revoke_key(caller, key_id)


@ledger.get("/ledger", response_model=CostReport, responses=document_problems())
async def read_ledger(
    recollect: Running,
    shown: Secret,
    agent: Agent = "",
    user: Annotated[Name, Query(description=USER, examples=["zhang-wei"])] = "",
    days: Annotated[int, Query(ge=1, le=366, description="Number of days, including today.")] = 30,
) -> Response:
    """Get model costs by day, step and model, and today's remaining budget."""
    caller = await recollect.authenticate(shown, DOOR, bound=True)
    found = await recollect.ledger.read_costs(caller, agent, user, days=days)
    return Response(LEDGER.dump_json(found), media_type="application/json")


@serve(changes, "changes", errors=(410,), gives=Response, response_class=Response, responses=FOLLOWED)
async def follow_changes(mind: Mind, request: Request, since: Since = "", last_event_id: LastEventId = "") -> Response:
    """Send changes as server-sent events until the caller leaves, its key ends, or the server stops."""
    heartbeat = min(HEARTBEAT_SECONDS, mind.access.deadline_seconds / 2)
    events = write_events(mind.changes(since or last_event_id), request.app.state.draining, heartbeat)
    return await answer_in_pieces(events, EVENTS, {"X-Accel-Buffering": "no"})


class Health(BaseModel):
    """The answer of a healthy service."""

    status: Literal["ok"] = "ok"
    by_words: str | None = Field(default=None, description="Why recall uses words only, if it does.")


@health.get("/health/live", response_model_exclude_none=True)
async def live() -> Health:
    """Liveness check."""
    return Health()


@health.get("/health/ready", response_model=Health, response_model_exclude_none=True, responses=UNHEALTHY)
async def ready(recollect: Running) -> Health | Response:
    """Readiness check: database, schema and embedder."""
    try:
        by_words = await recollect.ready()
    except SetupError as problem:
        # Requests are answered 500 then, so that clients do not retry; here 503 is the usual way to say "not ready".
        return respond(503, problem.code, str(problem))
    return Health(by_words=by_words or None)


@health.get("/metrics", response_class=Response, responses=MEASURED)
async def metrics(recollect: Running) -> Response:
    """Prometheus metrics."""
    record_pool_stats(recollect.pool_counters, at_once=True)
    mirrors = await recollect.operator.mirrors.status(probe=False)
    counts, cold = await recollect.jobs.counts_by_server(), await recollect.operator.cold.stats()
    return Response(write_metrics(counts, mirrors, cold), media_type=CONTENT_TYPE_LATEST)
