"""Rewrite what a scope stores in folded forms (terms, keywords, names, topics), after the rules of folding changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from recollect.store.database.ownership import owning
from recollect.store.database.pool import Connection, load_queries
from recollect.store.memories.columns import write_json
from recollect.store.memories.copied import SLOTS
from recollect.store.memories.memories import hash_terms

QUERIES = load_queries(__file__)
REPLACEMENTS: Mapping[str, Sequence[str]] = {
    "keywords": ("replace_keywords", "count_keywords"),
    "speakers": ("replace_speakers",),
    "names": ("replace_names", "replace_mentions", "drop_mentions"),
    "predicates": ("replace_predicates",),
}
"""What is stored as it is compared: the query that lists it, and the statements that replace it."""
PATHS = "paths"
"""The query that lists topics, which are moved one by one."""


@dataclass(frozen=True, slots=True)
class StoredText:
    """What the terms of one memory are made of."""

    id: UUID
    kind: str
    content: str
    speaker: str
    subject: str
    predicate: str
    object: str
    keywords: list[str]


@dataclass(frozen=True, slots=True)
class NewTerms:
    """The terms of one memory, folded anew."""

    id: UUID
    weights: dict[int, float]
    tells: int
    difference: int
    """How many more terms it has than before, repeated ones included."""


@dataclass(frozen=True, slots=True)
class FoldedScope:
    """A locked scope: its size, and the version by which it is folded."""

    memory_count: int
    term_count: int
    text_version: int


async def raise_version(dsn: str, version: int) -> None:
    """Let scopes that begin from now on be folded by a version."""
    async with owning(dsn) as connection:
        await connection.execute(QUERIES["raise_version"], {"version": version})


async def lock(connection: Connection, scope_id: int) -> FoldedScope | None:
    """Keep writes out of a scope until the transaction ends."""
    row = await (await connection.execute(QUERIES["lock"], {"scope_id": scope_id})).fetchone()
    return FoldedScope(**row) if row else None


async def list_texts(connection: Connection, scope_id: int, after: UUID, limit: int) -> list[StoredText]:
    """List a page of memories in the order of their ids."""
    found = await connection.execute(QUERIES["texts"], {"scope_id": scope_id, "after": after, "limit": limit})
    return [StoredText(**row) for row in await found.fetchall()]


async def replace_terms(connection: Connection, scope_id: int, changed: Sequence[NewTerms]) -> None:
    """Store the terms of memories in place of others."""
    rows = [write_terms(scope_id, each) for each in changed]
    await connection.execute(QUERIES["replace_terms"], {"scope_id": scope_id, "rows": write_json(rows)})


def write_terms(scope_id: int, each: NewTerms) -> dict[str, object]:
    """Return the fields of one memory's terms."""
    hashes, by_slot = hash_terms(scope_id, each.weights)
    weights = ",".join(f"{number}:{weight:.6g}" for number, weight in by_slot.items())
    fields = {"id": each.id, "length": len(each.weights), "tells": each.tells, "difference": each.difference}
    return fields | {"terms": hashes, "weights": f"{{{weights}}}/{SLOTS}"}


async def list_written(connection: Connection, scope_id: int, what: str) -> list[str]:
    """List the different forms that a scope stores of keywords, speakers, names, predicates or paths of topics."""
    found = await connection.execute(QUERIES[what], {"scope_id": scope_id})
    return [row["written"] for row in await found.fetchall()]


async def replace_written(connection: Connection, scope_id: int, what: str, forms: Mapping[str, str]) -> None:
    """Store other forms in place of these."""
    given = {"scope_id": scope_id, "old": list(forms), "new": list(forms.values())}
    for name in REPLACEMENTS[what]:
        await connection.execute(QUERIES[name], given)


async def move_topic(connection: Connection, scope_id: int, path: str, new_path: str) -> None:
    """Bring a topic to another path beside it, with all below; an existing topic absorbs what comes."""
    await connection.execute(QUERIES["replant"], {"scope_id": scope_id, "path": path, "new_path": new_path})


async def close(connection: Connection, scope_id: int, version: int) -> None:
    """Note by which version a scope is folded from now on."""
    await connection.execute(QUERIES["close"], {"scope_id": scope_id, "version": version})
