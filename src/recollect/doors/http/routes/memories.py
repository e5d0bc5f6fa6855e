"""Routes for memories: remember, load, read, forget, and let fade."""

from __future__ import annotations

import inspect
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from recollect.doors.http.auth import AskedMind, Cursor, IdempotencyKey, extend_deadline, id_of, most
from recollect.doors.http.bodies.fields import EXAMPLE_ID, Number, ScopeBody, build, build_example_config
from recollect.doors.http.bodies.memories import FilterBody, ForgetBody, LoadBody, RememberBody, ReviseBody
from recollect.doors.http.json_body import JsonRoute
from recollect.doors.http.problems import document_problems
from recollect.doors.http.routing import NAMED, add_route, forward, in_query, serve
from recollect.doors.http.transfers import MAX_SECONDS
from recollect.errors import NotFoundError
from recollect.mind.mind import Mind
from recollect.models.imports import UserErasure
from recollect.models.memories import (
    FadeDecision,
    FadeReport,
    FadingRules,
    MemoryOrder,
    MemoryPage,
    MemoryUpdate,
    NewMemory,
    Receipt,
    UpdateResult,
)
from recollect.models.recall import Filter

router = APIRouter(tags=["memories"], route_class=JsonRoute)
MemoryId = id_of("the memory")
AnyId = Annotated[str, Path(max_length=64, description="The ID, whole or as a prompt shows it.", examples=[EXAMPLE_ID])]
OF_MEMORY = Path(description="Memory ID.", examples=[EXAMPLE_ID])
Order = Annotated[MemoryOrder, Query(description="`oldest` or `newest` first.")]
Words = Annotated[str, Query(max_length=8_000, description="Only memories that contain all of these words.")]
Days = Annotated[Number, Field(ge=0, le=36_500)]


@serve(router, "remember", errors=[409])
async def remember(mind: Mind, body: RememberBody, idempotency_key: IdempotencyKey = "") -> list[Receipt]:
    """Store what the body holds, as a list or next to the scope."""
    return await mind.remember(body.to_values(), idempotency_key=idempotency_key, if_new=body.if_new)


@serve(router, "load", errors=[409])
async def load(mind: Mind, body: LoadBody, idempotency_key: IdempotencyKey = "") -> list[UUID]:
    """Load a list."""
    memories = [build(NewMemory, memory) for memory in body.memories]
    return await mind.load(memories, idempotency_key=idempotency_key)


async def browse(
    mind: Mind,
    *,
    cursor: UUID | None,
    limit: int,
    order: MemoryOrder,
    words: str,
    **given: Any,  # noqa: ANN401 - a field of any type
) -> MemoryPage:
    """List what the query admits."""
    only = build(Filter, FilterBody.model_construct(**given))
    return await mind.browse(cursor, limit, only, order=order, words=words)


add_route(
    router,
    browse,
    [
        inspect.Parameter("cursor", NAMED, annotation=Cursor, default=None),
        inspect.Parameter("limit", NAMED, annotation=most(200, "memories on a page"), default=50),
        inspect.Parameter("order", NAMED, annotation=Order, default=MemoryOrder.OLDEST),
        inspect.Parameter("words", NAMED, annotation=Words, default=""),
        *in_query(FilterBody),
    ],
    "browse",
    errors=(),
)


@router.api_route("/v1/memories/read", methods=["GET", "DELETE"], include_in_schema=False)
async def refuse_read() -> None:
    """Refuse GET: the path would otherwise be read as the ID of a memory."""
    raise HTTPException(405, headers={"Allow": "POST"})


forward(router, "get", "get", errors=[404], memory_id=AnyId)
forward(
    router,
    "walk_evidence",
    "evidence",
    errors=[404],
    memory_id=MemoryId,
    depth=Annotated[int, Query(ge=1, le=6, description="Maximum number of steps in each direction.")],
    limit=most(200, "memories each way"),
)
forward(router, "list_versions", "versions", errors=[404], memory_id=MemoryId)


@serve(router, "revise", errors=[404, 409])
async def revise(mind: Mind, memory_id: Annotated[UUID, OF_MEMORY], body: ReviseBody) -> UpdateResult:
    """Change what the body holds."""
    return await mind.revise(memory_id, build(MemoryUpdate, body))


@serve(router, "forget")
async def forget(mind: Mind, body: ForgetBody) -> list[UUID]:
    """Delete what the body names, or only list it."""
    return await mind.forget(body.ids, build(Filter, body), dry_run=body.dry_run)


class EverythingBody(ScopeBody):
    """A scope to erase."""

    model_config = build_example_config({"agent": "ada", "user": "zhang-wei", "dry_run": True})

    dry_run: bool = Field(default=False, strict=True, description="Only count what would be deleted.")


@serve(router, "forget_everything")
async def forget_everything(mind: Mind, body: EverythingBody, request: Request) -> UserErasure:
    """Erase a scope, or only count it; sent again, it continues."""
    extend_deadline(request, MAX_SECONDS)
    return await mind.forget_everything(dry_run=body.dry_run)


class ReadBody(ScopeBody):
    """Memories of a scope to read."""

    model_config = build_example_config({"agent": "ada", "ids": [EXAMPLE_ID]})

    ids: list[UUID] = Field(min_length=1, max_length=200, description="Ids of the memories, of any version.")


forward(router, "read_memories", "get_many", ReadBody)


class PinBody(ScopeBody):
    """Memories of a scope to pin, or not to pin any longer."""

    model_config = build_example_config({"agent": "ada", "ids": [EXAMPLE_ID]})

    ids: list[UUID] = Field(min_length=1, max_length=1_000, description="Ids of the memories.")
    pinned: bool = Field(default=True, strict=True, description="false to unpin.")


forward(router, "pin", "pin", PinBody)


class ForgetResult(BaseModel):
    """The deleted memories: the named one and all that were derived from it."""

    forgotten: list[UUID]


@router.delete("/v1/memories/{memory_id}", response_model=ForgetResult, responses=document_problems(404))
async def forget_one(mind: AskedMind, memory_id: Annotated[UUID, OF_MEMORY]) -> ForgetResult:
    """Permanently delete a memory and everything derived from it."""
    gone = await mind.forget([memory_id])
    if not gone:
        raise NotFoundError("No such memory in this scope.")
    return ForgetResult(forgotten=gone)


class FadeRulesBody(ScopeBody):
    """A scope and its rules of fading. Default: from the agent's profile, or else from the service."""

    days: Days | None = Field(None, description="Days until an unused memory fades; 0 = only expired memories fade.")
    threshold: Annotated[Number, Field(ge=0, le=1)] | None = Field(
        None, description="Memories that score above this fade. Default: 0.7."
    )
    fact_days: Days | None = Field(None, description="Maximum age of a fact in days; 0 = no limit (default).")


class FadeBody(FadeRulesBody):
    """Options of a fade run."""

    model_config = build_example_config({"agent": "ada", "days": 30, "dry_run": True})

    dry_run: bool = Field(default=False, strict=True, description="Only list what would fade.")
    cursor: UUID | None = Field(None, description="`next_cursor` of the previous call.")


class ExplainBody(FadeRulesBody):
    """Memories of a scope to judge."""

    model_config = build_example_config({"agent": "ada", "days": 30, "ids": [EXAMPLE_ID]})

    ids: list[UUID] = Field(min_length=1, max_length=1_000, description="Ids of the memories to judge.")


class ReviveBody(ScopeBody):
    """Faded memories of a scope to restore."""

    model_config = build_example_config({"agent": "ada", "ids": [EXAMPLE_ID]})

    ids: list[UUID] = Field(min_length=1, max_length=1_000, description="IDs of the memories to restore.")


@serve(router, "fading.fade")
async def fade(mind: Mind, body: FadeBody) -> FadeReport:
    """Fade memories by these rules."""
    return await mind.fading.fade(build(FadingRules, body), dry_run=body.dry_run, cursor=body.cursor)


@serve(router, "fading.explain")
async def explain_fading(mind: Mind, body: ExplainBody) -> list[FadeDecision]:
    """Judge by these rules."""
    return await mind.fading.explain(body.ids, build(FadingRules, body))


forward(router, "list_faded", "fading.faded", cursor=Cursor, limit=most(200, "memories on a page"))
forward(router, "revive_faded", "fading.revive", ReviveBody)
