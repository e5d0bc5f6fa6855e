"""The steps that need only the model or the text: label, summarize, extract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from recollect.core.conversations.messages import memory_text
from recollect.core.knowledge.transcripts import list_spoken
from recollect.core.text import phrases
from recollect.models.conversations import Message, MessageStatus
from recollect.models.knowledge import ParsedExtraction
from recollect.models.memories import Role
from recollect.verbs.knowledge.steps.draft import Draft, StepContext

EVERYDAY = 2
SPEAKING = frozenset({Role.USER, Role.ASSISTANT})


async def label(_: StepContext, draft: Draft) -> Draft:
    """Label the topic of each user's message."""
    labels = {
        message.id: phrases.label([memory_text(message)]) for message in draft.messages if message.role is Role.USER
    }
    return replace(draft, labels=labels)


async def summarize(context: StepContext, draft: Draft) -> Draft:
    """Fill in summary, label, keywords, importance and paths; values that the model omits come from the text."""
    extraction = await context.extract(draft)
    found = extraction.parsed if extraction else ParsedExtraction()
    texts = [memory_text(message) for message in draft.messages if is_dialogue(message)]
    return replace(
        draft,
        summary=found.summary or phrases.summarize(texts),
        label=found.label or draft.label or phrases.label(texts),
        keywords=found.keywords or phrases.find_keywords(texts),
        importance=found.importance or draft.importance,
        ratings=rate_messages(draft.messages, found.rated),
        paths=found.paths,
    )


def rate_messages(messages: Sequence[Message], rated: Mapping[int, int] | None) -> dict[UUID, int]:
    """Return the importance of each message that a model read; unnamed ones have the everyday value."""
    if rated is None:
        return {}
    return {message.id: rated.get(number, EVERYDAY) for number, message in enumerate(list_spoken(messages), 1)}


def is_dialogue(message: Message) -> bool:
    """Return whether a message is part of the dialogue: no tool result, and not failed."""
    return message.role in SPEAKING and message.status is MessageStatus.DONE


async def extract(context: StepContext, draft: Draft) -> Draft:
    """Fill in mentions and statements, and the facts that the statements may replace."""
    extraction = await context.extract(draft)
    if extraction is None:
        return draft
    found = extraction.parsed
    return replace(draft, mentions=found.mentions, statements=found.statements, shown=extraction.shown)
