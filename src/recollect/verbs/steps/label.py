"""Label: say of every user's message what it is about, in words of its own."""

from __future__ import annotations

from dataclasses import replace

from recollect.core.conversations.messages import said
from recollect.core.text import phrases
from recollect.models.memories import Role
from recollect.verbs.steps.draft import Desk, Draft


async def label(_: Desk, draft: Draft) -> Draft:
    """Name the topic of each user's message."""
    labels = {message.id: phrases.label([said(message)]) for message in draft.messages if message.role is Role.USER}
    return replace(draft, labels=labels)
