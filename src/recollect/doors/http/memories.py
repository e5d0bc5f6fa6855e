"""Routes for memories: remember, load, recall, read, forget."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Path, Query, Response
from pydantic import TypeAdapter

from recollect.doors.http.bodies import (
    AGENT,
    USER,
    ForgetBody,
    Forgotten,
    LoadBody,
    Loaded,
    Name,
    RecallBody,
    RecallEachBody,
    Receipts,
    Recollections,
    RememberBody,
    UserName,
)
from recollect.doors.http.door import Admission, admission
from recollect.doors.http.problems import describe
from recollect.doors.http.reading import JsonRoute
from recollect.doors.http.times import AskedTimes
from recollect.errors import NotFoundError
from recollect.models.memories import Memory, Page
from recollect.models.recall import Recollection

JSON = "application/json"
MEMORY, PAGE, RECOLLECTION = TypeAdapter(Memory), TypeAdapter(Page), TypeAdapter(Recollection)
router = APIRouter(prefix="/v1", tags=["memories"], route_class=JsonRoute)
Admitted = Annotated[Admission, Depends(admission)]
Agent = Annotated[Name, Query(description=AGENT, examples=["ada"])]
User = Annotated[UserName, Query(description=USER, examples=["zhang-wei"])]
ID = UUID("0199a3b0-7c1e-7000-8000-5a1f0c2d9e47")
IdempotencyKey = Annotated[
    str, Header(max_length=255, description="Send the same key to store the same memories only once.")
]
MemoryId = Annotated[UUID, Path(description="The memory's id.", examples=[ID])]


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
