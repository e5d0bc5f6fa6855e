"""Routes that carry whole scopes out and in, and that erase a user over all agents."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from recollect.doors.http.auth import Running, Secret, door_of, extend_deadline
from recollect.doors.http.bodies.fields import Body, FullName, Name, build_example_config
from recollect.doors.http.problems import document_problems
from recollect.doors.http.routes.service import Administrator
from recollect.doors.http.transfers import (
    MAX_SECONDS,
    UnderWay,
    answer_in_pieces,
    receive,
    send_growing,
    while_connected,
)
from recollect.models.imports import ExportRequest, ImportOptions, ImportResult, UserErasure
from recollect.models.service import Caller

router = APIRouter(prefix="/v1", tags=["exports"])
ZIP = "application/zip"
BINARY: dict[str, Any] = {ZIP: {"schema": {"type": "string", "format": "binary"}}}
EXPORTED: dict[int | str, dict[str, Any]] = {200: {"content": BINARY, "description": "A zip, piece by piece."}}
ATTACHED = {"Content-Disposition": 'attachment; filename="recollect.zip"'}
Agent = Annotated[Name | None, Query(description="The agent. Default: all agents.")]
User = Annotated[Name | None, Query(description="The user. Default: all users; empty: the agent's own memories.")]
Vectors = Annotated[
    list[Annotated[str, Field(max_length=200)]],
    Query(
        max_length=20,
        description="Include the vectors of these models, or `all`. Omitted vectors are computed again on import.",
    ),
]
ImportName = Annotated[
    str, Query(min_length=1, max_length=100, description="New memories have the origin `import:NAME`.")
]
IntoAgent = Annotated[Name | None, Query(description="The agent of the imported scope. Default: as in the file.")]
IntoUser = Annotated[Name | None, Query(description="The user of the imported scope. Default: as in the file.")]
AsNew = Annotated[bool, Query(description="Import as new memories even if a restore would be allowed.")]


async def bound_or_not(request: Request, recollect: Running, shown: Secret) -> Caller:
    """Authenticate any API key, bound or not; its rights are checked for each import or export."""
    return await recollect.authenticate(shown, door_of(request), bound=True)


Holder = Annotated[Caller, Depends(bound_or_not)]


@router.get("/export", response_class=Response, responses={**EXPORTED, **document_problems(404)})
async def export_scopes(
    caller: Holder,
    recollect: Running,
    under_way: UnderWay,
    agent: Agent = None,
    user: User = None,
    vectors: Vectors = [],  # noqa: B006 - the framework reads it, nobody changes it
) -> StreamingResponse:
    """Export complete scopes as a zip file. Needs `read` and `admin`."""
    order = ExportRequest(agent, user, tuple(vectors))
    pieces = send_growing(
        lambda file: recollect.operator.exports.write_export_file(caller, order, file), under_way, caller.tenant_id
    )
    return await answer_in_pieces(pieces, ZIP, ATTACHED)


async def import_order(
    name: ImportName = "export",
    agent: IntoAgent = None,
    user: IntoUser = None,
    as_new: AsNew = False,  # noqa: FBT002 - named in the query
) -> ImportOptions:
    """Read from the query how an export is to be imported."""
    return ImportOptions(name, agent, user, as_new=as_new)


Order = Annotated[ImportOptions, Depends(import_order)]


@router.post(
    "/import",
    response_model=ImportResult,
    responses=document_problems(404),
    openapi_extra={"requestBody": {"content": BINARY, "required": True}},
)
async def import_scopes(
    request: Request, caller: Holder, recollect: Running, order: Order, under_way: UnderWay
) -> ImportResult:
    """Import an export. Restores into empty scopes with an unbound `admin` key; otherwise imports as new memories."""
    recollect.operator.exports.check_import(caller, order)
    extend_deadline(request, MAX_SECONDS)
    with under_way.file(caller.tenant_id) as file:
        await receive(request, file)

        async def import_upload() -> ImportResult:
            async with under_way.term_position(caller.tenant_id):
                return await recollect.operator.exports.import_export_file(caller, order, file)

        return await while_connected(request, import_upload())


class EraseUserBody(Body):
    """A user to erase over all agents."""

    model_config = build_example_config({"user": "zhang-wei", "dry_run": True})

    user: FullName = Field(description="User to erase.")
    dry_run: bool = Field(default=False, strict=True, description="Only count what would be deleted.")


class ErasureReceipts(BaseModel):
    """The receipts of a tenant's erasures."""

    erasures: list[UserErasure]


@router.post("/erasures", response_model=UserErasure, responses=document_problems(404))
async def erase_user(body: EraseUserBody, request: Request, caller: Administrator, recollect: Running) -> UserErasure:
    """Permanently erase a user across all agents. Repeat the call to continue."""
    extend_deadline(request, MAX_SECONDS)
    return await recollect.operator.erasures.forget_user(caller, body.user, dry_run=body.dry_run)


@router.get("/erasures", response_model=ErasureReceipts, responses=document_problems())
async def list_erasures(
    caller: Administrator,
    recollect: Running,
    user: Annotated[Name, Query(description="Only of this user. Default: all users.")] = "",
    limit: Annotated[int, Query(ge=1, le=200, description="Maximum number of receipts.")] = 50,
) -> ErasureReceipts:
    """List erasure receipts, newest first."""
    return ErasureReceipts(erasures=await recollect.operator.erasures.receipts(caller, user, limit))
