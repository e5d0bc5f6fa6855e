"""Import another system's export, document by document: parsed by pure functions, written by the shared code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

from recollect.core.imports.formats import check_order, refuse
from recollect.core.imports.found import MALFORMED, MESSAGES, FoundConversation, ImportedData
from recollect.core.text.checks import check_scope
from recollect.errors import InvalidInputError
from recollect.models.imports import Brought, Document, FileImport, ImportReport
from recollect.models.memories import JSON
from recollect.models.service import Caller, Scope
from recollect.verbs.imports.conversations import bring_conversation
from recollect.verbs.imports.memories import bring_facts, bring_memories
from recollect.verbs.imports.progress import SIDE_BY_SIDE, THINGS, ImportRun, Progress, side_by_side
from recollect.verbs.parts import Parts

READING = "file"


async def bring_file(
    parts: Parts, caller: Caller, wanted: FileImport, documents: Iterable[Document], report: Progress
) -> ImportReport:
    """Import what is new in a file; vectors follow by a job."""
    check_scope(wanted.agent, wanted.user)
    reader = check_order(wanted)
    run = ImportRun(replace(parts, embedder=None), caller, wanted, report)
    coming = iter(documents)
    first: JSON = None
    while batch := list(islice(coming, SIDE_BY_SIDE)):
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
    for start in range(0, len(conversations), SIDE_BY_SIDE):
        together: dict[tuple[Scope, str], list[FoundConversation]] = {}
        for conversation in conversations[start : start + SIDE_BY_SIDE]:
            together.setdefault((run.find_scope(conversation.owner), conversation.id), []).append(conversation)
        await side_by_side(bring_in_turn(run, same) for same in together.values())
        run.show()
    for data in pieces:
        await bring_memories(run, data.memories)
        await bring_facts(run, data.facts)


async def bring_in_turn(run: ImportRun, same: Sequence[FoundConversation]) -> None:
    """Import all entries of a file for one conversation in order, so that each sees what came before."""
    for conversation in same:
        await bring_conversation(run, conversation)


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
