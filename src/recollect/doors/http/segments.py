"""Routes for the segments of a conversation: where its topics ended, and what became of each."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel

from recollect.doors.http.conversation_bodies import ConversationScope
from recollect.doors.http.conversations import Admitted, Agent, ConversationId, Limit, User
from recollect.doors.http.problems import describe
from recollect.models.knowledge import StoredSegment

JSON = "application/json"
router = APIRouter(prefix="/v1", tags=["conversations"])
After = Annotated[int, Query(ge=0, le=2**63 - 1, description="Only segments that begin after the message so numbered.")]


class Segments(BaseModel):
    """The segments of a conversation, in the order of what was said."""

    segments: list[StoredSegment]


@router.get("/conversations/{conversation}/segments", response_model=Segments, responses=describe(404))
async def list_segments(
    conversation: ConversationId,
    agent: Agent,
    admit: Admitted,
    user: User = "",
    after: After = 0,
    limit: Limit = 50,
) -> Response:
    """List the segments of a conversation in order: each on one topic, with its label, its summary and its state."""
    mind = await admit(agent, user)
    found = await mind.conversation(conversation).segments(limit, after)
    return Response(Segments(segments=found).model_dump_json(), media_type=JSON)


@router.post("/conversations/{conversation}/segments", response_model=Segments, responses=describe(404))
async def close_segment(conversation: ConversationId, body: ConversationScope, admit: Admitted) -> Response:
    """End the topic that is still running, so that it is learned from now; answer with all segments."""
    mind = await admit(body.agent, body.user)
    found = await mind.conversation(conversation).close_segment()
    return Response(Segments(segments=found).model_dump_json(), media_type=JSON)
