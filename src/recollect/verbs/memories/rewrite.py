"""Rewrite terms: fold anew what scopes store in folded forms, one scope and transaction after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from recollect.core.service.numbers import tenant_of
from recollect.core.text.keywords import normalise_keyword
from recollect.core.text.names import normalise_name, normalise_predicate
from recollect.core.text.terms import average_length, weigh
from recollect.core.text.variants import CARRIED, NEWEST, folding_by, not_carried
from recollect.core.topics.paths import decode_label, encode_label
from recollect.errors import SchemaError
from recollect.models.memories import Kind, NewMemory, Triple
from recollect.store.database.pool import Connection
from recollect.store.memories import rewriting
from recollect.store.memories.rewriting import FoldedScope, NewTerms, StoredText
from recollect.store.service import upkeep
from recollect.store.service.scopes import BEGINNING
from recollect.verbs.memories.rows import Prepared, prepare
from recollect.verbs.parts import Parts, awake, spare_loop

PAGE = 500
"""How many memories are folded at a time."""
FORMS: Mapping[str, Callable[[str], str]] = {
    "keywords": normalise_keyword,
    "speakers": normalise_name,
    "names": normalise_name,
    "predicates": normalise_predicate,
}
"""How forms that are stored are folded anew, each by itself: what a later version folds, it folds more."""


async def rewrite_terms(parts: Parts, owner: str, report: Callable[[int], None]) -> int:
    """Fold everything by the newest version, and new scopes from now on; return how many scopes were behind.

    The number of memories that were rewritten is reported scope by scope. A scope takes no writes while it is
    rewritten; another run goes on where one was broken off.
    """
    await rewriting.raise_version(owner, NEWEST)
    count = 0
    async for scope_ids in upkeep.walk_due(parts.database, "rewrite", usual=NEWEST):
        for scope_id in scope_ids:
            report(await awake(parts, partial(rewrite_scope, parts, scope_id)))
            count += 1
    return count


async def rewrite_scope(parts: Parts, scope_id: int) -> int:
    """Fold one scope by the newest version, all of it or nothing; return how many memories have other terms now."""
    async with parts.database.transaction(tenant_of(scope_id), pipelined=False) as connection:
        held = await rewriting.lock(connection, scope_id)
        if held is None or held.text_version >= NEWEST:
            return 0
        if held.text_version not in CARRIED:
            raise SchemaError(not_carried(held.text_version))
        memories = await rewrite_memories(connection, scope_id, held)
        with folding_by(NEWEST):
            await rewrite_forms(connection, scope_id)
            await rewrite_topics(connection, scope_id)
        await rewriting.close(connection, scope_id, NEWEST)
    return memories


async def rewrite_memories(connection: Connection, scope_id: int, held: FoldedScope) -> int:
    """Store the terms of those memories whose terms change; return how many."""
    average = average_length(held.term_count, held.memory_count)
    after, count = BEGINNING, 0
    while texts := await rewriting.list_texts(connection, scope_id, after, PAGE):
        after = texts[-1].id
        changed = await spare_loop(True, find_changed, texts, held.text_version, average)  # noqa: FBT003 - heavy
        if changed:
            await rewriting.replace_terms(connection, scope_id, changed)
            count += len(changed)
    return count


def find_changed(texts: Sequence[StoredText], version: int, average: float) -> list[NewTerms]:
    """Fold memories by both versions, and weigh the terms of those that differ."""
    memories = [to_memory(each) for each in texts]
    with folding_by(version):
        before = [prepare(memory) for memory in memories]
    with folding_by(NEWEST):
        now = [prepare(memory) for memory in memories]
    pairs = zip(texts, before, now, strict=True)
    return [
        NewTerms(text.id, weigh(new.counts, average), new.tells, count_terms(new) - count_terms(old))
        for text, old, new in pairs
        if new.counts != old.counts
    ]


def count_terms(prepared: Prepared) -> int:
    """Count the terms of a memory, repeated ones included."""
    return sum(prepared.counts.values())


def to_memory(text: StoredText) -> NewMemory:
    """Return a memory as far as its terms depend on it."""
    triple = Triple(text.subject, text.predicate, text.object)
    return NewMemory(text.content, Kind(text.kind), speaker=text.speaker, keywords=tuple(text.keywords), triple=triple)


async def rewrite_forms(connection: Connection, scope_id: int) -> None:
    """Replace keywords and names that are folded otherwise now."""
    for what, fold in FORMS.items():
        written = await rewriting.list_written(connection, scope_id, what)
        forms = {old: new for old in written if (new := fold(old)) != old}
        if forms:
            await rewriting.replace_written(connection, scope_id, what, forms)


async def rewrite_topics(connection: Connection, scope_id: int) -> None:
    """Bring topics to the paths that their names have now; two that have the same become one."""
    # From the root down, and again after each: what lies below has come along.
    while found := find_moved(await rewriting.list_written(connection, scope_id, rewriting.PATHS)):
        await rewriting.move_topic(connection, scope_id, *found)


def find_moved(paths: Sequence[str]) -> tuple[str, str] | None:
    """Find the first path whose last name is folded otherwise now, and where it leads."""
    for path in paths:
        above, dot, label = path.rpartition(".")
        new = above + dot + encode_label(decode_label(label))
        if new != path:
            return path, new
    return None
