"""Routes for what was put off: see a tenant's jobs, and let a failed one be tried again."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import TypeAdapter

from recollect.doors.http.door import DOOR, running, secret
from recollect.doors.http.problems import describe
from recollect.mind.service import Recollect
from recollect.models.service import Job, Jobs, JobState

JSON = "application/json"
JOB, JOBS = TypeAdapter(Job), TypeAdapter(Jobs)
router = APIRouter(prefix="/v1", tags=["jobs"])
LARGEST = 2**63 - 1
Running = Annotated[Recollect, Depends(running)]
Secret = Annotated[str, Depends(secret)]
Unfinished = Literal[JobState.WAITING, JobState.RUNNING, JobState.FAILED]
JobId = Annotated[int, Path(ge=1, le=LARGEST, description="The job's number.", examples=[17])]


@router.get("/jobs", response_model=Jobs, responses=describe())
async def list_jobs(
    recollect: Running,
    shown: Secret,
    state: Annotated[Unfinished | None, Query(description="Only jobs in this state; all three if left out.")] = None,
    task: Annotated[str | None, Query(max_length=100, pattern=r"^\w*$", description="Only jobs of this task.")] = None,
    cursor: Annotated[int | None, Query(ge=1, le=LARGEST, description="next_cursor of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=200, description="Most jobs on a page.")] = 50,
) -> Response:
    """List your tenant's jobs that wait, run or have failed, the newest first."""
    caller = await recollect.authenticate(shown, DOOR)
    return Response(JOBS.dump_json(await recollect.jobs.page(caller, state, task, cursor, limit)), media_type=JSON)


@router.get("/jobs/{job_id}", response_model=Job, responses=describe(404))
async def read_job(job_id: JobId, recollect: Running, shown: Secret) -> Response:
    """Read one job of your tenant; what has succeeded is kept for a day."""
    caller = await recollect.authenticate(shown, DOOR)
    return Response(JOB.dump_json(await recollect.jobs.read(caller, job_id)), media_type=JSON)


@router.post("/jobs/{job_id}/retry", response_model=Job, responses=describe(404))
async def retry_job(job_id: JobId, recollect: Running, shown: Secret) -> Response:
    """Let a failed job of your tenant run again, for holders of the right `admin`; any other is left as it is."""
    caller = await recollect.authenticate(shown, DOOR)
    return Response(JOB.dump_json(await recollect.jobs.retry(caller, job_id)), media_type=JSON)
