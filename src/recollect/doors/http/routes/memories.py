"""Routes for memories: remember, load, read, forget, and let fade."""

from __future__ import annotations

import inspect
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from recollect.doors.http.auth import AskedMind, Cursor, IdempotencyKey, id_of, most
from recollect.doors.http.bodies.fields import EXAMPLE_ID, Number, OfScope, build, show
from recollect.doors.http.bodies.memories import FilterBody, ForgetBody, LoadBody, RememberBody, ReviseBody
from recollect.doors.http.problems import describe
from recollect.doors.http.reading import JsonRoute
from recollect.doors.http.serve import NAMED, add_route, forward, in_query, serve
from recollect.errors import NotFoundError
from recollect.mind.mind import Mind
from recollect.models.memories import (
    Fading,
    FadingRules,
    Judgement,
    MemoryOrder,
    NewMemory,
    Page,
    Receipt,
    Revised,
    Revision,
)
from recollect.models.recall import Filter

router = APIRouter(tags=["memories"], route_class=JsonRoute)
MemoryId = id_of("the memory")
OF_MEMORY = Path(description="The id of the memory.", examples=[EXAMPLE_ID])
Order = Annotated[MemoryOrder, Query(description="oldest or newest: as they were stored, or the other way round.")]
Words = Annotated[str, Query(max_length=8_000, description="Only memories that have all of these words.")]
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
) -> Page:
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
    """Say that this is asked for by POST: otherwise it would look like a memory of this id."""
    raise HTTPException(405, headers={"Allow": "POST"})


forward(router, "get", "get", errors=[404], memory_id=MemoryId)
forward(
    router,
    "walk_evidence",
    "evidence",
    errors=[404],
    memory_id=MemoryId,
    depth=Annotated[int, Query(ge=1, le=6, description="Most steps each way.")],
    limit=most(200, "memories each way"),
)
forward(router, "list_versions", "versions", errors=[404], memory_id=MemoryId)


@serve(router, "revise", errors=[404, 409])
async def revise(mind: Mind, memory_id: Annotated[UUID, OF_MEMORY], body: ReviseBody) -> Revised:
    """Change what the body holds."""
    return await mind.revise(memory_id, build(Revision, body))


@serve(router, "forget")
async def forget(mind: Mind, body: ForgetBody) -> list[UUID]:
    """Delete what the body names, or only list it."""
    return await mind.forget(body.ids, build(Filter, body), dry_run=body.dry_run)


class ReadBody(OfScope):
    """Memories of a scope to read."""

    model_config = show({"agent": "ada", "ids": [EXAMPLE_ID]})

    ids: list[UUID] = Field(min_length=1, max_length=200, description="Ids of the memories, of any version.")


forward(router, "read_memories", "get_many", ReadBody)


class PinBody(OfScope):
    """Memories of a scope to pin, or not to pin any longer."""

    model_config = show({"agent": "ada", "ids": [EXAMPLE_ID]})

    ids: list[UUID] = Field(min_length=1, max_length=1_000, description="Ids of the memories.")
    pinned: bool = Field(default=True, strict=True, description="False lets them go.")


forward(router, "pin", "pin", PinBody)


class Forgotten(BaseModel):
    """What was deleted: the memory and all that was derived from it."""

    forgotten: list[UUID]


@router.delete("/v1/memories/{memory_id}", response_model=Forgotten, responses=describe(404))
async def forget_one(mind: AskedMind, memory_id: Annotated[UUID, OF_MEMORY]) -> Forgotten:
    """Delete a memory of a scope, and everything that was derived from it, for good."""
    gone = await mind.forget([memory_id])
    if not gone:
        raise NotFoundError("There is no such memory in this scope.")
    return Forgotten(forgotten=gone)


class RulesBody(OfScope):
    """A scope, and how its memories fade; what is left out is as the agent's profile has it, or the service."""

    days: Days | None = Field(
        None, description="Days over which a memory fades that nobody recalls; 0: only what expires fades."
    )
    threshold: Annotated[Number, Field(ge=0, le=1)] | None = Field(
        None, description="What scores above it fades; 0.7 if nobody says."
    )
    fact_days: Days | None = Field(
        None, description="How many days old a fact may grow; any age if 0, and if nobody says."
    )


class FadeBody(RulesBody):
    """A pass over a scope."""

    model_config = show({"agent": "ada", "days": 30, "dry_run": True})

    dry_run: bool = Field(default=False, strict=True, description="Only say what would fade.")
    cursor: UUID | None = Field(None, description="next_cursor of the call before.")


class ExplainBody(RulesBody):
    """Memories of a scope to judge."""

    model_config = show({"agent": "ada", "days": 30, "ids": [EXAMPLE_ID]})

    ids: list[UUID] = Field(min_length=1, max_length=1_000, description="Ids of the memories to judge.")


class ReviveBody(OfScope):
    """Faded memories of a scope to bring back."""

    model_config = show({"agent": "ada", "ids": [EXAMPLE_ID]})

    ids: list[UUID] = Field(min_length=1, max_length=1_000, description="Ids of the memories to bring back.")


@serve(router, "fading.fade")
async def fade(mind: Mind, body: FadeBody) -> Fading:
    """Let fade by these rules."""
    return await mind.fading.fade(build(FadingRules, body), dry_run=body.dry_run, cursor=body.cursor)


@serve(router, "fading.explain")
async def explain_fading(mind: Mind, body: ExplainBody) -> list[Judgement]:
    """Judge by these rules."""
    return await mind.fading.explain(body.ids, build(FadingRules, body))


forward(router, "list_faded", "fading.faded", cursor=Cursor, limit=most(200, "memories on a page"))
forward(router, "revive_faded", "fading.revive", ReviveBody)
