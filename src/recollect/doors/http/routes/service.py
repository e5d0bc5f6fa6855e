"""Routes for operators: health, jobs, keys and costs."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, Field, TypeAdapter

from recollect.doors.http.auth import DOOR, JSON, Running, Secret
from recollect.doors.http.bodies.fields import USER, Body, FullName, Integer, Moment, Name, show
from recollect.doors.http.metrics import note_pool, write_metrics
from recollect.doors.http.problems import PROBLEM, TITLES, Problem, describe, respond
from recollect.doors.http.serve import serve
from recollect.doors.http.transfers import EVENTS, answer_in_pieces, write_events
from recollect.errors import SetupError
from recollect.mind.mind import Mind
from recollect.models.service import (
    ApiKey,
    Bounds,
    Caller,
    Job,
    Jobs,
    JobState,
    KeyRequest,
    Ledger,
    NewKey,
    OwnKey,
    Right,
)

JOB, JOBS = TypeAdapter(Job), TypeAdapter(Jobs)
jobs = APIRouter(prefix="/v1", tags=["jobs"])
JOB_ID = r"^[A-Za-z0-9_-]{1,64}$"
Unfinished = Literal[JobState.WAITING, JobState.RUNNING, JobState.FAILED]
JobId = Annotated[str, Path(pattern=JOB_ID, description="The job's id.", examples=["17"])]
keys = APIRouter(prefix="/v1", tags=["keys"])
HEARTBEAT_SECONDS = 5.0
ID = UUID("6f1d2c3b-8a4e-4f60-9b7a-1c2d3e4f5a6b")
LEDGER = TypeAdapter(Ledger)
ledger = APIRouter(prefix="/v1", tags=["ledger"])
Agent = Annotated[Name, Query(description="Whose memory it is; all of your tenant's if left out.", examples=["ada"])]
changes = APIRouter(tags=["changes"])
FOLLOWED: dict[int | str, dict[str, Any]] = {200: {"content": {EVENTS: {"schema": {"type": "string"}}}}}
Since = Annotated[
    str, Query(max_length=100, description="The cursor of a change: only what followed it. From now on if left out.")
]
LastEventId = Annotated[str, Header(max_length=100, description="The same, as browsers send it.")]
health = APIRouter(tags=["health"])
SICK: dict[int | str, dict[str, Any]] = {503: {"model": Problem, "description": TITLES[503], "content": {PROBLEM: {}}}}
MEASURED: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {}}}, **SICK}


class AskedJobs(NamedTuple):
    """Which jobs are asked for."""

    state: JobState | None
    task: str | None
    bounds: Bounds


async def read_asked(
    state: Annotated[Unfinished | None, Query(description="Only jobs in this state; all three if left out.")] = None,
    task: Annotated[str | None, Query(max_length=100, pattern=r"^\w*$", description="Only jobs of this task.")] = None,
    agent: Annotated[FullName | None, Query(description="Only jobs of this agent's scopes; all if left out.")] = None,
    user: Annotated[Name | None, Query(description="Only jobs of this user; the agent's own if empty.")] = None,
) -> AskedJobs:
    """Read which jobs are asked for."""
    return AskedJobs(state, task, Bounds(agent, user))


@jobs.get("/jobs", response_model=Jobs, responses=describe())
async def list_jobs(
    recollect: Running,
    shown: Secret,
    asked: Annotated[AskedJobs, Depends(read_asked)],
    cursor: Annotated[str | None, Query(pattern=JOB_ID, description="next_cursor of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=200, description="Most jobs on a page.")] = 50,
) -> Response:
    """List your tenant's jobs that wait, run or have failed, the newest first."""
    caller = await recollect.authenticate(shown, DOOR)
    found = await recollect.jobs.page(caller, asked.state, asked.task, cursor, limit, asked.bounds)
    return Response(JOBS.dump_json(found), media_type=JSON)


class RetryBody(Body):
    """Which failed jobs to retry: all of the tenant's, of one task, or of some scopes."""

    model_config = show({"task": "embed"})

    task: str | None = Field(None, max_length=100, pattern=r"^\w*$", description="Only jobs of this task.")
    agent: FullName | None = Field(None, description="Only jobs of this agent's scopes.")
    user: Name | None = Field(None, description="Only jobs of this user of the agent; the agent's own if empty.")


class Retried(BaseModel):
    """How many jobs run again."""

    retried: int


@jobs.post("/jobs/retry", response_model=Retried, responses=describe())
async def retry_jobs(body: RetryBody, recollect: Running, shown: Secret) -> Retried:
    """Retry the failed jobs of your tenant, for holders of the right `admin`."""
    caller = await recollect.authenticate(shown, DOOR)
    bounds = Bounds(body.agent, body.user)
    return Retried(retried=await recollect.jobs.retry_many(caller, body.task or None, bounds))


@jobs.get("/jobs/{job_id}", response_model=Job, responses=describe(404))
async def read_job(job_id: JobId, recollect: Running, shown: Secret) -> Response:
    """Read one job of your tenant that waits, runs or has failed; one that has succeeded is deleted."""
    caller = await recollect.authenticate(shown, DOOR)
    return Response(JOB.dump_json(await recollect.jobs.read(caller, job_id)), media_type=JSON)


@jobs.post("/jobs/{job_id}/retry", response_model=Job, responses=describe(404))
async def retry_job(job_id: JobId, recollect: Running, shown: Secret) -> Response:
    """Retry a failed job of your tenant, for holders of the right `admin`; any other is left as it is."""
    caller = await recollect.authenticate(shown, DOOR)
    return Response(JOB.dump_json(await recollect.jobs.retry(caller, job_id)), media_type=JSON)


class KeyBody(Body):
    """A key to make."""

    model_config = show({"name": "web-bot", "rights": ["read", "write"]})

    name: str = Field(min_length=1, max_length=200, description="Shown as the origin of what the key remembers.")
    rights: list[Right] = Field(min_length=1, max_length=4, description="Any of read, write, admin, delegate.")
    trust: Integer = Field(50, ge=0, le=100, description="How far its memories are trusted; at most your own key's.")
    agent: FullName | None = Field(None, description="The only agent that it may name; any if left out.")
    user: Name | None = Field(
        None, description="The only user of that agent that it may name; any if left out, the agent alone if empty."
    )
    expires_at: Moment | None = Field(None, description="From when on it is refused; never if left out.")


class Keys(BaseModel):
    """The keys of a tenant."""

    keys: list[ApiKey]


async def administrator(recollect: Running, shown: Secret) -> Caller:
    """Let only administrators in."""
    return await recollect.authenticate(shown, DOOR, Right.ADMIN)


async def any_caller(recollect: Running, shown: Secret) -> Caller:
    """Let everybody in who shows a key, bound ones too."""
    return await recollect.authenticate(shown, DOOR, bound=True)


Administrator = Annotated[Caller, Depends(administrator)]
AnyCaller = Annotated[Caller, Depends(any_caller)]


@keys.get("/key", response_model=OwnKey, responses=describe())
async def read_own_key(caller: AnyCaller, recollect: Running) -> OwnKey:
    """Tell what the key that you show may do, for which scopes, and until when."""
    return await recollect.own_key(caller)


@keys.post("/keys", status_code=201, response_model=NewKey, responses=describe())
async def create_key(body: KeyBody, caller: AnyCaller, recollect: Running) -> NewKey:
    """Make a key for your tenant, or for one scope and a day with `delegate`; the secret is shown only now."""
    bounds = Bounds(body.agent, body.user)
    wanted = KeyRequest(body.name, frozenset(body.rights), body.trust, bounds, body.expires_at)
    return NewKey(*await recollect.make_key(caller, wanted))


@keys.get("/keys", response_model=Keys, responses=describe())
async def list_keys(caller: Administrator, recollect: Running) -> Keys:
    """List the keys of your tenant, revoked ones included; of those that other keys made, only what is still valid."""
    return Keys(keys=await recollect.list_keys(caller))


@keys.delete("/keys/{key_id}", response_model=ApiKey, responses=describe(404))
async def revoke_key(
    key_id: Annotated[UUID, Path(description="The key's id.", examples=[ID])],
    caller: AnyCaller,
    recollect: Running,
) -> ApiKey:
    """Revoke a key of your tenant, or one that your key made; the next request that shows it is refused."""
    return await recollect.revoke_key(caller, key_id)


@ledger.get("/ledger", response_model=Ledger, responses=describe())
async def read_ledger(
    recollect: Running,
    shown: Secret,
    agent: Agent = "",
    user: Annotated[Name, Query(description=USER, examples=["zhang-wei"])] = "",
    days: Annotated[int, Query(ge=1, le=366, description="How many days to look back, today included.")] = 30,
) -> Response:
    """Sum up what models cost by day, step and model, the latest day first, and what is left of today."""
    caller = await recollect.authenticate(shown, DOOR, bound=True)
    found = await recollect.ledger.read(caller, agent, user, days=days)
    return Response(LEDGER.dump_json(found), media_type="application/json")


@serve(changes, "changes", errors=(410,), gives=Response, response_class=Response, responses=FOLLOWED)
async def follow_changes(mind: Mind, request: Request, since: Since = "", last_event_id: LastEventId = "") -> Response:
    """Send changes as server-sent events until the caller leaves, its key ends, or the server stops."""
    heartbeat = min(HEARTBEAT_SECONDS, mind.access.deadline_seconds / 2)
    events = write_events(mind.changes(since or last_event_id), request.app.state.draining, heartbeat)
    return await answer_in_pieces(events, EVENTS, {"Cache-Control": "no-store", "X-Accel-Buffering": "no"})


class Health(BaseModel):
    """The answer of a healthy service."""

    status: Literal["ok"] = "ok"
    by_words: str | None = Field(default=None, description="Why recall goes by words alone here, if it does.")


@health.get("/health/live", response_model_exclude_none=True)
async def live() -> Health:
    """Tell that the process answers."""
    return Health()


@health.get("/health/ready", response_model=Health, response_model_exclude_none=True, responses=SICK)
async def ready(recollect: Running) -> Health | Response:
    """Tell that the database answers too, that its schema fits this program, and if recall lacks its vectors."""
    try:
        by_words = await recollect.ready()
    except SetupError as problem:
        # Requests are answered 500 then, so that clients do not retry; here 503 is the usual way to say "not ready".
        return respond(503, problem.code, str(problem))
    return Health(by_words=by_words or None)


@health.get("/metrics", response_class=Response, responses=MEASURED)
async def metrics(recollect: Running) -> Response:
    """Return the counters that Prometheus collects."""
    note_pool(recollect.pool_counters, at_once=True)
    mirrors = await recollect.operator.mirrors.status(probe=False)
    counts, cold = await recollect.jobs.counts_by_server(), await recollect.operator.cold.standing()
    return Response(write_metrics(counts, mirrors, cold), media_type=CONTENT_TYPE_LATEST)
