"""Dify's External Knowledge API, answered by recall in one scope."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field

from recollect.doors.dify.conditions import MetadataCondition
from recollect.doors.dify.narrowing import narrow
from recollect.doors.dify.problems import UNREADABLE, complain, describe_problems, refuse
from recollect.doors.http.auth import DOOR, OpenMind, bearer, running
from recollect.doors.http.bodies.fields import Integer, Number
from recollect.errors import InvalidInputError, NotFoundError, RecollectError
from recollect.models.memories import JSON, Memory
from recollect.models.recall import Cue, Hit

MEDIA = "application/json"
KNOWLEDGE = re.compile(r"([^/]{1,128})(?:/([^/]{0,128}))?")
NO_SCOPE = "knowledge_id must be an agent, or an agent and a user as in `ada/li`."
MAX_CUE_LENGTH = 8_000
DEFAULT_LIMIT, MAX_RECORDS = 10, 200


class DifyRoute(APIRoute):
    """A route whose errors are Dify's."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the usual handler."""
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError as problem:
                return await respond_to_invalid_request(request, problem)
            except RecollectError as problem:
                return refuse(problem)

        return answer


async def respond_to_invalid_request(request: Request, problem: RequestValidationError) -> Response:
    """Answer with the wrong fields, after the key was checked: Dify tries a new key with an empty body."""
    shown = await bearer(request)
    try:
        await (await running(request)).authenticate(shown.credentials if shown else "", DOOR, bound=True)
    except RecollectError as refused:
        return refuse(refused)
    places = sorted({".".join(str(part) for part in item["loc"])[:100] for item in problem.errors()})
    return complain(422, UNREADABLE, f"These fields are invalid: {', '.join(places)[:500]}.")


router = APIRouter(prefix="/dify", tags=["dify"], route_class=DifyRoute)


class RetrievalSetting(BaseModel):
    """How much Dify wants."""

    top_k: Annotated[Integer, Field(ge=1)] | None = Field(
        None, description="Maximum number of records. Default: 10; at most 200."
    )
    score_threshold: Annotated[Number, Field(ge=0, le=1)] | None = Field(None, description="Minimum score.")


class RetrievalBody(BaseModel):
    """A query of Dify to a knowledge base."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "knowledge_id": "ada/zhang-wei",
                    "query": "张伟在哪里工作？",
                    "retrieval_setting": {"top_k": 5, "score_threshold": 0.2},
                }
            ]
        }
    )

    knowledge_id: str = Field(max_length=300, description="Whose memory: an agent, or `agent/user`.")
    query: str = Field(description="Query.")
    retrieval_setting: RetrievalSetting = Field(description="How many records, and how good.")
    metadata_condition: MetadataCondition | None = Field(None, description="Conditions on the metadata of the records.")


class Record(BaseModel):
    """One memory, as a piece of a document."""

    content: str
    score: float = Field(ge=0, le=1)
    title: str
    metadata: dict[str, JSON]


class Records(BaseModel):
    """The matching records, best first."""

    records: list[Record]


@router.post("/retrieval", response_model=Records, responses=describe_problems())
async def retrieve_knowledge(body: RetrievalBody, open_mind: OpenMind) -> Response:
    """Dify External Knowledge API: search a scope."""
    named = KNOWLEDGE.fullmatch(body.knowledge_id)
    if named is None:
        raise NotFoundError(NO_SCOPE)
    try:
        mind = await open_mind(named[1], named[2] or "")
    except InvalidInputError:
        raise NotFoundError(NO_SCOPE) from None
    most = min(body.retrieval_setting.top_k or DEFAULT_LIMIT, MAX_RECORDS)
    condition = body.metadata_condition or MetadataCondition(conditions=None)
    narrowed, only = bool(condition.conditions), narrow(condition)
    restricted = {name: getattr(only, name) for name in only.named}
    # Records that are left out below are shown to nobody, and so do not count as accessed.
    found = await mind.recall(
        Cue(body.query[:MAX_CUE_LENGTH], limit=MAX_RECORDS if narrowed else most, touch=not narrowed, **restricted)
    )
    records = [
        Record(
            content=hit.memory.content, score=score, title=make_title(hit.memory), metadata=describe_memory(hit.memory)
        )
        for hit, score in zip(found.hits, score_hits(found.hits), strict=True)
        if score >= (body.retrieval_setting.score_threshold or 0.0)
    ]
    kept = [record for record in records if condition.holds(record.metadata)]
    return Response(Records(records=kept[:most]).model_dump_json(), media_type=MEDIA)


def score_hits(hits: Sequence[Hit]) -> list[float]:
    """Score hits from 0 to 1, so that a threshold means the same for every query, and keep the order of recall.

    The best hit has the highest cosine of all hits, so all scores are low if no hit is near the query; the others have
    less in proportion to their score in recall. Without vectors, the best hit has 1.
    """
    best = max((hit.score for hit in hits), default=0.0)
    cosines = [hit.channels["vector"].score for hit in hits if "vector" in hit.channels]
    nearest = min(max(cosines, default=1.0), 1.0)
    if best <= 0 or nearest <= 0:
        return [0.0] * len(hits)
    return [max(hit.score, 0.0) / best * nearest for hit in hits]


def make_title(memory: Memory) -> str:
    """Return a title for a memory, as a document has one: its kind and its day."""
    place = f" in {memory.conversation}" if memory.conversation else ""
    return f"{memory.kind}{place}, {memory.occurred_at:%F}"


def describe_memory(memory: Memory) -> dict[str, JSON]:
    """Return a memory's metadata: its caller's own, overridden by ours."""
    return {
        **memory.metadata,
        "id": str(memory.id),
        "kind": str(memory.kind),
        "occurred_at": memory.occurred_at.isoformat(),
        "created_at": memory.created_at.isoformat(),
        "conversation": memory.conversation,
        "speaker": memory.speaker,
        "role": str(memory.role) if memory.role else "",
        "importance": memory.importance,
        "trust": memory.trust,
        "keywords": list(memory.keywords),
    }
