"""Import conversations: known messages stay, new ones follow their parents, branch by branch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from recollect.core.conversations.appends import CLOSED, check_conversation, check_messages, count_characters
from recollect.core.imports.found import CONVERSATIONS, MESSAGES, FoundConversation, FoundMessage
from recollect.core.service.portions import divide
from recollect.models.conversations import LEGACY, NewMessage
from recollect.models.service import Scope
from recollect.store.imports.progress import Label, keep, read_standing
from recollect.verbs.conversations.append import append
from recollect.verbs.imports.progress import MOST_AT_ONCE, MOST_CHARACTERS, ImportRun

CLOSED_HERE = "conversations deleted here: skipped"


async def bring_conversation(run: ImportRun, conversation: FoundConversation) -> None:
    """Import one conversation, or note why not."""
    ledger, scope = run.ledger, run.place(conversation.owner)
    standing = await read_standing(run.parts.database, scope, conversation.id, run.ours)
    if standing.state in CLOSED:
        ledger.remarks[CLOSED_HERE] += 1
        ledger.skipped[CONVERSATIONS] += 1
        ledger.skipped[MESSAGES] += len(conversation.messages)
        return
    said = run.said.setdefault(scope, {})
    ends: dict[str, UUID] = {**standing.known, **run.rehearsed.get((scope, conversation.id), {})}
    fresh = [each for each in conversation.messages if each.key not in ends]
    for batch in divide(fresh, lambda each: count_characters(each.message), MOST_AT_ONCE, MOST_CHARACTERS):
        ids = await write(run, scope, conversation.id, follow(batch, ends))
        ends.update(zip((each.key for each in batch), ids, strict=True))
    said.update(ends)
    if run.wanted.dry_run:
        run.rehearsed[scope, conversation.id] = ends
    ledger.imported[MESSAGES] += len(fresh)
    ledger.known[MESSAGES] += len(conversation.messages) - len(fresh)
    (ledger.imported if fresh else ledger.known)[CONVERSATIONS] += 1
    if not standing.kept and not run.wanted.dry_run:
        label = Label(run.ours, conversation.name, conversation.metadata, conversation.created_at)
        await keep(run.parts.database, scope, conversation.id, label)


def follow(batch: Sequence[FoundMessage], ends: dict[str, UUID]) -> list[NewMessage]:
    """Let every message follow its parent, which is stored, or earlier in the same batch."""
    positions: dict[str, int] = {}
    new: list[NewMessage] = []
    for position, each in enumerate(batch):
        if each.parent is None:
            new.append(replace(each.message, root=True))
        else:
            parent = positions[each.parent] if each.parent in positions else ends[each.parent]
            new.append(replace(each.message, parent=parent))
        positions[each.key] = position
    return new


async def write(run: ImportRun, scope: Scope, conversation: str, new: list[NewMessage]) -> list[UUID]:
    """Append messages and return their ids; in a dry run, only check them."""
    if run.wanted.dry_run:
        check_conversation(conversation)
        check_messages(new)
        # Their ids are never needed: nothing is written that could follow them.
        return [LEGACY] * len(new)
    return [each.id for each in await append(run.parts, run.caller, scope, conversation, new)]
