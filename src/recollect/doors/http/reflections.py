"""Routes for what is thought about later: reflect, and see what came of it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from recollect.doors.http.bodies import AGENT, USER, Body, Moment, Name, UserName
from recollect.doors.http.door import Admission, admission
from recollect.doors.http.jobs import JobId
from recollect.doors.http.problems import describe
from recollect.models.agents import ReflectionProgress

JSON = "application/json"
PROGRESS = TypeAdapter(ReflectionProgress)
router = APIRouter(prefix="/v1", tags=["memories"])
Admitted = Annotated[Admission, Depends(admission)]
Agent = Annotated[Name, Query(description=AGENT, examples=["ada"])]
User = Annotated[UserName, Query(description=USER, examples=["zhang-wei"])]


class ReflectBody(Body):
    """A scope to reflect in."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"agent": "ada", "user": "zhang-wei"}]})

    agent: Name = Field(description=AGENT)
    user: UserName = Field("", description=USER)
    now: Moment | None = Field(None, description="The moment to reflect at, with an offset; the present if left out.")


class Deferred(BaseModel):
    """What was left to the worker."""

    job: int = Field(description="The job's number; the same one while it waits.")


@router.post("/reflect", status_code=202, response_model=Deferred, responses=describe(404))
async def reflect(body: ReflectBody, admit: Admitted) -> Deferred:
    """Let the agent think about what has gathered in a scope: a job asks the chat model and remembers the thoughts."""
    mind = await admit(body.agent, body.user)
    return Deferred(job=await mind.reflect_later(body.now))


@router.get("/reflections/{job_id}", response_model=ReflectionProgress, responses=describe(404))
async def read_reflection(job_id: JobId, agent: Agent, admit: Admitted, user: User = "") -> Response:
    """Say how far a reflection is that was left to the worker, and once it has succeeded what came of it."""
    mind = await admit(agent, user)
    return Response(PROGRESS.dump_json(await mind.reflection(job_id)), media_type=JSON)
