"""Routes for blocks: what a cue reminds of as text for a prompt, and what its short ids stand for."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import ConfigDict, Field, TypeAdapter

from recollect.doors.http.bodies import AGENT, USER, CueBody, Integer, Name, UserName
from recollect.doors.http.conversation_bodies import MOST_TOKENS
from recollect.doors.http.door import Admission, admission
from recollect.doors.http.problems import describe
from recollect.models.blocks import Block, Resolved

JSON = "application/json"
CONVERSATION = "Your name for the conversation; what its blocks showed before is known. None if empty."
BLOCK, RESOLVED = TypeAdapter(Block), TypeAdapter(Resolved)
router = APIRouter(prefix="/v1", tags=["memories"])
Admitted = Annotated[Admission, Depends(admission)]


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
