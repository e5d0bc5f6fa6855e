"""Routes for recall: by cues, as text for a prompt, and for the recalls that were kept."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import Field

from recollect.doors.http.auth import Cursor, id_of, most
from recollect.doors.http.bodies.conversations import MOST_TOKENS
from recollect.doors.http.bodies.fields import SCOPE, AnyConversation, Integer, Moment, OfScope, build, show
from recollect.doors.http.bodies.memories import CueBody, RecallBody, RecallEachBody, Weight
from recollect.doors.http.metrics import count_recall
from recollect.doors.http.serve import forward, serve
from recollect.mind.mind import Mind
from recollect.models.blocks import Block
from recollect.models.recall import Cue, Recollection

CONVERSATION = "Your name for the conversation; what its blocks showed before is known. None if empty."
router = APIRouter(tags=["memories"])
recalls = APIRouter(tags=["recalls"])
ShortId = Annotated[str, Path(pattern=r"^m[0-9a-f]{4,32}$", description="As it stands in a line.", examples=["m1a2b"])]
RecallId = id_of("a recall that was kept")


class BlockBody(OfScope, CueBody):
    """A cue, and the budget for what it reminds of."""

    model_config = show(SCOPE | {"text": "张伟在哪里工作？", "budget": 2000})

    limit: Annotated[Integer, Field(ge=1, le=200)] | None = Field(
        None, description="Most lines; as the agent's profile has it, or as many as the budget holds, if left out."
    )
    budget: Annotated[Integer, Field(ge=1, le=MOST_TOKENS)] = Field(2_000, description="All that the block may cost.")
    conversation: AnyConversation = Field("", description=CONVERSATION)
    repeat: bool = Field(
        default=False,
        strict=True,
        description="Show again what was shown before, in fewer words as it fades, or leave it out until it is gone.",
    )
    tokenizer: str = Field("", max_length=64, description="A tokenizer's or a model's name; the usual one if empty.")


class ReplayBody(OfScope):
    """How to replay a kept recall of a scope."""

    model_config = show({"agent": "ada", "weights": {"text": 1, "vector": 0}})

    weights: dict[Annotated[str, Field(max_length=40)], Weight] = Field(
        default_factory=dict[str, float],
        max_length=64,
        description="What channels and preferences are to weigh, by name; as they did where nothing is said.",
    )
    as_of: Moment | None = Field(
        None, description="Ask again, by what was stored by then, with an offset; if left out, rank what was found."
    )


@serve(router, "recall")
async def recall(mind: Mind, body: RecallBody) -> Recollection:
    """Recall by one cue."""
    return count_recall(await mind.recall(build(Cue, body)))


@serve(router, "recall_each")
async def recall_each(mind: Mind, body: RecallEachBody) -> list[Recollection]:
    """Recall by several cues."""
    answers = await mind.recall_each([build(Cue, cue) for cue in body.cues], isolated=body.isolated)
    return [*map(count_recall, answers)]


@serve(router, "blocks.show", errors=[404, 409])
async def show_block(mind: Mind, body: BlockBody) -> Block:
    """Recall as text."""
    made = await mind.blocks.show(
        build(Cue, body), body.budget, conversation=body.conversation, repeat=body.repeat, tokenizer=body.tokenizer
    )
    return count_recall(made)


forward(
    router,
    "resolve_short_id",
    "blocks.resolve",
    errors=[404],
    short_id=ShortId,
    conversation=Annotated[AnyConversation, Query(description=CONVERSATION)],
)
forward(recalls, "list_recalls", "recalls.list", cursor=Cursor, limit=most(200, "recalls on a page"))
forward(recalls, "explain_recall", "recalls.explain", errors=[404], recall_id=RecallId)
forward(recalls, "replay_recall", "recalls.replay", ReplayBody, errors=[404], recall_id=RecallId)
