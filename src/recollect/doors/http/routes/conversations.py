"""Routes for conversations: append, history, context, their segments, and updates."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from pydantic import Field

from recollect.doors.http.auth import IdempotencyKey, chat_time, most
from recollect.doors.http.bodies.conversations import (
    AppendBody,
    ChatBody,
    ContextBody,
    HistoryBody,
    UpdateConversationBody,
)
from recollect.doors.http.bodies.fields import ConversationName, ScopeBody, build, build_example_config
from recollect.doors.http.json_body import JsonRoute
from recollect.doors.http.metrics import count_recall
from recollect.doors.http.routing import forward, serve
from recollect.mind.mind import Mind
from recollect.models.conversations import Context, ConversationState, History, HistoryOptions, MessageReceipt, Reply
from recollect.models.recall import Cue

router = APIRouter(tags=["conversations"], route_class=JsonRoute)
ConversationId = Annotated[ConversationName, Path(description="Conversation ID, chosen by you.", examples=["c-1"])]
Limit = most(200, "items to return")
State = Annotated[
    ConversationState | None, Query(description="active, archived, deleted or purging. Default: active and archived.")
]
Page = Annotated[str, Query(max_length=200, description="`next_cursor` of the previous page.")]
AfterMessage = Annotated[int, Query(ge=0, le=2**63 - 1, description="Only messages after the one so numbered.")]
Threads = Annotated[int, Query(ge=0, le=200, description="Maximum number of ends of threads; 0 = none.")]
DRY_RUN = "Only count what would be deleted."
DryRun = Annotated[bool, Query(description=DRY_RUN)]
After = Annotated[int, Query(ge=0, le=2**63 - 1, description="Only segments that start after this message number.")]


@serve(router, "conversation.append", errors=[409])
async def append(mind: Mind, body: AppendBody, idempotency_key: IdempotencyKey = "") -> list[MessageReceipt]:
    """Append a list of messages, or one turn of question and answer."""
    return await mind.conversation(body.conversation).append(body.to_values(), idempotency_key=idempotency_key)


@serve(router, "conversation.history", errors=[404])
async def history(mind: Mind, body: HistoryBody) -> History:
    """Read through a window."""
    return await mind.conversation(body.conversation).history(build(HistoryOptions, body))


@serve(router, "conversation.context", errors=[404, 409])
async def context(mind: Mind, body: ContextBody) -> Context:
    """Make one prompt."""
    window, cue = build(HistoryOptions, body), build(Cue, body)
    made = await mind.conversation(body.conversation).context(
        cue, body.budget, shares=body.to_shares(), window=window, system=body.system
    )
    return count_recall(made)


@serve(router, "conversation.chat", errors=[404, 409, 502], dependencies=[Depends(chat_time)])
async def chat(mind: Mind, body: ChatBody) -> Reply:
    """Answer, however long the chat model takes."""
    view = mind.conversation(body.conversation)
    return await view.chat(body.text, body.budget, window=build(HistoryOptions, body), system=body.system)


forward(router, "list_conversations", "conversations", state=State, cursor=Page, limit=Limit)


class PurgeBody(ScopeBody):
    """A scope, and whether its conversation is to be removed or only counted."""

    model_config = build_example_config({"agent": "ada", "dry_run": True})

    dry_run: bool = Field(default=False, strict=True, description=DRY_RUN)


of_one = partial(forward, router, conversation=ConversationId)
of_one("get_conversation", "conversation.get", errors=[404], threads=Threads)
of_one("update_conversation", "conversation.update", UpdateConversationBody, errors=[404, 409])
of_one("delete_conversation", "conversation.delete", errors=[404, 409], dry_run=DryRun)
of_one("purge_conversation", "conversation.purge", PurgeBody, errors=[404])
of_one(
    "list_messages", "conversation.messages", errors=[404], after=AfterMessage, limit=most(200, "messages on a page")
)
of_one("list_segments", "conversation.segments", errors=[404], after=After, limit=Limit)
