"""A session of the OpenAI Agents SDK that lives in a conversation of Recollect."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from agents import SessionABC, TResponseInputItem
from agents.memory import SessionSettings

from recollect.client import RemoteMind
from recollect.errors import NotFoundError
from recollect.models import HistoryOptions, Message, NewMessage
from recollect_openai_agents.items import EXACT, fold, unfold

NAME = re.compile(r"[A-Za-z0-9._:@-]{1,128}")
MAX_MESSAGES = 1_000
MAX_CHARACTERS = 250_000
PAGE_TOKENS = 200_000
TOKENS_EACH = 500
"""What an item costs about; only how much is read at once depends on it."""
PURGE_PAUSE_SECONDS = 0.2


class RecollectSession(SessionABC):
    """The items of one session, kept as the messages of one conversation: recall, facts and context know them too."""

    def __init__(self, session_id: str, mind: RemoteMind, session_settings: SessionSettings | None = None) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self.mind = mind
        self.conversation = mind.conversation(name_conversation(session_id))

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Give back the newest items in their order, all of them where neither the call nor the settings say less."""
        settings = self.session_settings or SessionSettings()
        most = settings.limit if limit is None else limit
        if most == 0:
            return []
        wanted = None if most is None or most < 0 else most
        messages = await self._read(wanted)
        return [unfold(message) for message in (messages if wanted is None else messages[-wanted:])]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items; those of one call stay together, unless there is more than one append can carry."""
        for messages in pack([fold(item) for item in items]):
            await self.conversation.append(messages)

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the newest item off and give it back; its memory, and what was derived from it, are forgotten."""
        while found := await self._read(1):
            # Whoever else takes items off may have been faster; then there is another newest one.
            if found[-1].id in await self.mind.forget([found[-1].id]):
                return unfold(found[-1])
        return None

    async def clear_session(self) -> None:
        """Erase the conversation for good, with all that was derived from it; the session can be used again at once."""
        with suppress(NotFoundError):
            while (await self.conversation.purge()).finished_at is None:  # noqa: ASYNC110 - each call goes on with it
                await asyncio.sleep(PURGE_PAUSE_SECONDS)

    async def _read(self, most: int | None) -> list[Message]:
        """Read the newest messages, at least so many if there are, page by page towards the first one."""
        pages: list[Sequence[Message]] = []
        tokens = PAGE_TOKENS if most is None else min(PAGE_TOKENS, TOKENS_EACH * most)
        window = HistoryOptions(tokens, unanswered=True)
        with suppress(NotFoundError):
            while most is None or sum(map(len, pages)) < most:
                history = await self.conversation.history(window)
                pages.append(history.messages)
                if history.complete or not history.messages:
                    break
                window = replace(window, leaf=history.messages[0].parent)
        return [message for page in reversed(pages) for message in page]


def name_conversation(session_id: str) -> str:
    """Name the conversation like the session, or where that is no name of a conversation, by its hash."""
    if NAME.fullmatch(session_id) and session_id.strip("."):
        return session_id
    digest = hashlib.sha256(session_id.encode(errors="surrogatepass"))
    return f"session:{digest.hexdigest()}"


def pack(messages: Sequence[NewMessage]) -> Iterator[list[NewMessage]]:
    """Divide messages into appends of a size that the service takes."""
    packed: list[NewMessage] = []
    room = MAX_CHARACTERS
    for message in messages:
        size = len(message.content) + sum(len(part.text) for part in message.parts)
        size += len(str(message.metadata.get(EXACT, "")))
        if packed and (size > room or len(packed) == MAX_MESSAGES):
            yield packed
            packed, room = [], MAX_CHARACTERS
        packed.append(message)
        room -= size
    if packed:
        yield packed
