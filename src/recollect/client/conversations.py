"""The SDK's view of one conversation of a scope on a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from recollect.client.bodies import JsonType, to_cue_body, to_message_body, to_window_body
from recollect.client.fading import Sender
from recollect.core.conversations.messages import Utterance, as_messages
from recollect.models.conversations import (
    Appended,
    Context,
    Conversation,
    History,
    Leaf,
    PurgeReceipt,
    Reply,
    Shares,
    Window,
)
from recollect.models.knowledge import StoredSegment
from recollect.models.memories import JSON
from recollect.models.recall import Cue

CONVERSATION, CONTEXT, HISTORY = JsonType(Conversation), JsonType(Context), JsonType(History)
RECEIPT, REPLY = JsonType(PurgeReceipt), JsonType(Reply)
LONGEST_ANSWER_SECONDS = 3_900.0
"""Longer than any server waits for its chat model."""
# Answers that are a list come as an object with one field.
APPENDED, LEAVES = JsonType(dict[str, list[Appended]]), JsonType(dict[str, list[Leaf]])
PURGES, SEGMENTS = JsonType(dict[str, list[PurgeReceipt]]), JsonType(dict[str, list[StoredSegment]])


@dataclass(frozen=True, slots=True)
class RemotePlace:
    """Where one conversation lies on a server."""

    client: Sender
    agent: str
    user: str
    conversation: str

    def _scope(self) -> dict[str, Any]:
        return {"agent": self.agent, "user": self.user}

    def _talk(self) -> dict[str, Any]:
        return self._scope() | {"conversation": self.conversation}

    def _path(self, place: str = "") -> str:
        return f"/v1/conversations/{quote(self.conversation, safe='')}{place}"

    async def _get(self, place: str = "", **parameters: str) -> bytes:
        return await self.client.send("GET", self._path(place), params=self._scope() | parameters)

    async def _post(self, place: str) -> bytes:
        return await self.client.send("POST", self._path(place), json=self._scope())


@dataclass(frozen=True, slots=True)
class RemoteConversation(RemotePlace):
    """One conversation on a server."""

    async def append(self, messages: Utterance | Sequence[Utterance], *, idempotency_key: str = "") -> list[Appended]:
        """Append one or many messages; without a key of yours one is made up, so that retries are safe."""
        body = self._talk() | {"messages": [to_message_body(message) for message in as_messages(messages)]}
        headers = {"Idempotency-Key": idempotency_key or uuid4().hex}
        answer = await self.client.send("POST", "/v1/messages", json=body, headers=headers)
        return APPENDED.validate_json(answer)["messages"]

    async def history(self, window: Window | int = Window()) -> History:  # noqa: B008 - a frozen value
        """Give back the newest whole turns of a thread that fit a budget; a number is a budget in tokens."""
        body = self._talk() | to_window_body(Window(window) if isinstance(window, int) else window)
        return HISTORY.validate_json(await self.client.send("POST", "/v1/history", json=body))

    async def context(
        self,
        cue: str | Cue,
        budget: int = 4_000,
        *,
        shares: Shares = Shares(),  # noqa: B008 - a frozen value
        window: Window = Window(),  # noqa: B008 - a frozen value
        system: str = "",
    ) -> Context:
        """Give back one prompt within a budget in tokens: the newest turns, what the cue reminds of, the summary."""
        # The cue's times are the prompt's.
        body = self._talk() | to_window_body(window) | to_cue_body(Cue(cue) if isinstance(cue, str) else cue)
        del body["max_tokens"]
        divided = {f"{name}_share": share for name, share in asdict(shares).items()}
        body |= divided | {"budget": budget, "system": system}
        return CONTEXT.validate_json(await self.client.send("POST", "/v1/context", json=body))

    async def converse(
        self,
        text: str,
        budget: int = 4_000,
        *,
        window: Window = Window(),  # noqa: B008 - a frozen value
        system: str = "",
        report: Callable[[Context], None] | None = None,
        timeout_seconds: float | None = None,
    ) -> Reply:
        """Answer by the server's chat model, as long as it takes; append question and answer together, or neither.

        It is asked once: where no answer arrives, the history says whether there was one. The prompt is reported
        together with the answer.
        """
        asked = {
            name: value for name, value in to_window_body(window).items() if name not in {"max_tokens", "as_of", "at"}
        }
        body = self._talk() | asked | {"text": text, "budget": budget, "system": system}
        seconds = LONGEST_ANSWER_SECONDS if timeout_seconds is None else timeout_seconds
        reply = REPLY.validate_json(await self.client.send_once("POST", "/v1/converse", seconds, json=body))
        if report is not None:
            report(reply.context)
        return reply

    async def leaves(self, limit: int = 50) -> list[Leaf]:
        """List where the conversation's threads end, newest first; each can be a history's leaf."""
        return LEAVES.validate_json(await self._get("/leaves", limit=str(limit)))["leaves"]

    async def segments(self, limit: int = 50, after: int = 0) -> list[StoredSegment]:
        """List the conversation's segments in order, each on one topic; `after` is the number of a message."""
        answer = await self._get("/segments", limit=str(limit), after=str(after))
        return SEGMENTS.validate_json(answer)["segments"]

    async def close_segment(self) -> list[StoredSegment]:
        """End the topic that is still running, as if another had come; list all segments."""
        return SEGMENTS.validate_json(await self._post("/segments"))["segments"]

    async def read(self) -> Conversation:
        """Read the conversation's name, state and times."""
        return CONVERSATION.validate_json(await self._get())

    async def describe(self, name: str | None = None, metadata: Mapping[str, JSON] | None = None) -> None:
        """Give the conversation a name, or metadata of your own; what is None stays as it is."""
        given = {"name": name} | ({} if metadata is None else {"metadata": dict(metadata)})
        await self.client.send("PATCH", self._path(), json=self._scope() | given)

    async def archive(self) -> Conversation:
        """Take the conversation out of recall; it stays readable, and the next message brings it back."""
        return CONVERSATION.validate_json(await self._post("/archive"))

    async def restore(self) -> Conversation:
        """Bring an archived or deleted conversation back as it was, with what was derived from it."""
        return CONVERSATION.validate_json(await self._post("/restore"))

    async def delete(self) -> Conversation:
        """Make the conversation invisible, with all that was derived from it; it can be restored until it is purged."""
        return CONVERSATION.validate_json(await self._post("/delete"))

    async def purge(self) -> PurgeReceipt:
        """Erase the conversation for good; what does not fit into the call is finished by a job."""
        return RECEIPT.validate_json(await self._post("/purge"))

    async def receipts(self, limit: int = 50) -> list[PurgeReceipt]:
        """List what purges of conversations of this name removed, the latest first."""
        return PURGES.validate_json(await self._get("/receipts", limit=str(limit)))["receipts"]
