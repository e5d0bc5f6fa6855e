"""A conversation as LangChain's chat history: a message is kept once, however often a graph is replayed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, RemoveMessage, ToolMessage
from langchain_core.messages.utils import convert_to_messages, message_chunk_to_message

from recollect.errors import NotFoundError
from recollect.models import History, HistoryOptions, NewMessage, Part, PartType, Role
from recollect_langchain.connection import Connection, Steps, awalk, walk

NEWEST_TOKENS = 2_000
ROLES = {"human": Role.USER, "ai": Role.ASSISTANT, "system": Role.SYSTEM, "tool": Role.TOOL}
ROLES |= {"user": Role.USER, "assistant": Role.ASSISTANT, "developer": Role.SYSTEM, "function": Role.TOOL}
SHOWN = {"image", "audio", "video", "file", "text-plain", "non_standard"}
"""What a message may hold that is no text, and is named in its place where there is nothing else."""


class RecollectChatMessageHistory(BaseChatMessageHistory):
    """One conversation of a scope; what is said in it is recalled in all others of that scope."""

    def __init__(self, connection: Connection, conversation: str, *, max_tokens: int = 100_000) -> None:
        self._connection, self._name = connection, conversation
        self._window = HistoryOptions(max_tokens, unanswered=True)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """Read the newest turns that fit the budget, the oldest first."""
        return walk(reading(self._window), self._connection.mind.conversation(self._name))

    async def aget_messages(self) -> list[BaseMessage]:
        """Read the same from an event loop."""
        mind = await self._connection.open_mind()
        return await awalk(reading(self._window), mind.conversation(self._name))

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append what is not there yet by its id: a graph may hand over all its messages, again and again."""
        walk(appending(messages, self._window), self._connection.mind.conversation(self._name))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append the same from an event loop."""
        mind = await self._connection.open_mind()
        await awalk(appending(messages, self._window), mind.conversation(self._name))

    def clear(self) -> None:
        """Erase the conversation for good, with what was derived from it alone."""
        walk(purging(), self._connection.mind.conversation(self._name))

    async def aclear(self) -> None:
        """Erase it from an event loop."""
        mind = await self._connection.open_mind()
        await awalk(purging(), mind.conversation(self._name))


def reading(window: HistoryOptions) -> Steps[list[BaseMessage]]:
    """Read a thread; one that nobody has begun is empty."""
    try:
        history: History = yield ("history", window)
    except NotFoundError:
        return []
    messages = convert_to_messages([dict(message) for message in history.prompt])
    for message, kept in zip(messages, history.messages, strict=True):
        message.id = kept.external_id or str(kept.id)
    return messages


def appending(messages: Sequence[BaseMessage], window: HistoryOptions) -> Steps[None]:
    """Append behind the last message that is known; the service recognizes those that it has on another branch."""
    # Mostly the newest turns are enough to find the place: what comes before it need not be sent.
    known = yield from knowing(replace(window, max_tokens=min(NEWEST_TOKENS, window.max_tokens)))
    if new := to_new(messages, known):
        yield ("append", new)


def knowing(window: HistoryOptions) -> Steps[dict[str, UUID]]:
    """Read which messages are there, by the ids that LangChain knows them by."""
    try:
        history: History = yield ("history", window)
    except NotFoundError:
        return {}
    return {kept.external_id or str(kept.id): kept.id for kept in history.messages}


def purging() -> Steps[None]:
    """Purge; one that nobody has begun is empty already."""
    with suppress(NotFoundError):
        yield ("purge",)


def to_new(messages: Sequence[BaseMessage], known: Mapping[str, UUID]) -> list[NewMessage]:
    """Choose what comes after the last known message, and let it follow that one."""
    said = [message_chunk_to_message(message) for message in messages if not isinstance(message, RemoveMessage)]
    places = [place for place, message in enumerate(said) if message.id in known]
    new = [to_message(message) for message in said[places[-1] + 1 if places else 0 :]]
    if places and new:
        new[0] = replace(new[0], parent=known[said[places[-1]].id or ""])
    return new


def to_message(message: BaseMessage) -> NewMessage:
    """Write a message as Recollect has it: its text, calls of tools, and what tools answered."""
    parts: list[Part] = []
    if isinstance(message, ToolMessage):
        parts = [Part(PartType.TOOL_RESULT, to_text(message), message.name or "", call_id=message.tool_call_id)]
    elif isinstance(message, AIMessage) and message.tool_calls:
        parts = [Part(PartType.TEXT, message.text)] if message.text else []
        for call in message.tool_calls:
            parts.append(Part(PartType.TOOL_CALL, json.dumps(call["args"]), call["name"], call_id=call["id"] or ""))
    content = "" if parts else to_text(message)
    return NewMessage(to_role(message), content, message.name or "", tuple(parts), external_id=message.id or "")


def to_role(message: BaseMessage) -> Role:
    """Say who speaks, or which messages can be kept."""
    speaker = message.role if isinstance(message, ChatMessage) else message.type
    if speaker not in ROLES:
        raise ValueError(f"{type(message).__name__} has none of the types and roles that are kept: {', '.join(ROLES)}")
    return ROLES[speaker]


def to_text(message: BaseMessage) -> str:
    """Give the text of a message, or where it has none the names of what it holds instead, such as `[image]`."""
    blocks = [] if message.text.strip() else message.content_blocks
    return "\n".join(f"[{block['type']}]" for block in blocks if block["type"] in SHOWN) or message.text
