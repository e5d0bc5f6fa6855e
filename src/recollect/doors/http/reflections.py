"""Routes for what is thought about later: reflect."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import BaseModel, ConfigDict, Field

from recollect.doors.http.bodies import AGENT, USER, Body, Name, UserName
from recollect.doors.http.door import Admission, admission
from recollect.doors.http.problems import describe

router = APIRouter(prefix="/v1", tags=["memories"])
Admitted = Annotated[Admission, Depends(admission)]


class ReflectBody(Body):
    """A scope to reflect in."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"agent": "ada", "user": "zhang-wei"}]})

    agent: Name = Field(description=AGENT)
    user: UserName = Field("", description=USER)


class Deferred(BaseModel):
    """What was left to the worker."""

    job: int = Field(description="The job's number; the same one while it waits.")


@router.post("/reflect", status_code=202, response_model=Deferred, responses=describe(404))
async def reflect(body: ReflectBody, admit: Admitted) -> Deferred:
    """Let the agent think about what has gathered in a scope: a job asks the chat model and remembers the thoughts."""
    mind = await admit(body.agent, body.user)
    return Deferred(job=await mind.reflect_later())
