"""Bring another system's export over, document by document: read purely, then written by what every import shares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

from recollect.core.imports.formats import check_order, refuse
from recollect.core.imports.found import MALFORMED, MESSAGES, FoundTalk, Harvest
from recollect.core.text.checks import check_scope
from recollect.errors import InvalidInputError
from recollect.models.imports import Arrival, Brought, Document, FileImport
from recollect.models.memories import JSON
from recollect.models.service import Caller, Scope
from recollect.verbs.imports.conversations import bring_talk
from recollect.verbs.imports.memories import bring_facts, bring_memories
from recollect.verbs.imports.progress import SIDE_BY_SIDE, THINGS, Errand, Progress, side_by_side
from recollect.verbs.parts import Parts

READING = "file"


async def bring_file(
    parts: Parts, caller: Caller, wanted: FileImport, documents: Iterable[Document], report: Progress
) -> Arrival:
    """Bring over what is new in a file; vectors follow by a job."""
    check_scope(wanted.agent, wanted.user)
    reader = check_order(wanted)
    errand = Errand(replace(parts, embedder=None), caller, wanted, report)
    coming = iter(documents)
    first: JSON = None
    while batch := list(islice(coming, SIDE_BY_SIDE)):
        first = batch[0].value if first is None else first
        try:
            harvests = [reader.read(document.value) for document in batch]
        except InvalidInputError:
            raise refuse(wanted, batch[0].value) from None
        await bring_harvests(errand, harvests)
        report(READING, batch[-1].done, batch[-1].total)
    if is_foreign(errand):
        raise refuse(wanted, first)
    return conclude(errand)


async def bring_harvests(errand: Errand, harvests: Sequence[Harvest]) -> None:
    """Bring over what was found in some documents: what was said first, then what was learned from it."""
    for harvest in harvests:
        errand.seen.update(harvest.seen)
        errand.ledger.remarks.update(harvest.remarks)
    talks = [talk for harvest in harvests for talk in harvest.talks]
    for start in range(0, len(talks), SIDE_BY_SIDE):
        together: dict[tuple[Scope, str], list[FoundTalk]] = {}
        for talk in talks[start : start + SIDE_BY_SIDE]:
            together.setdefault((errand.find_scope(talk.owner), talk.id), []).append(talk)
        await side_by_side(bring_in_turn(errand, same) for same in together.values())
        errand.show()
    for harvest in harvests:
        await bring_memories(errand, harvest.memories)
        await bring_facts(errand, harvest.facts)


async def bring_in_turn(errand: Errand, same: Sequence[FoundTalk]) -> None:
    """Bring over what a file has of one conversation, each after the other, so that it sees what came before."""
    for talk in same:
        await bring_talk(errand, talk)


def is_foreign(errand: Errand) -> bool:
    """Tell whether nothing at all in a file was of the format."""
    seen = sum(errand.seen.values())
    return seen > 0 and errand.ledger.remarks[MALFORMED] == seen


def conclude(errand: Errand) -> Arrival:
    """Set what was done against what there was."""
    imported, known = errand.ledger.imported, errand.ledger.known
    brought = tuple(
        Brought(thing, total, imported[thing], known[thing], total - imported[thing] - known[thing])
        for thing in THINGS
        if (total := errand.seen[thing])
    )
    return Arrival(brought, dict(+errand.ledger.remarks), imported[MESSAGES])
