"""Routes that carry whole scopes out and in, and that erase a user over all agents."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from recollect.doors.http.auth import Running, Secret, door_of, take_time
from recollect.doors.http.bodies.fields import Body, FullName, Name, show
from recollect.doors.http.problems import describe
from recollect.doors.http.routes.service import Administrator
from recollect.doors.http.transfers import LONGEST_SECONDS, UnderWay, answer_in_pieces, receive, receiving, send_growing
from recollect.models.imports import ExportImport, ExportOrder, ImportOrder, UserErasure
from recollect.models.service import Caller

router = APIRouter(prefix="/v1", tags=["exports"])
ZIP = "application/zip"
BINARY: dict[str, Any] = {ZIP: {"schema": {"type": "string", "format": "binary"}}}
EXPORTED: dict[int | str, dict[str, Any]] = {200: {"content": BINARY, "description": "A zip, piece by piece."}}
ATTACHED = {"Content-Disposition": 'attachment; filename="recollect.zip"'}
Agent = Annotated[Name | None, Query(description="Whose memory it is; all agents' if left out.")]
User = Annotated[Name | None, Query(description="About whom; all users if left out, the agent's own if empty.")]
Vectors = Annotated[
    list[Annotated[str, Field(max_length=200)]],
    Query(max_length=20, description="Vectors of these models too, or of `all`; without them they are made again."),
]
ImportName = Annotated[
    str, Query(min_length=1, max_length=100, description="New memories have the origin `import:NAME`.")
]
IntoAgent = Annotated[Name | None, Query(description="Whose memory one scope becomes; as in the file if left out.")]
IntoUser = Annotated[Name | None, Query(description="About whom one scope is; as in the file if left out.")]
AsNew = Annotated[bool, Query(description="Bring its memories as new ones, although you may restore them.")]


async def bound_or_not(request: Request, recollect: Running, shown: Secret) -> Caller:
    """Let in who shows a key, bound or not; what it may is checked for what it asks."""
    return await recollect.authenticate(shown, door_of(request), bound=True)


Holder = Annotated[Caller, Depends(bound_or_not)]


@router.get("/export", response_class=Response, responses={**EXPORTED, **describe(404)})
async def export_scopes(
    caller: Holder,
    recollect: Running,
    under_way: UnderWay,
    agent: Agent = None,
    user: User = None,
    vectors: Vectors = [],  # noqa: B006 - the framework reads it, nobody changes it
) -> StreamingResponse:
    """Export whole scopes of your tenant, of one moment: everything they hold, as a zip; needs `read` and `admin`."""
    order = ExportOrder(agent, user, tuple(vectors))
    pieces = send_growing(lambda file: recollect.operator.exports.write(caller, order, file), under_way)
    return await answer_in_pieces(pieces, ZIP, ATTACHED)


async def import_order(
    name: ImportName = "export",
    agent: IntoAgent = None,
    user: IntoUser = None,
    as_new: AsNew = False,  # noqa: FBT002 - named in the query
) -> ImportOrder:
    """Read from the query how an export is to be imported."""
    return ImportOrder(name, agent, user, as_new=as_new)


Order = Annotated[ImportOrder, Depends(import_order)]


@router.post(
    "/import",
    response_model=ExportImport,
    responses=describe(404),
    openapi_extra={"requestBody": {"content": BINARY, "required": True}},
)
async def import_scopes(
    request: Request, caller: Holder, recollect: Running, order: Order, under_way: UnderWay
) -> ExportImport:
    """Import what an export holds: restored in empty scopes with an unbound `admin` key, else as new memories."""
    recollect.operator.exports.check_import(caller, order)
    take_time(request, LONGEST_SECONDS)
    with receiving(under_way) as file:
        await receive(request, file)
        return await recollect.operator.exports.read(caller, order, file)


class ErasureBody(Body):
    """A user to erase over all agents."""

    model_config = show({"user": "zhang-wei", "dry_run": True})

    user: FullName = Field(description="About whom nothing is to be left.")
    dry_run: bool = Field(default=False, strict=True, description="Only count what would go.")


class ErasureReceipts(BaseModel):
    """The receipts of a tenant's erasures."""

    erasures: list[UserErasure]


@router.post("/erasures", response_model=UserErasure, responses=describe(404))
async def erase_user(
    body: ErasureBody, request: Request, caller: Administrator, recollect: Running, under_way: UnderWay
) -> UserErasure:
    """Erase a user over all agents for good, in every table, or only count it; sent again, it goes on."""
    take_time(request, LONGEST_SECONDS)
    with under_way.begin():
        return await recollect.operator.erasures.forget_user(caller, body.user, dry_run=body.dry_run)


@router.get("/erasures", response_model=ErasureReceipts, responses=describe())
async def list_erasures(
    caller: Administrator,
    recollect: Running,
    user: Annotated[Name, Query(description="Of this user only; of all if left out.")] = "",
    limit: Annotated[int, Query(ge=1, le=200, description="Most receipts.")] = 50,
) -> ErasureReceipts:
    """List what erasures of users removed, the latest first."""
    return ErasureReceipts(erasures=await recollect.operator.erasures.receipts(caller, user, limit))
