"""Import memories and facts: recognized by their ID at the source and their content, and written once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

from recollect.core.imports.parsed import FACTS, MEMORIES, TWICE, ParsedFactEntry, ParsedMemory, hash_fact, hash_memory
from recollect.core.imports.text import to_fields
from recollect.core.knowledge.new_facts import check_new_facts
from recollect.core.memories.checks import MAX_EVIDENCE, count_characters
from recollect.core.service.batches import divide
from recollect.errors import InvalidInputError
from recollect.models.conversations import LEGACY
from recollect.models.knowledge import Fact, NewFact
from recollect.models.memories import JSON, NewMemory
from recollect.models.service import Scope
from recollect.store.imports.progress import ImportedIds
from recollect.verbs.imports.progress import MAX_BATCH_ITEMS, MAX_CHARACTERS, ImportRun
from recollect.verbs.knowledge.facts import remember_facts
from recollect.verbs.memories.remember import remember, remember_in_bulk

T = TypeVar("T")
MAX_FACTS = 100
EARLIER = "earlier"
"""The metadata field in which a changed memory names its former version."""
CHANGED = "memories changed at the source: both versions are kept"
OTHERWISE = "facts with the same subject, predicate and object as another: imported as memories"


def label(metadata: Mapping[str, JSON], ours: str, key: str, content_hash: str) -> dict[str, JSON]:
    """Add the ID at the source and a hash of the content to metadata."""
    return {**metadata, ours: {**to_fields(metadata.get(ours)), "id": key, "hash": content_hash}}


async def import_memories(run: ImportRun, found: Sequence[ParsedMemory]) -> None:
    """Store new memories, scope by scope."""
    sorted_out: dict[Scope, list[ParsedMemory]] = {}
    for each in found:
        sorted_out.setdefault(run.place(each.owner), []).append(each)
    for scope, memories in sorted_out.items():
        arrived = await run.find_arrived(scope)
        named = [((each.key, hash_memory(each.memory)), each) for each in memories]
        fresh = choose_new_entries(run, MEMORIES, named, arrived)
        run.ledger.remarks[CHANGED] += sum(each.key in arrived.ids for each in fresh)
        for batch in divide(fresh, lambda each: count_characters(each.memory), MAX_BATCH_ITEMS, MAX_CHARACTERS):
            await write_memories(run, scope, arrived, batch)
            run.ledger.imported[MEMORIES] += len(batch)
            run.report_counts()


def choose_new_entries(
    run: ImportRun, thing: str, named: Sequence[tuple[tuple[str, str], T]], arrived: ImportedIds
) -> list[T]:
    """Choose entries that are not stored yet, each once; count the rest."""
    ledger = run.ledger
    new = [(name, each) for name, each in named if name not in arrived.hashes]
    fresh: dict[tuple[str, str], T] = {}
    for name, each in new:
        fresh.setdefault(name, each)
    ledger.known[thing] += len(named) - len(new)
    ledger.skipped[thing] += len(new) - len(fresh)
    ledger.remarks[TWICE] += len(new) - len(fresh)
    return list(fresh.values())


async def write_memories(run: ImportRun, scope: Scope, arrived: ImportedIds, batch: Sequence[ParsedMemory]) -> None:
    """Store memories in one transaction; a changed one names its former version."""
    hashes = [hash_memory(each.memory) for each in batch]
    new: list[NewMemory] = []
    for each, said in zip(batch, hashes, strict=True):
        noted = label(each.memory.metadata, run.ours, each.key, said)
        if each.key in arrived.ids:
            # As evidence, the outdated version would delete the current one with it when it is forgotten.
            noted[run.ours] = {**to_fields(noted[run.ours]), EARLIER: str(arrived.ids[each.key])}
        new.append(replace(each.memory, metadata=noted))
    ids = [LEGACY] * len(new)
    if not run.wanted.dry_run:
        ids = [receipt.id for receipt in await remember_in_bulk(await run.parts.at(scope), run.caller, scope, new)]
    for each, said, identity in zip(batch, hashes, ids, strict=True):
        arrived.ids[each.key] = identity
        arrived.hashes.add((each.key, said))


async def import_facts(run: ImportRun, found: Sequence[ParsedFactEntry]) -> None:
    """State new facts, scope by scope."""
    sorted_out: dict[Scope, list[ParsedFactEntry]] = {}
    for each in found:
        sorted_out.setdefault(run.place(each.owner), []).append(each)
    for scope, facts in sorted_out.items():
        arrived = await run.find_arrived(scope)
        fresh = choose_new_entries(run, FACTS, [((each.key, hash_fact(each.fact)), each) for each in facts], arrived)
        newest = arrived.newest
        for batch in divide(fresh, lambda each: len(each.fact.text), MAX_FACTS, MAX_CHARACTERS):
            newest = await import_batch(run, scope, batch, newest)
            run.report_counts()


async def import_batch(run: ImportRun, scope: Scope, batch: Sequence[ParsedFactEntry], newest: UUID) -> UUID:
    """State facts at once, or one by one if one of them is refused; return the newest version."""
    new = [rest(run, scope, each) for each in batch]
    if run.wanted.dry_run:
        check_new_facts(new)
        run.ledger.imported[FACTS] += len(new)
        return newest
    noted = [label(each.spare.metadata, run.ours, each.key, hash_fact(each.fact)) for each in batch]
    try:
        stated = await remember_facts(await run.parts.at(scope), run.caller, scope, new, noted=noted)
    except InvalidInputError:
        if len(batch) == 1:
            await remember_as_memory(run, scope, batch[0])
            return newest
        for each in batch:
            newest = await import_batch(run, scope, [each], newest)
        return newest
    for each, fact in zip(batch, stated, strict=True):
        await count_fact(run, scope, each, fact, newest)
    return max([newest, *(fact.memory_id or fact.id for fact in stated)])


def rest(run: ImportRun, scope: Scope, found: ParsedFactEntry) -> NewFact:
    """Add to a fact the memories and messages that it was learned from, if they are stored."""
    if run.wanted.dry_run:
        return found.fact
    arrived, said = run.arrived[scope].ids, run.said.get(scope, {})
    named = (arrived.get(key) or said.get(key) for key in found.sources)
    return replace(found.fact, evidence=tuple(dict.fromkeys(filter(None, named)))[:MAX_EVIDENCE])


async def count_fact(run: ImportRun, scope: Scope, found: ParsedFactEntry, fact: Fact, newest: UUID) -> None:
    """Count a stated fact; if an equal fact has another text, store the text as a memory."""
    if fact.text != found.fact.text:
        await remember_as_memory(run, scope, found)
        return
    written = (fact.memory_id or fact.id) > newest
    (run.ledger.imported if written else run.ledger.known)[FACTS] += 1
    if written:
        run.arrived[scope].ids[found.key] = fact.memory_id or fact.id
        run.arrived[scope].hashes.add((found.key, hash_fact(found.fact)))


async def remember_as_memory(run: ImportRun, scope: Scope, found: ParsedFactEntry) -> None:
    """Store a fact's text as a memory if it cannot be stored as a fact."""
    run.ledger.remarks[OTHERWISE] += 1
    run.ledger.imported[FACTS] += 1
    noted = label(found.spare.metadata, run.ours, found.key, hash_fact(found.fact))
    await remember(await run.parts.at(scope), run.caller, scope, [replace(found.spare, metadata=noted)])
