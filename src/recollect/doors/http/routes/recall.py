"""Routes for recall: by cues, as text for a prompt, and for the recalls that were kept."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from recollect.doors.http.auth import Cursor, id_of, most
from recollect.doors.http.bodies.conversations import MAX_TOKENS
from recollect.doors.http.bodies.fields import (
    SCOPE,
    AnyConversation,
    Integer,
    Moment,
    ScopeBody,
    build,
    build_example_config,
)
from recollect.doors.http.bodies.memories import RecallBody, RecallEachBody, RecallOptionsBody, Weight
from recollect.doors.http.metrics import count_recall
from recollect.doors.http.routing import forward, serve
from recollect.mind.mind import Mind
from recollect.models.blocks import MemoryBlock
from recollect.models.recall import Cue, RecallResult

CONVERSATION = "Your name for the conversation; what its blocks showed before is known. None if empty."
router = APIRouter(tags=["memories"])
recalls = APIRouter(tags=["recalls"])
RecallId = id_of("a recall that was kept")


class BlockBody(ScopeBody, RecallOptionsBody):
    """A query and its token budget."""

    model_config = build_example_config(SCOPE | {"text": "张伟在哪里工作？", "budget": 2000})

    limit: Annotated[Integer, Field(ge=1, le=200)] | None = Field(
        None, description="Maximum number of lines. Default: from the agent's profile, or as many as fit."
    )
    budget: Annotated[Integer, Field(ge=1, le=MAX_TOKENS)] = Field(2_000, description="Token budget.")
    conversation: AnyConversation = Field("", description=CONVERSATION)
    repeat: bool = Field(
        default=False,
        strict=True,
        description="Repeat memories that were shown before, shorter over time.",
    )
    tokenizer: str = Field("", max_length=64, description="Tokenizer or model name. Default: the configured one.")


class ReplayBody(ScopeBody):
    """How to replay a saved recall of a scope."""

    model_config = build_example_config({"agent": "ada", "weights": {"text": 1, "vector": 0}})

    weights: dict[Annotated[str, Field(max_length=40)], Weight] = Field(
        default_factory=dict[str, float],
        max_length=64,
        description="Weights of channels and preferences. Others keep the saved values.",
    )
    as_of: Moment | None = Field(
        None, description="Run the recall again as of this time. Default: rank the saved candidates."
    )


@serve(router, "recall")
async def recall(mind: Mind, body: RecallBody) -> RecallResult:
    """Recall by one cue."""
    return count_recall(await mind.recall(build(Cue, body)))


@serve(router, "recall_each")
async def recall_each(mind: Mind, body: RecallEachBody) -> list[RecallResult]:
    """Recall by several cues."""
    answers = await mind.recall_each([build(Cue, cue) for cue in body.cues], isolated=body.isolated)
    return [*map(count_recall, answers)]


@serve(router, "blocks.show", errors=[404, 409])
async def show_block(mind: Mind, body: BlockBody) -> MemoryBlock:
    """Recall as text."""
    made = await mind.blocks.show(
        build(Cue, body), body.budget, conversation=body.conversation, repeat=body.repeat, tokenizer=body.tokenizer
    )
    return count_recall(made)


forward(recalls, "list_recalls", "recalls.list", cursor=Cursor, limit=most(200, "recalls on a page"))
forward(recalls, "explain_recall", "recalls.explain", errors=[404], recall_id=RecallId)
forward(recalls, "replay_recall", "recalls.replay", ReplayBody, errors=[404], recall_id=RecallId)
