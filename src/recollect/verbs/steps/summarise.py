"""Summarise: say what a segment came to, by the model if there is one, else in the segment's own sentences."""

from __future__ import annotations

from dataclasses import replace

from recollect.core.conversations.messages import said
from recollect.core.text import phrases
from recollect.models.conversations import Message, MessageStatus
from recollect.models.knowledge import Salvaged
from recollect.models.memories import Role
from recollect.verbs.steps.draft import Desk, Draft

SPEAKING = frozenset({Role.USER, Role.ASSISTANT})


async def summarise(desk: Desk, draft: Draft) -> Draft:
    """Fill in summary, label, keywords, importance and paths; what the model left out comes from the text itself."""
    digested = await desk.digest(draft)
    found = digested.salvaged if digested else Salvaged()
    texts = [said(message) for message in draft.messages if speaks(message)]
    return replace(
        draft,
        summary=found.summary or phrases.summarise(texts),
        label=found.label or draft.label or phrases.label(texts),
        keywords=found.keywords or phrases.find_keywords(texts),
        importance=found.importance or draft.importance,
        paths=found.paths,
    )


def speaks(message: Message) -> bool:
    """Tell whether a message is part of what people say: no tool's result, nothing that failed."""
    return message.role in SPEAKING and message.status is MessageStatus.DONE
