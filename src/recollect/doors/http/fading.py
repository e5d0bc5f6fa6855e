"""Routes for what fades: what would and why, what has, and the way back."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from recollect.doors.http.bodies import AGENT, USER, Body, Name, Number, UserName
from recollect.doors.http.door import Admission, admission
from recollect.doors.http.problems import describe
from recollect.models.memories import FadedPage, Fading, FadingRules, Judgement

JSON = "application/json"
FADING, FADED = TypeAdapter(Fading), TypeAdapter(FadedPage)
router = APIRouter(prefix="/v1", tags=["memories"])
Admitted = Annotated[Admission, Depends(admission)]
Agent = Annotated[Name, Query(description=AGENT, examples=["ada"])]
User = Annotated[UserName, Query(description=USER, examples=["zhang-wei"])]
Days = Annotated[Number, Field(ge=0, le=36_500)]
ID = "01a1dd05-b16b-7000-b535-83c8ebea4fa9"


class RulesBody(Body):
    """A scope, and how its memories fade; what is left out is as the agent's profile has it, or the service."""

    agent: Name = Field(description=AGENT)
    user: UserName = Field("", description=USER)
    days: Days | None = Field(
        None, description="Days over which a memory fades that nobody recalls; 0: only what expires fades."
    )
    threshold: Annotated[Number, Field(ge=0, le=1)] | None = Field(
        None, description="What scores above it fades; 0.7 if nobody says."
    )
    fact_days: Days | None = Field(
        None, description="How many days old a fact may grow; any age if 0, and if nobody says."
    )

    def to_rules(self) -> FadingRules:
        """Turn the body into a value."""
        return FadingRules(self.days, self.threshold, self.fact_days)


class FadeBody(RulesBody):
    """A pass over a scope."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"agent": "ada", "days": 30, "dry_run": True}]})

    dry_run: bool = Field(default=False, strict=True, description="Only say what would fade.")
    cursor: UUID | None = Field(None, description="next_cursor of the call before.")


class ExplainBody(RulesBody):
    """Memories of a scope to judge."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"agent": "ada", "days": 30, "ids": [ID]}]})

    ids: list[UUID] = Field(min_length=1, max_length=1_000, description="Ids of the memories to judge.")


class RestoreBody(Body):
    """Faded memories of a scope to bring back."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"agent": "ada", "ids": [ID]}]})

    agent: Name = Field(description=AGENT)
    user: UserName = Field("", description=USER)
    ids: list[UUID] = Field(min_length=1, max_length=1_000, description="Ids of the memories to bring back.")


class Judgements(BaseModel):
    """What was decided about memories that take part in recall."""

    judgements: list[Judgement]


class Restored(BaseModel):
    """Which memories are back."""

    restored: list[UUID]


@router.post("/fading", response_model=Fading, responses=describe())
async def fade(body: FadeBody, admit: Admitted) -> Response:
    """Let memories fade that have decayed or expired, or only say which would; a large scope takes several calls."""
    mind = await admit(body.agent, body.user)
    report = await mind.fading.fade(body.to_rules(), dry_run=body.dry_run, cursor=body.cursor)
    return Response(FADING.dump_json(report), media_type=JSON)


@router.post("/fading/explain", response_model=Judgements, responses=describe())
async def explain_fading(body: ExplainBody, admit: Admitted) -> Judgements:
    """Say of memories whether they would fade now, and why; what does not take part in recall is left out."""
    mind = await admit(body.agent, body.user)
    return Judgements(judgements=await mind.fading.explain(body.ids, body.to_rules()))


@router.get("/faded", response_model=FadedPage, responses=describe())
async def list_faded(
    agent: Agent,
    admit: Admitted,
    user: User = "",
    cursor: Annotated[UUID | None, Query(description="next_cursor of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=200, description="Most memories on a page.")] = 50,
) -> Response:
    """List what has faded in a scope, the oldest memory first, each with its reason."""
    mind = await admit(agent, user)
    return Response(FADED.dump_json(await mind.fading.faded(cursor, limit)), media_type=JSON)


@router.post("/faded/restore", response_model=Restored, responses=describe())
async def restore_faded(body: RestoreBody, admit: Admitted) -> Restored:
    """Bring faded memories of a scope back as they were; what has not faded is passed over."""
    mind = await admit(body.agent, body.user)
    return Restored(restored=await mind.fading.restore(body.ids))
