"""Routes for conversations: append, history, context, their segments, and what becomes of them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query, Response
from pydantic import BaseModel, TypeAdapter

from recollect.doors.http.auth import JSON, Admitted, Agent, User, chat_time
from recollect.doors.http.bodies.conversations import (
    AppendBody,
    AppendedMessages,
    ContextBody,
    ConversationScope,
    ConverseBody,
    DescribeBody,
    Described,
    HistoryBody,
    Leaves,
    PurgeReceipts,
)
from recollect.doors.http.bodies.memories import FullName
from recollect.doors.http.problems import describe
from recollect.doors.http.reading import JsonRoute
from recollect.models.conversations import (
    Context,
    Conversation,
    Conversations,
    ConversationState,
    History,
    PurgeReceipt,
    Reply,
)
from recollect.models.knowledge import StoredSegment

CONVERSATION, CONVERSATIONS = TypeAdapter(Conversation), TypeAdapter(Conversations)
CONTEXT, HISTORY, REPLY = TypeAdapter(Context), TypeAdapter(History), TypeAdapter(Reply)
RECEIPT = TypeAdapter(PurgeReceipt)
router = APIRouter(prefix="/v1", tags=["conversations"], route_class=JsonRoute)
ConversationId = Annotated[FullName, Path(description="Your own name for the conversation.", examples=["c-1"])]
Limit = Annotated[int, Query(ge=1, le=200, description="Most items to return.")]
After = Annotated[int, Query(ge=0, le=2**63 - 1, description="Only segments that begin after the message so numbered.")]


@router.post("/messages", status_code=201, response_model=AppendedMessages, responses=describe(409))
async def append(
    body: AppendBody,
    admit: Admitted,
    idempotency_key: Annotated[
        str, Header(max_length=255, description="Send the same key to append the same messages only once.")
    ] = "",
) -> Response:
    """Append messages to a conversation in one transaction, as a list or as one turn of question and answer."""
    mind = await admit(body.agent, body.user)
    appended = await mind.conversation(body.conversation).append(body.to_values(), idempotency_key=idempotency_key)
    return Response(AppendedMessages(messages=appended).model_dump_json(), 201, media_type=JSON)


@router.post("/history", response_model=History, responses=describe(404))
async def history(body: HistoryBody, admit: Admitted) -> Response:
    """Give back the newest whole turns of a conversation's thread that fit a budget of tokens."""
    mind = await admit(body.agent, body.user)
    found = await mind.conversation(body.conversation).history(body.to_window())
    return Response(HISTORY.dump_json(found), media_type=JSON)


@router.post("/context", response_model=Context, responses=describe(404, 409))
async def context(body: ContextBody, admit: Admitted) -> Response:
    """Give back one prompt within a budget: recent turns, memories that the text reminds of, the summary, the text."""
    mind = await admit(body.agent, body.user)
    made = await mind.conversation(body.conversation).context(
        body.to_cue(), body.budget, shares=body.to_shares(), window=body.to_window(), system=body.system
    )
    return Response(CONTEXT.dump_json(made), media_type=JSON)


@router.post("/converse", response_model=Reply, responses=describe(404, 409, 502), dependencies=[Depends(chat_time)])
async def converse(body: ConverseBody, admit: Admitted) -> Response:
    """Answer by the chat model, from the prompt that `context` makes; append question and answer, or neither."""
    mind = await admit(body.agent, body.user)
    talk = mind.conversation(body.conversation)
    reply = await talk.converse(body.text, body.budget, window=body.to_window(), system=body.system)
    return Response(REPLY.dump_json(reply), media_type=JSON)


@router.get("/conversations", response_model=Conversations, responses=describe())
async def list_conversations(
    agent: Agent,
    admit: Admitted,
    user: User = "",
    state: Annotated[
        ConversationState | None, Query(description="active, archived, deleted or purging; the first two if left out.")
    ] = None,
    cursor: Annotated[str, Query(max_length=200, description="next_cursor of the page before.")] = "",
    limit: Limit = 50,
) -> Response:
    """List the conversations of a scope page by page, the latest first."""
    mind = await admit(agent, user)
    found = await mind.conversations(state, cursor=cursor, limit=limit)
    return Response(CONVERSATIONS.dump_json(found), media_type=JSON)


@router.get("/conversations/{conversation}", response_model=Conversation, responses=describe(404))
async def read_conversation(conversation: ConversationId, agent: Agent, admit: Admitted, user: User = "") -> Response:
    """Read a conversation's name, state and times."""
    mind = await admit(agent, user)
    return Response(CONVERSATION.dump_json(await mind.conversation(conversation).read()), media_type=JSON)


@router.patch("/conversations/{conversation}", response_model=Described, responses=describe(404))
async def describe_conversation(conversation: ConversationId, body: DescribeBody, admit: Admitted) -> Described:
    """Give a conversation a name, or metadata of your own; what is left out stays as it is."""
    mind = await admit(body.agent, body.user)
    await mind.conversation(conversation).describe(body.name, body.new_metadata())
    return Described(conversation=conversation)


@router.get("/conversations/{conversation}/leaves", response_model=Leaves, responses=describe(404))
async def list_leaves(
    conversation: ConversationId, agent: Agent, admit: Admitted, user: User = "", limit: Limit = 50
) -> Response:
    """List where a conversation's threads end, newest first; each can be the leaf of a history."""
    mind = await admit(agent, user)
    leaves = await mind.conversation(conversation).leaves(limit)
    return Response(Leaves(leaves=leaves).model_dump_json(), media_type=JSON)


@router.post("/conversations/{conversation}/archive", response_model=Conversation, responses=describe(404, 409))
async def archive_conversation(conversation: ConversationId, body: ConversationScope, admit: Admitted) -> Response:
    """Take a conversation out of recall; it stays readable, and the next message brings it back."""
    mind = await admit(body.agent, body.user)
    return Response(CONVERSATION.dump_json(await mind.conversation(conversation).archive()), media_type=JSON)


@router.post("/conversations/{conversation}/restore", response_model=Conversation, responses=describe(404, 409))
async def restore_conversation(conversation: ConversationId, body: ConversationScope, admit: Admitted) -> Response:
    """Bring an archived or deleted conversation back as it was, with what was derived from it."""
    mind = await admit(body.agent, body.user)
    return Response(CONVERSATION.dump_json(await mind.conversation(conversation).restore()), media_type=JSON)


@router.post("/conversations/{conversation}/delete", response_model=Conversation, responses=describe(404, 409))
async def delete_conversation(conversation: ConversationId, body: ConversationScope, admit: Admitted) -> Response:
    """Make a conversation invisible, with all that was derived from it; it can be restored until it is purged."""
    mind = await admit(body.agent, body.user)
    return Response(CONVERSATION.dump_json(await mind.conversation(conversation).delete()), media_type=JSON)


@router.post("/conversations/{conversation}/purge", response_model=PurgeReceipt, responses=describe(404))
async def purge_conversation(conversation: ConversationId, body: ConversationScope, admit: Admitted) -> Response:
    """Erase a conversation for good, and say in numbers what went; a large one is finished by a worker."""
    mind = await admit(body.agent, body.user)
    return Response(RECEIPT.dump_json(await mind.conversation(conversation).purge()), media_type=JSON)


@router.get("/conversations/{conversation}/receipts", response_model=PurgeReceipts, responses=describe())
async def list_receipts(
    conversation: ConversationId, agent: Agent, admit: Admitted, user: User = "", limit: Limit = 50
) -> Response:
    """List what purges of conversations of this name removed, the latest first."""
    mind = await admit(agent, user)
    receipts = await mind.conversation(conversation).receipts(limit)
    return Response(PurgeReceipts(receipts=receipts).model_dump_json(), media_type=JSON)


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
