"""Import conversations: known messages stay, new ones follow their parents, branch by branch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from recollect.core.conversations.appends import CLOSED, check_conversation, check_messages, count_characters
from recollect.core.imports.parsed import CONVERSATIONS, MESSAGES, ParsedConversation, ParsedMessage
from recollect.core.service.batches import divide
from recollect.models.conversations import LEGACY, NewMessage
from recollect.models.service import Scope
from recollect.store.imports.progress import KnownConversation, Label, keep, read_standing
from recollect.verbs.conversations.append import append_each
from recollect.verbs.imports.progress import MAX_BATCH_ITEMS, MAX_CHARACTERS, ImportRun

CLOSED_HERE = "conversations deleted here: skipped"
MAX_TRANSACTION_CHARACTERS, MIN_MESSAGE_CHARACTERS = 500_000, 500
"""Maximum number of characters per transaction, which blocks other writes, and minimum count of a message."""


@dataclass(frozen=True, slots=True)
class ImportingConversation:
    """A conversation to import: its new messages, and its stored messages by their ID at the source."""

    conversation: ParsedConversation
    standing: KnownConversation
    fresh: Sequence[ParsedMessage]
    ends: dict[str, UUID]
    batches: Iterator[Sequence[ParsedMessage]]


async def import_conversations(run: ImportRun, scope: Scope, found: Sequence[ParsedConversation]) -> None:
    """Import conversations of one scope with different IDs, or record why not."""
    known = await read_standing((await run.parts.at(scope)).database, scope, [each.id for each in found], run.ours)
    arriving: list[ImportingConversation] = []
    for conversation in found:
        run.place(conversation.owner)
        standing = known[conversation.id]
        if standing.state in CLOSED:
            skip(run, conversation)
        else:
            arriving.append(begin(run, scope, conversation, standing))
    # A batch follows the previous one of its conversation, so only batches of different conversations are combined.
    while batches := [(each, batch) for each in arriving if (batch := next(each.batches, None))]:
        for portion in divide(batches, measure, len(batches), MAX_TRANSACTION_CHARACTERS):
            await append_batches(run, scope, portion)
    for each in arriving:
        count(run, scope, each)
    labels = {each.conversation.id: label(run, each) for each in arriving if not each.standing.kept}
    if labels and not run.wanted.dry_run:
        await keep((await run.parts.at(scope)).database, scope, labels)


def measure(batch: tuple[ImportingConversation, Sequence[ParsedMessage]]) -> int:
    """Count the characters to append to one conversation."""
    return sum(max(MIN_MESSAGE_CHARACTERS, count_characters(each.message)) for each in batch[1])


def begin(
    run: ImportRun, scope: Scope, conversation: ParsedConversation, standing: KnownConversation
) -> ImportingConversation:
    """Find the new messages of a conversation, and divide them into batches."""
    ends: dict[str, UUID] = {**standing.known, **run.rehearsed.get((scope, conversation.id), {})}
    fresh = [each for each in conversation.messages if each.key not in ends]
    batches = divide(fresh, lambda each: count_characters(each.message), MAX_BATCH_ITEMS, MAX_CHARACTERS)
    return ImportingConversation(conversation, standing, fresh, ends, batches)


def skip(run: ImportRun, conversation: ParsedConversation) -> None:
    """Count a conversation that was deleted here."""
    run.ledger.remarks[CLOSED_HERE] += 1
    run.ledger.skipped[CONVERSATIONS] += 1
    run.ledger.skipped[MESSAGES] += len(conversation.messages)


def count(run: ImportRun, scope: Scope, each: ImportingConversation) -> None:
    """Count an imported or known conversation, and remember the IDs of its messages."""
    ledger = run.ledger
    run.said.setdefault(scope, {}).update(each.ends)
    if run.wanted.dry_run:
        run.rehearsed[scope, each.conversation.id] = each.ends
    ledger.imported[MESSAGES] += len(each.fresh)
    ledger.known[MESSAGES] += len(each.conversation.messages) - len(each.fresh)
    (ledger.imported if each.fresh else ledger.known)[CONVERSATIONS] += 1


def label(run: ImportRun, each: ImportingConversation) -> Label:
    """Return the origin of a conversation."""
    found = each.conversation
    return Label(run.ours, found.name, found.metadata, found.created_at)


def link_to_parents(batch: Sequence[ParsedMessage], ends: dict[str, UUID]) -> list[NewMessage]:
    """Link each message to its parent, which is stored, or earlier in the same batch."""
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


async def append_batches(
    run: ImportRun, scope: Scope, portion: Sequence[tuple[ImportingConversation, Sequence[ParsedMessage]]]
) -> None:
    """Append a batch to each of some conversations, and store the IDs; in a dry run, only check them."""
    asked = [(each.conversation.id, link_to_parents(batch, each.ends)) for each, batch in portion]
    if run.wanted.dry_run:
        for conversation, new in asked:
            check_conversation(conversation)
            check_messages(new)
        # Their IDs are never needed: nothing is written that could follow them.
        written = [[LEGACY] * len(new) for _, new in asked]
    else:
        written = await append_each(await run.parts.at(scope), run.caller, scope, asked)
    for (each, batch), ids in zip(portion, written, strict=True):
        each.ends.update(zip((message.key for message in batch), ids, strict=True))
