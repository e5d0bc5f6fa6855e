"""Import another system's export, document by document: parsed by pure functions, written by the shared code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from recollect.core.imports.formats import check_order, refuse
from recollect.core.imports.found import MALFORMED, MESSAGES, FoundConversation, ImportedData
from recollect.core.text.checks import check_scope
from recollect.errors import InvalidInputError
from recollect.models.imports import Brought, Document, FileImport, ImportReport
from recollect.models.memories import JSON
from recollect.models.service import Caller, Scope
from recollect.verbs.imports.conversations import bring_conversations
from recollect.verbs.imports.memories import bring_facts, bring_memories
from recollect.verbs.imports.progress import THINGS, ImportRun, Progress
from recollect.verbs.parts import Parts

READING = "file"
TOGETHER = 16
"""So many conversations are read and written at once."""


async def bring_file(
    parts: Parts, caller: Caller, wanted: FileImport, documents: Iterable[Document], report: Progress
) -> ImportReport:
    """Import what is new in a file; vectors follow by a job."""
    check_scope(wanted.agent, wanted.user)
    reader = check_order(wanted)
    run = ImportRun(replace(parts, embedder=None), caller, wanted, report)
    coming = iter(documents)
    first: JSON = None
    while batch := list(islice(coming, TOGETHER)):
        first = batch[0].value if first is None else first
        try:
            pieces = [reader.read(document.value) for document in batch]
        except InvalidInputError:
            raise refuse(wanted, batch[0].value) from None
        await bring_pieces(run, pieces)
        report(READING, batch[-1].done, batch[-1].total)
    if is_foreign(run):
        raise refuse(wanted, first)
    return conclude(run)


async def bring_pieces(run: ImportRun, pieces: Sequence[ImportedData]) -> None:
    """Import what was found in some documents: messages first, then what was learned from them."""
    for data in pieces:
        run.seen.update(data.seen)
        run.ledger.remarks.update(data.remarks)
    conversations = [conversation for data in pieces for conversation in data.conversations]
    for start in range(0, len(conversations), TOGETHER):
        for scope, same in part(run, conversations[start : start + TOGETHER]):
            await bring_conversations(run, scope, same)
        run.show()
    for data in pieces:
        await bring_memories(run, data.memories)
        await bring_facts(run, data.facts)


def part(
    run: ImportRun, conversations: Sequence[FoundConversation]
) -> Iterator[tuple[Scope, Sequence[FoundConversation]]]:
    """Part conversations by scope; entries of a file for one conversation come in turn, so each sees those before."""
    turns: list[dict[Scope, dict[str, FoundConversation]]] = []
    met: Counter[tuple[Scope, str]] = Counter()
    for conversation in conversations:
        scope = run.find_scope(conversation.owner)
        turn = met[scope, conversation.id]
        met[scope, conversation.id] += 1
        if turn == len(turns):
            turns.append({})
        turns[turn].setdefault(scope, {})[conversation.id] = conversation
    for turn_of_all in turns:
        for scope, same in turn_of_all.items():
            yield scope, list(same.values())


def is_foreign(run: ImportRun) -> bool:
    """Tell whether nothing in a file had the expected format."""
    seen = sum(run.seen.values())
    return seen > 0 and run.ledger.remarks[MALFORMED] == seen


def conclude(run: ImportRun) -> ImportReport:
    """Report what was done of what there was."""
    imported, known = run.ledger.imported, run.ledger.known
    brought = tuple(
        Brought(thing, total, imported[thing], known[thing], total - imported[thing] - known[thing])
        for thing in THINGS
        if (total := run.seen[thing])
    )
    return ImportReport(brought, dict(+run.ledger.remarks), imported[MESSAGES])
