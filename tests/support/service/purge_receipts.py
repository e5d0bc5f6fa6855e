"""The receipts of a conversation's purges, for the caller of a view of it."""

from __future__ import annotations

from dataclasses import fields

from recollect.mind.conversations import Conversation
from recollect.models.conversations import ListedReceipt, PurgeReceipt
from recollect.models.service import KeyBinding
from recollect.verbs.conversations.receipts import page_receipts


async def receipts_of(view: Conversation) -> list[ListedReceipt]:
    """List the receipts of a conversation, the latest first."""
    access = view.access
    bounds = KeyBinding(access.scope.agent, access.scope.user)
    page = await page_receipts(access.parts, access.caller, bounds, view.conversation, "", 50)
    return list(page.receipts)


def as_purged(listed: ListedReceipt) -> PurgeReceipt:
    """Return a receipt without its scope, as a purge over HTTP does."""
    return PurgeReceipt(**{each.name: getattr(listed, each.name) for each in fields(PurgeReceipt)})
