"""Routes for recall as text for a prompt, and for the recalls that were kept."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query, Response
from pydantic import ConfigDict, Field, TypeAdapter

from recollect.doors.http.auth import JSON, Admitted, Agent, User
from recollect.doors.http.bodies.conversations import MOST_TOKENS
from recollect.doors.http.bodies.memories import AGENT, USER, Body, CueBody, Integer, Moment, Name, UserName, Weight
from recollect.doors.http.problems import describe
from recollect.models.blocks import Block, Resolved
from recollect.models.kept import Explanation, KeptRecalls, Replay

CONVERSATION = "Your name for the conversation; what its blocks showed before is known. None if empty."
BLOCK, RESOLVED = TypeAdapter(Block), TypeAdapter(Resolved)
router = APIRouter(prefix="/v1", tags=["memories"])
EXPLANATION, RECALLS, REPLAY = TypeAdapter(Explanation), TypeAdapter(KeptRecalls), TypeAdapter(Replay)
recalls = APIRouter(prefix="/v1", tags=["recalls"])
RecallId = Annotated[
    UUID, Path(description="The recall_id of a recollection.", examples=["01a1dd05-b16b-7000-b535-83c8ebea4fa9"])
]


class BlockBody(CueBody):
    """A cue, and the room that there is for what it reminds of."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"agent": "ada", "user": "zhang-wei", "text": "张伟在哪里工作？", "budget": 2000}]
        }
    )

    agent: Name = Field(description=AGENT)
    user: UserName = Field("", description=USER)
    limit: Annotated[Integer, Field(ge=1, le=200)] | None = Field(
        None, description="Most lines; as the agent's profile has it, or as many as the budget holds, if left out."
    )
    budget: Annotated[Integer, Field(ge=1, le=MOST_TOKENS)] = Field(2_000, description="All that the block may cost.")
    conversation: UserName = Field("", description=CONVERSATION)
    carry: bool = Field(
        default=False,
        strict=True,
        description="Show on what was shown before, in fewer words as it fades; else it is left out until it is gone.",
    )
    tokenizer: str = Field("", max_length=64, description="A tokenizer's or a model's name; the usual one if empty.")


@router.post("/blocks", response_model=Block, responses=describe(404, 409))
async def recall_block(body: BlockBody, admit: Admitted) -> Response:
    """Give back what a text reminds of as one block for a prompt within a budget, each line with its short id."""
    mind = await admit(body.agent, body.user)
    made = await mind.blocks.recall(
        body.to_cue(), body.budget, conversation=body.conversation, carry=body.carry, tokenizer=body.tokenizer
    )
    return Response(BLOCK.dump_json(made), media_type=JSON)


@router.get("/blocks/{short_id}", response_model=Resolved, responses=describe(404))
async def resolve_short_id(
    short_id: Annotated[
        str, Path(pattern=r"^m[0-9a-f]{4,32}$", description="As it stands in a line.", examples=["m1a2b"])
    ],
    agent: Annotated[Name, Query(description=AGENT, examples=["ada"])],
    admit: Admitted,
    user: Annotated[UserName, Query(description=USER, examples=["zhang-wei"])] = "",
    conversation: Annotated[UserName, Query(description=CONVERSATION)] = "",
) -> Response:
    """Give back the memory that a short id stands for in a conversation, or in the whole scope, and its evidence."""
    mind = await admit(agent, user)
    return Response(RESOLVED.dump_json(await mind.blocks.resolve(short_id, conversation)), media_type=JSON)


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


@recalls.get("/recalls", response_model=KeptRecalls, responses=describe())
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


@recalls.get("/recalls/{recall_id}", response_model=Explanation, responses=describe(404))
async def explain_recall(recall_id: RecallId, agent: Agent, admit: Admitted, user: User = "") -> Response:
    """Say what a recall was ranked by, what each channel proposed, and where each candidate came to stand."""
    mind = await admit(agent, user)
    return Response(EXPLANATION.dump_json(await mind.recalls.explain(recall_id)), media_type=JSON)


@recalls.post("/recalls/{recall_id}/replay", response_model=Replay, responses=describe(404))
async def replay_recall(recall_id: RecallId, body: ReplayBody, admit: Admitted) -> Response:
    """Rank what a recall found by other weights; or ask it anew as of a moment, counting no access."""
    mind = await admit(body.agent, body.user)
    replayed = await mind.recalls.replay(recall_id, body.weights, as_of=body.as_of)
    return Response(REPLAY.dump_json(replayed), media_type=JSON)
