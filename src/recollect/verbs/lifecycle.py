"""Lifecycle: archive, restore, delete and purge a conversation; what is not done in time is left to a job."""

from __future__ import annotations

import time

from recollect.core.conversations.appends import check_conversation
from recollect.core.text.checks import check_limit
from recollect.errors import NotFoundError
from recollect.models.conversations import Conversation, ConversationState, PurgeReceipt
from recollect.models.service import Caller, Scope
from recollect.store.conversations import lifecycle
from recollect.store.conversations.lifecycle import Change
from recollect.verbs.conversations import get_conversation
from recollect.verbs.history import UNKNOWN
from recollect.verbs.parts import Parts

SETTLE_SECONDS = 2.0
"""A call that changes a state works on it so long; a conversation of usual size is done by then, without a worker."""


async def bring(
    parts: Parts, caller: Caller, scope: Scope, conversation: str, wanted: ConversationState
) -> Conversation:
    """Bring a conversation into a state, and its memories after it as far as there is time."""
    await change(parts, caller, scope, conversation, wanted)
    return await get_conversation(parts, scope, conversation)


async def purge(parts: Parts, caller: Caller, scope: Scope, conversation: str) -> PurgeReceipt:
    """Erase a conversation for good, whatever its state, and give the receipt; a purge under way is gone on with."""
    await change(parts, caller, scope, conversation, ConversationState.PURGING)
    return (await lifecycle.list_receipts(parts.database, scope, conversation, 1))[0]


async def list_receipts(parts: Parts, scope: Scope, conversation: str, limit: int) -> list[PurgeReceipt]:
    """List what purges removed, the latest first; of one conversation, or of all in the scope if none is named."""
    if conversation:
        check_conversation(conversation)
    check_limit(limit)
    return await lifecycle.list_receipts(parts.database, scope, conversation, limit)


async def change(parts: Parts, caller: Caller, scope: Scope, conversation: str, wanted: ConversationState) -> None:
    """Change a state in one small transaction, then move memories chunk by chunk until the time is over."""
    check_conversation(conversation)
    started = time.monotonic()
    scope_id = await lifecycle.change(parts.database, scope, conversation, Change(wanted, caller.origin))
    if scope_id is None:
        raise NotFoundError(UNKNOWN)
    while time.monotonic() - started < SETTLE_SECONDS:
        step = await lifecycle.settle_chunk(parts.database, scope_id, conversation, rederive=parts.chat is not None)
        if step is None or step.settled:
            return
