"""Routes for operators: is it alive, is it ready, how is it doing."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Response
from prometheus_client import CONTENT_TYPE_LATEST, Gauge, generate_latest
from pydantic import BaseModel

from recollect.doors.http.door import running
from recollect.doors.http.problems import PROBLEM, TITLES, Problem, respond
from recollect.errors import SetupError
from recollect.mind.service import Recollect

router = APIRouter(tags=["health"])
POOL = Gauge("recollect_pool", "Connection pool counters.", ["counter"])
JOBS = Gauge("recollect_jobs", "Jobs by task and status.", ["task", "status"])
SICK: dict[int | str, dict[str, Any]] = {503: {"model": Problem, "description": TITLES[503], "content": {PROBLEM: {}}}}
MEASURED: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {}}}, **SICK}


class Health(BaseModel):
    """The answer of a healthy service."""

    status: Literal["ok"] = "ok"


@router.get("/health/live")
async def live() -> Health:
    """Tell that the process answers."""
    return Health()


@router.get("/health/ready", response_model=Health, responses=SICK)
async def ready(recollect: Annotated[Recollect, Depends(running)]) -> Health | Response:
    """Tell that the database answers too, and that its schema fits this program."""
    try:
        await recollect.ready()
    except SetupError as problem:
        # Requests are answered 500 then, so that nobody tries again; here 503 is the usual way to say "not ready".
        return respond(503, problem.code, str(problem))
    return Health()


@router.get("/metrics", response_class=Response, responses=MEASURED)
async def metrics(recollect: Annotated[Recollect, Depends(running)]) -> Response:
    """Give the counters that Prometheus collects."""
    for counter, value in recollect.pool_counters().items():
        POOL.labels(counter).set(value)
    JOBS.clear()
    for task, status, jobs in await recollect.jobs.counts():
        JOBS.labels(task, status).set(jobs)
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
