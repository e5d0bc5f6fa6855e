"""Routes for kept recalls: which there are, why each answered as it did, and how it would otherwise."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import ConfigDict, Field, TypeAdapter

from recollect.doors.http.bodies import AGENT, USER, Body, Moment, Name, UserName, Weight
from recollect.doors.http.door import Admission, admission
from recollect.doors.http.problems import describe
from recollect.models.kept import Explanation, KeptRecalls, Replay

JSON = "application/json"
EXPLANATION, RECALLS, REPLAY = TypeAdapter(Explanation), TypeAdapter(KeptRecalls), TypeAdapter(Replay)
router = APIRouter(prefix="/v1", tags=["recalls"])
Admitted = Annotated[Admission, Depends(admission)]
Agent = Annotated[Name, Query(description=AGENT, examples=["ada"])]
User = Annotated[UserName, Query(description=USER, examples=["zhang-wei"])]
RecallId = Annotated[
    UUID, Path(description="The recall_id of a recollection.", examples=["01a1dd05-b16b-7000-b535-83c8ebea4fa9"])
]


class ReplayBody(Body):
    """How to replay a kept recall of a scope."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"agent": "ada", "weights": {"text": 1, "vector": 0}}]})

    agent: Name = Field(description=AGENT)
    user: UserName = Field("", description=USER)
    weights: dict[Annotated[str, Field(max_length=40)], Weight] = Field(
        default_factory=dict[str, float],
        max_length=64,
        description="What channels and preferences are to weigh, by name; as they did where nothing is said.",
    )
    as_of: Moment | None = Field(
        None, description="Ask anew, by what was stored by then, with an offset; if left out, rank what was found."
    )


@router.get("/recalls", response_model=KeptRecalls, responses=describe())
async def list_recalls(
    agent: Agent,
    admit: Admitted,
    user: User = "",
    cursor: Annotated[UUID | None, Query(description="next_cursor of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=200, description="Most recalls on a page.")] = 50,
) -> Response:
    """List the recalls that were kept in a scope, the latest first."""
    mind = await admit(agent, user)
    return Response(RECALLS.dump_json(await mind.recalls.list(cursor, limit)), media_type=JSON)


@router.get("/recalls/{recall_id}", response_model=Explanation, responses=describe(404))
async def explain_recall(recall_id: RecallId, agent: Agent, admit: Admitted, user: User = "") -> Response:
    """Say what a recall was ranked by, what each channel proposed, and where each candidate came to stand."""
    mind = await admit(agent, user)
    return Response(EXPLANATION.dump_json(await mind.recalls.explain(recall_id)), media_type=JSON)


@router.post("/recalls/{recall_id}/replay", response_model=Replay, responses=describe(404))
async def replay_recall(recall_id: RecallId, body: ReplayBody, admit: Admitted) -> Response:
    """Rank what a recall found by other weights; or ask it anew as of a moment, counting no access."""
    mind = await admit(body.agent, body.user)
    replayed = await mind.recalls.replay(recall_id, body.weights, as_of=body.as_of)
    return Response(REPLAY.dump_json(replayed), media_type=JSON)
