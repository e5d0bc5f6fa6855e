"""Import another system's export by documents: pure functions parse it, shared code writes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from recollect.core.imports.formats import check_order, refuse
from recollect.core.imports.parsed import MALFORMED, MESSAGES, ImportedData, ParsedConversation
from recollect.core.text.checks import check_scope
from recollect.errors import InvalidInputError
from recollect.models.imports import Document, FileImport, ImportCount, ImportReport
from recollect.models.memories import JSON
from recollect.models.service import Caller, Scope
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.imports.conversations import import_conversations
from recollect.verbs.imports.memories import import_facts, import_memories
from recollect.verbs.imports.progress import THINGS, ImportRun, Progress

READING = "file"
TOGETHER = 16
"""Maximum number of conversations to read and write at once."""


async def import_file_entries(
    parts: Dependencies, caller: Caller, wanted: FileImport, documents: Iterable[Document], report: Progress
) -> ImportReport:
    """Import new entries of a file; a job adds the vectors."""
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
        await import_documents(run, pieces)
        report(READING, batch[-1].done, batch[-1].total)
    if is_foreign(run):
        raise refuse(wanted, first)
    return conclude(run)


async def import_documents(run: ImportRun, pieces: Sequence[ImportedData]) -> None:
    """Import the content of documents: messages first, then the memories and facts learned from them."""
    for data in pieces:
        run.seen.update(data.seen)
        run.ledger.remarks.update(data.remarks)
    conversations = [conversation for data in pieces for conversation in data.conversations]
    for start in range(0, len(conversations), TOGETHER):
        for scope, same in part(run, conversations[start : start + TOGETHER]):
            await import_conversations(run, scope, same)
        run.report_counts()
    for data in pieces:
        await import_memories(run, data.memories)
        await import_facts(run, data.facts)


def part(
    run: ImportRun, conversations: Sequence[ParsedConversation]
) -> Iterator[tuple[Scope, Sequence[ParsedConversation]]]:
    """Group conversations by scope; entries for one conversation come in separate groups, so each sees earlier ones."""
    turns: list[dict[Scope, dict[str, ParsedConversation]]] = []
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
    """Return whether no entry of a file had the expected format."""
    seen = sum(run.seen.values())
    return seen > 0 and run.ledger.remarks[MALFORMED] == seen


def conclude(run: ImportRun) -> ImportReport:
    """Report the numbers of imported, known and skipped entries."""
    imported, known = run.ledger.imported, run.ledger.known
    brought = tuple(
        ImportCount(thing, total, imported[thing], known[thing], total - imported[thing] - known[thing])
        for thing in THINGS
        if (total := run.seen[thing])
    )
    return ImportReport(brought, dict(+run.ledger.remarks), imported[MESSAGES])
