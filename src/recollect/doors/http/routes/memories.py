"""Routes for memories: remember, load, read, forget, and let fade."""

from __future__ import annotations

import inspect
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field

from recollect.doors.http.auth import AskedMind, Cursor, IdempotencyKey, extend_deadline, id_of, ids_in_query, most
from recollect.doors.http.bodies.fields import (
    EXAMPLE_ID,
    OMITTED,
    AnyConversation,
    Number,
    ScopeBody,
    build,
    build_example_config,
    read_fields,
)
from recollect.doors.http.bodies.memories import FilterBody, ForgetBody, LoadBody, RememberBody, UpdateBody
from recollect.doors.http.json_body import JsonRoute
from recollect.doors.http.problems import document_problems
from recollect.doors.http.routing import NAMED, add_route, forward, in_query, serve
from recollect.doors.http.transfers import MAX_SECONDS
from recollect.errors import NotFoundError
from recollect.mind.mind import Mind
from recollect.models.filters import Filter
from recollect.models.imports import UserErasure
from recollect.models.memories import (
    FadeReport,
    FadingRules,
    MemoryOrder,
    MemoryPage,
    MemoryUpdate,
    NewMemory,
    Receipt,
    UpdateResult,
)

router = APIRouter(tags=["memories"], route_class=JsonRoute)
MemoryId = id_of("the memory")
AnyId = Annotated[str, Path(max_length=64, description="The ID, whole or as a prompt shows it.", examples=[EXAMPLE_ID])]
OF_MEMORY = Path(description="Memory ID.", examples=[EXAMPLE_ID])
Ids = ids_in_query("Only these memories, in any version, without a filter.")
Order = Annotated[MemoryOrder, Query(description="`oldest` or `newest` first.")]
Words = Annotated[str, Query(max_length=8_000, description="Only memories that contain all of these words.")]
Keyword = Annotated[
    str, Query(max_length=500, description="Only memories in recall that are filed under this keyword.")
]
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


async def list_memories(mind: Mind, **given: Any) -> MemoryPage:  # noqa: ANN401 - of any type
    """List what the query admits."""
    only = FilterBody.model_construct(**{name: given.pop(name) for name in FilterBody.model_fields})
    return await mind.list(filter=build(Filter, only), **given)


add_route(
    router,
    list_memories,
    [
        inspect.Parameter("ids", NAMED, annotation=Ids, default=None),
        inspect.Parameter("words", NAMED, annotation=Words, default=""),
        inspect.Parameter("keyword", NAMED, annotation=Keyword, default=""),
        inspect.Parameter("order", NAMED, annotation=Order, default=MemoryOrder.OLDEST),
        inspect.Parameter("limit", NAMED, annotation=most(200, "memories on a page"), default=50),
        inspect.Parameter("cursor", NAMED, annotation=Cursor, default=None),
        *in_query(FilterBody),
    ],
    "list",
    errors=(),
)


forward(
    router,
    "get",
    "get",
    errors=[404],
    memory_id=AnyId,
    conversation=Annotated[AnyConversation, Query(description="Only short IDs that this conversation was shown.")],
)
forward(
    router,
    "walk_evidence",
    "evidence",
    errors=[404],
    memory_id=MemoryId,
    depth=Annotated[int, Query(ge=1, le=6, description="Maximum number of steps in each direction.")],
    limit=most(200, "memories each way"),
)


@serve(router, "update", errors=[404, 409])
async def update_memory(mind: Mind, memory_id: Annotated[UUID, OF_MEMORY], body: UpdateBody) -> UpdateResult:
    """Change what the body holds."""
    return await mind.update(memory_id, **read_fields(MemoryUpdate, body))


@serve(router, "forget")
async def forget(mind: Mind, body: ForgetBody) -> list[UUID]:
    """Delete what the body names, or only list it."""
    return await mind.forget(body.ids, filter=build(Filter, body), dry_run=body.dry_run)


class EverythingBody(ScopeBody):
    """A scope to erase."""

    model_config = build_example_config({"agent": "ada", "user": "zhang-wei", "dry_run": True})

    dry_run: bool = Field(default=False, strict=True, description="Only count what would be deleted.")


@serve(router, "forget_everything")
async def forget_everything(mind: Mind, body: EverythingBody, request: Request) -> UserErasure:
    """Erase a scope, or only count it; sent again, it continues."""
    extend_deadline(request, MAX_SECONDS)
    return await mind.forget_everything(dry_run=body.dry_run)


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


class FadeBody(ScopeBody):
    """Options of a fade run. Default rules: from the agent's profile, or else from the service."""

    model_config = build_example_config({"agent": "ada", "days": 30, "dry_run": True})

    days: Days | None = Field(None, description="Days until an unused memory fades; 0 = only expired memories fade.")
    threshold: Annotated[Number, Field(ge=0, le=1)] | None = Field(
        None, description="Memories that score above this fade. Default: 0.7."
    )
    fact_days: Days | None = Field(None, description="Maximum age of a fact in days; 0 = no limit (default).")
    ids: list[UUID] = Field(OMITTED, max_length=1_000, description="Judge only these memories, and give each reason.")
    dry_run: bool = Field(default=False, strict=True, description="Only list what would fade.")
    cursor: UUID | None = Field(None, description="`next_cursor` of the previous call.")


class RestoreBody(ScopeBody):
    """Faded memories of a scope to restore."""

    model_config = build_example_config({"agent": "ada", "ids": [EXAMPLE_ID]})

    ids: list[UUID] = Field(min_length=1, max_length=1_000, description="IDs of the memories to restore.")


@serve(router, "fade")
async def fade(mind: Mind, body: FadeBody) -> FadeReport:
    """Fade memories by these rules."""
    return await mind.fade(build(FadingRules, body), ids=body.ids, dry_run=body.dry_run, cursor=body.cursor)


forward(router, "restore_faded", "restore", RestoreBody)
