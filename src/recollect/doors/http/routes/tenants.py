"""Routes for a tenant: its scopes, the weights of its agents, the receipts of purges, and the service's status."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel, Field, TypeAdapter

from recollect.doors.http.auth import DOOR, JSON, Running, Secret
from recollect.doors.http.bodies.fields import AgentBody, ConversationName, FullName, Name, build_example_config
from recollect.doors.http.problems import document_problems
from recollect.models.agents import Tuning
from recollect.models.conversations import PurgeReceiptPage
from recollect.models.service import Caller, KeyBinding, ScopeOrder, ScopePage, ScopeQuery, ServiceStatus

router = APIRouter(prefix="/v1", tags=["tenant"])
SCOPES, STATUS, RECEIPTS = TypeAdapter(ScopePage), TypeAdapter(ServiceStatus), TypeAdapter(PurgeReceiptPage)
Page = Annotated[str, Query(max_length=300, description="`next_cursor` of the previous page.")]


async def any_caller(recollect: Running, shown: Secret) -> Caller:
    """Authenticate any API key, bound or not."""
    return await recollect.authenticate(shown, DOOR, bound=True)


async def read_query(
    agent: Annotated[Name, Query(description="Only scopes of this agent. Default: all.")] = "",
    search: Annotated[Name, Query(description="Only scopes with this in the name of agent or user.")] = "",
    order: Annotated[ScopeOrder, Query(description="recent, size or name.")] = ScopeOrder.RECENT,
) -> ScopeQuery:
    """Read which scopes are asked for."""
    return ScopeQuery(agent, search, order)


async def read_bounds(
    agent: Annotated[FullName | None, Query(description="The agent. Default: the whole tenant.")] = None,
    user: Annotated[Name | None, Query(description="The user. Default: the agent's own memories.")] = None,
) -> KeyBinding:
    """Read which scope is asked for."""
    return KeyBinding(agent, user)


AnyCaller = Annotated[Caller, Depends(any_caller)]


class TuneBody(AgentBody):
    """An agent to tune."""

    model_config = build_example_config({"agent": "ada"})

    apply: bool = Field(default=False, strict=True, description="Apply the learned weights if they are not worse.")


class TuneAnswer(BaseModel):
    """The learned weights: of the stream channel, of the default recall, or of both."""

    tunings: list[Tuning]


@router.get("/scopes", response_model=ScopePage, responses=document_problems())
async def list_scopes(
    recollect: Running,
    caller: AnyCaller,
    wanted: Annotated[ScopeQuery, Depends(read_query)],
    cursor: Page = "",
    limit: Annotated[int, Query(ge=1, le=200, description="Maximum number of scopes.")] = 50,
) -> Response:
    """List scopes, most recently written first."""
    return Response(SCOPES.dump_json(await recollect.tenant.scopes(caller, wanted, cursor, limit)), media_type=JSON)


@router.get("/status", response_model=ServiceStatus, responses=document_problems())
async def read_status(recollect: Running, caller: AnyCaller) -> Response:
    """Get the configuration and pending work."""
    return Response(STATUS.dump_json(await recollect.tenant.status(caller)), media_type=JSON)


@router.post("/tune", response_model=TuneAnswer, responses=document_problems())
async def tune(body: TuneBody, recollect: Running, caller: AnyCaller) -> TuneAnswer:
    """Learn an agent's ranking weights from feedback of all its users. Needs `admin` to apply them."""
    return TuneAnswer(tunings=await recollect.tenant.tune(caller, body.agent, apply=body.apply))


@router.get("/receipts", response_model=PurgeReceiptPage, responses=document_problems())
async def list_all_receipts(
    recollect: Running,
    caller: AnyCaller,
    bounds: Annotated[KeyBinding, Depends(read_bounds)],
    conversation: Annotated[ConversationName, Query(description="Only this conversation. Default: all.")] = "",
    cursor: Page = "",
    limit: Annotated[int, Query(ge=1, le=200, description="Maximum number of receipts.")] = 50,
) -> Response:
    """List purge receipts of a conversation, of a scope or, with `admin`, of the tenant."""
    found = await recollect.tenant.receipts(caller, bounds, cursor, limit, conversation=conversation)
    return Response(RECEIPTS.dump_json(found), media_type=JSON)
