"""Routes for what a tenant has: its scopes, the receipts of purges, and how the service stands for it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from pydantic import TypeAdapter

from recollect.doors.http.auth import DOOR, JSON, Running, Secret
from recollect.doors.http.bodies.fields import FullName, Name
from recollect.doors.http.problems import describe
from recollect.models.conversations import PurgeReceipts
from recollect.models.service import Bounds, Caller, ScopeOrder, ScopeQuery, Scopes, ServiceStatus

router = APIRouter(prefix="/v1", tags=["tenant"])
SCOPES, STATUS, RECEIPTS = TypeAdapter(Scopes), TypeAdapter(ServiceStatus), TypeAdapter(PurgeReceipts)
Page = Annotated[str, Query(max_length=300, description="next_cursor of the page before.")]


async def any_caller(recollect: Running, shown: Secret) -> Caller:
    """Let in whoever has a key, bound or not."""
    return await recollect.authenticate(shown, DOOR, bound=True)


async def read_query(
    agent: Annotated[Name, Query(description="Only scopes of this agent; all if left out.")] = "",
    search: Annotated[Name, Query(description="Only scopes with this in the name of agent or user.")] = "",
    order: Annotated[ScopeOrder, Query(description="recent, size or name.")] = ScopeOrder.RECENT,
) -> ScopeQuery:
    """Read which scopes are asked for."""
    return ScopeQuery(agent, search, order)


AnyCaller = Annotated[Caller, Depends(any_caller)]


@router.get("/scopes", response_model=Scopes, responses=describe())
async def list_scopes(
    recollect: Running,
    caller: AnyCaller,
    wanted: Annotated[ScopeQuery, Depends(read_query)],
    cursor: Page = "",
    limit: Annotated[int, Query(ge=1, le=200, description="Most scopes on a page.")] = 50,
) -> Response:
    """List the scopes of your tenant, the latest written first; a bound key sees its own."""
    return Response(SCOPES.dump_json(await recollect.tenant.scopes(caller, wanted, cursor, limit)), media_type=JSON)


@router.get("/status", response_model=ServiceStatus, responses=describe())
async def read_status(recollect: Running, caller: AnyCaller) -> Response:
    """Say how the service is set up, and what it still has to do for your tenant, or for a bound key's scopes."""
    return Response(STATUS.dump_json(await recollect.tenant.status(caller)), media_type=JSON)


@router.get("/receipts", response_model=PurgeReceipts, responses=describe())
async def list_all_receipts(
    recollect: Running,
    caller: AnyCaller,
    agent: Annotated[FullName | None, Query(description="Whose; your whole tenant's if left out.")] = None,
    user: Annotated[Name | None, Query(description="Which user's; the agent's own if left out or empty.")] = None,
    cursor: Page = "",
    limit: Annotated[int, Query(ge=1, le=200, description="Most receipts on a page.")] = 50,
) -> Response:
    """List what purges of conversations removed, the latest first: of a scope, or for administrators of the tenant."""
    found = await recollect.tenant.receipts(caller, Bounds(agent, user), cursor, limit)
    return Response(RECEIPTS.dump_json(found), media_type=JSON)
