"""Routes for memories: remember, load, read, forget, and let fade."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from recollect.doors.http.auth import JSON, Admitted, Agent, AskedTimes, User
from recollect.doors.http.bodies.memories import (
    AGENT,
    USER,
    Body,
    ForgetBody,
    Forgotten,
    LoadBody,
    Loaded,
    Name,
    Number,
    RecallBody,
    RecallEachBody,
    Receipts,
    Recollections,
    RememberBody,
    UserName,
)
from recollect.doors.http.problems import describe
from recollect.doors.http.reading import JsonRoute
from recollect.errors import NotFoundError
from recollect.models.memories import FadedPage, Fading, FadingRules, Judgement, Memory, Page
from recollect.models.recall import Recollection

MEMORY, PAGE, RECOLLECTION = TypeAdapter(Memory), TypeAdapter(Page), TypeAdapter(Recollection)
router = APIRouter(prefix="/v1", tags=["memories"], route_class=JsonRoute)
ID = UUID("0199a3b0-7c1e-7000-8000-5a1f0c2d9e47")
IdempotencyKey = Annotated[
    str, Header(max_length=255, description="Send the same key to store the same memories only once.")
]
MemoryId = Annotated[UUID, Path(description="The memory's id.", examples=[ID])]
FADING, FADED = TypeAdapter(Fading), TypeAdapter(FadedPage)
Days = Annotated[Number, Field(ge=0, le=36_500)]
FADED_ID = "01a1dd05-b16b-7000-b535-83c8ebea4fa9"


@router.post("/memories", status_code=201, response_model=Receipts, responses=describe(409))
async def remember(
    body: RememberBody,
    admit: Admitted,
    idempotency_key: IdempotencyKey = "",
) -> Response:
    """Store one memory of a scope, or up to 1,000 in one transaction; they are searchable when this returns."""
    mind = await admit(body.agent, body.user)
    receipts = await mind.remember(body.to_values(), idempotency_key=idempotency_key)
    return Response(Receipts(memories=receipts).model_dump_json(), 201, media_type=JSON)


@router.post("/load", status_code=201, response_model=Loaded, responses=describe(409))
async def load(
    body: LoadBody,
    admit: Admitted,
    idempotency_key: IdempotencyKey = "",
) -> Response:
    """Store up to 1,000 memories of an import in one transaction, faster than one by one; vectors follow by a job."""
    mind = await admit(body.agent, body.user)
    ids = await mind.load([memory.to_value() for memory in body.memories], idempotency_key=idempotency_key)
    return Response(Loaded(ids=ids).model_dump_json(), 201, media_type=JSON)


@router.post("/recall", response_model=Recollection, responses=describe())
async def recall(body: RecallBody, admit: Admitted) -> Response:
    """Give back the memories of a scope that a cue reminds of, best first, with each channel's part in the score."""
    mind = await admit(body.agent, body.user)
    return Response(RECOLLECTION.dump_json(await mind.recall(body.to_cue())), media_type=JSON)


@router.post("/recall-each", response_model=Recollections, responses=describe())
async def recall_each(body: RecallEachBody, admit: Admitted) -> Response:
    """Recall by several cues, one after the other or all on one snapshot; each has its own list of hits."""
    mind = await admit(body.agent, body.user)
    answers = await mind.recall_each([cue.to_cue() for cue in body.cues], isolated=body.isolated)
    return Response(Recollections(recollections=answers).model_dump_json(), media_type=JSON)


@router.get("/memories", response_model=Page, responses=describe())
async def browse(
    agent: Agent,
    admit: Admitted,
    times: AskedTimes,
    user: User = "",
    cursor: Annotated[UUID | None, Query(description="next_cursor of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=200, description="Most memories on a page.")] = 50,
) -> Response:
    """List the memories of a scope page by page, oldest first; as they were believed as of a moment, or true at one."""
    mind = await admit(agent, user)
    return Response(PAGE.dump_json(await mind.browse(cursor, limit, as_of=times.as_of, at=times.at)), media_type=JSON)


@router.get("/memories/{memory_id}", response_model=Memory, responses=describe(404))
async def get(memory_id: MemoryId, agent: Agent, admit: Admitted, user: User = "") -> Response:
    """Read one memory of a scope, in whichever version has this id."""
    mind = await admit(agent, user)
    return Response(MEMORY.dump_json(await mind.get(memory_id)), media_type=JSON)


@router.post("/forget", response_model=Forgotten, responses=describe())
async def forget(body: ForgetBody, admit: Admitted) -> Forgotten:
    """Delete memories of a scope, and everything that was derived from them, for good; unknown ids are passed over."""
    mind = await admit(body.agent, body.user)
    return Forgotten(forgotten=await mind.forget(body.ids))


@router.delete("/memories/{memory_id}", response_model=Forgotten, responses=describe(404))
async def forget_one(memory_id: MemoryId, agent: Agent, admit: Admitted, user: User = "") -> Forgotten:
    """Delete a memory of a scope, and everything that was derived from it, for good."""
    mind = await admit(agent, user)
    gone = await mind.forget([memory_id])
    if not gone:
        raise NotFoundError("There is no such memory in this scope.")
    return Forgotten(forgotten=gone)


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

    model_config = ConfigDict(json_schema_extra={"examples": [{"agent": "ada", "days": 30, "ids": [FADED_ID]}]})

    ids: list[UUID] = Field(min_length=1, max_length=1_000, description="Ids of the memories to judge.")


class RestoreBody(Body):
    """Faded memories of a scope to bring back."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"agent": "ada", "ids": [FADED_ID]}]})

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
