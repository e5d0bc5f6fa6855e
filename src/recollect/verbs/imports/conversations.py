"""Import conversations: known messages stay, new ones follow their parents, branch by branch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

from recollect.core.conversations.appends import CLOSED, check_conversation, check_messages, count_characters
from recollect.core.imports.found import CONVERSATIONS, MESSAGES, FoundConversation, FoundMessage
from recollect.core.service.portions import divide
from recollect.models.conversations import LEGACY, NewMessage
from recollect.models.service import Scope
from recollect.store.imports.progress import KnownConversation, Label, keep, read_standing
from recollect.verbs.conversations.append import append_each
from recollect.verbs.imports.progress import MOST_AT_ONCE, MOST_CHARACTERS, ImportRun
from recollect.verbs.parts import fit_version

CLOSED_HERE = "conversations deleted here: skipped"
MOST_TOGETHER, LEAST_CHARACTERS = 500_000, 500
"""How many characters one transaction appends at most, and how many the shortest message counts as: whoever writes to
the scope meanwhile waits."""


@dataclass(frozen=True, slots=True)
class Arriving:
    """A conversation that is being imported: what of it is new, and what is here by its id at the source."""

    conversation: FoundConversation
    standing: KnownConversation
    fresh: Sequence[FoundMessage]
    ends: dict[str, UUID]
    batches: Iterator[Sequence[FoundMessage]]


async def bring_conversations(run: ImportRun, scope: Scope, found: Sequence[FoundConversation]) -> None:
    """Import conversations of one scope that all have different ids, or note why not."""
    known = await read_standing((await run.parts.at(scope)).database, scope, [each.id for each in found], run.ours)
    arriving: list[Arriving] = []
    for conversation in found:
        run.place(conversation.owner)
        standing = known[conversation.id]
        if standing.state in CLOSED:
            skip(run, conversation)
        else:
            arriving.append(begin(run, scope, conversation, standing))
    # A batch follows the one before it of its conversation, so only those of different conversations go together.
    while batches := [(each, batch) for each in arriving if (batch := next(each.batches, None))]:
        for portion in divide(batches, measure, len(batches), MOST_TOGETHER):
            await write(run, scope, portion)
    for each in arriving:
        count(run, scope, each)
    labels = {each.conversation.id: label(run, each) for each in arriving if not each.standing.kept}
    if labels and not run.wanted.dry_run:
        await keep((await run.parts.at(scope)).database, scope, labels)


def measure(batch: tuple[Arriving, Sequence[FoundMessage]]) -> int:
    """Count the characters of what is appended to one conversation."""
    return sum(max(LEAST_CHARACTERS, count_characters(each.message)) for each in batch[1])


def begin(run: ImportRun, scope: Scope, conversation: FoundConversation, standing: KnownConversation) -> Arriving:
    """Find what of a conversation is new, and divide it."""
    ends: dict[str, UUID] = {**standing.known, **run.rehearsed.get((scope, conversation.id), {})}
    fresh = [each for each in conversation.messages if each.key not in ends]
    batches = divide(fresh, lambda each: count_characters(each.message), MOST_AT_ONCE, MOST_CHARACTERS)
    return Arriving(conversation, standing, fresh, ends, batches)


def skip(run: ImportRun, conversation: FoundConversation) -> None:
    """Count a conversation that was deleted here."""
    run.ledger.remarks[CLOSED_HERE] += 1
    run.ledger.skipped[CONVERSATIONS] += 1
    run.ledger.skipped[MESSAGES] += len(conversation.messages)


def count(run: ImportRun, scope: Scope, each: Arriving) -> None:
    """Count a conversation that was imported, or known, and remember where its messages are."""
    ledger = run.ledger
    run.said.setdefault(scope, {}).update(each.ends)
    if run.wanted.dry_run:
        run.rehearsed[scope, each.conversation.id] = each.ends
    ledger.imported[MESSAGES] += len(each.fresh)
    ledger.known[MESSAGES] += len(each.conversation.messages) - len(each.fresh)
    (ledger.imported if each.fresh else ledger.known)[CONVERSATIONS] += 1


def label(run: ImportRun, each: Arriving) -> Label:
    """Say where a conversation came from."""
    found = each.conversation
    return Label(run.ours, found.name, found.metadata, found.created_at)


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


async def write(run: ImportRun, scope: Scope, portion: Sequence[tuple[Arriving, Sequence[FoundMessage]]]) -> None:
    """Append a batch to each of some conversations, and note the ids; in a dry run, only check them."""
    asked = [(each.conversation.id, follow(batch, each.ends)) for each, batch in portion]
    if run.wanted.dry_run:
        for conversation, new in asked:
            check_conversation(conversation)
            check_messages(new)
        # Their ids are never needed: nothing is written that could follow them.
        written = [[LEGACY] * len(new) for _, new in asked]
    else:
        written = await fit_version(partial(append_each, await run.parts.at(scope), run.caller, scope, asked))
    for (each, batch), ids in zip(portion, written, strict=True):
        each.ends.update(zip((message.key for message in batch), ids, strict=True))
