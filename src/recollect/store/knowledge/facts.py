"""Store and read facts with their two times, and read the facts that were known in the past."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from uuid import UUID

from psycopg import sql
from psycopg.rows import DictRow

from recollect.core.service.numbers import tenant_of
from recollect.core.text.names import normalise_predicate
from recollect.models.filters import Filter
from recollect.models.knowledge import Fact, ValidTime
from recollect.models.memories import ImportanceFrom, Kind, NewMemory, Triple
from recollect.models.service import Scope
from recollect.store.database.filter import AND, MEMORIES, PLACE, bind, restrict
from recollect.store.database.pool import Connection, Database, load_queries
from recollect.store.memories import embeddings
from recollect.store.memories.memories import Source
from recollect.store.service import jobs
from recollect.store.service.scopes import BEGINNING, names, prevent_archiving

QUERIES = load_queries(__file__)
FADED = "faded"
CHUNK = 500
"""Number of facts that leave the indexes in one transaction: writers of their scopes wait that long."""


@dataclass(frozen=True, slots=True)
class Version:
    """A current version of a fact, with its memory."""

    fact: Fact
    id: UUID
    memory: NewMemory
    """The fields that it shares with a later version."""
    trust: int
    withheld: str
    hidden: bool
    """Whether it is hidden: its evidence is in a deleted conversation, or it waits to be derived again."""
    every_id: frozenset[UUID]
    """The IDs of all versions of the fact, if lineages were requested."""

    @property
    def source(self) -> Source:
        """Return it as a source of evidence."""
        return Source(self.id, self.trust, 0)

    def is_named(self, name: UUID) -> bool:
        """Return whether an ID is that of the fact or of one of its versions."""
        return name == self.fact.id or name in self.every_id


@dataclass(frozen=True, slots=True)
class VersionQuery:
    """Which current versions to fetch: of pairs of subject and object, of subjects, objects or lineages."""

    pairs: Sequence[tuple[UUID, UUID]] = ()
    subjects: Sequence[UUID] = ()
    objects: Sequence[UUID] = ()
    lineages: Sequence[UUID] = ()
    """Also named by any of their versions."""
    ids: Sequence[UUID] = ()
    """The versions themselves, including superseded ones."""
    newest: int | None = None
    """Maximum number of current facts per subject, newest first."""


@dataclass(frozen=True, slots=True)
class FactQuery:
    """Which facts are asked for."""

    about: UUID | None = None
    """Only facts about this entity, or only this fact, by its ID or that of any version."""
    predicate: str = ""
    only: Filter = field(default_factory=Filter)
    """Its times: believed at that time, or now; true at that time, or at any time."""
    whenever: bool = False
    """Whether ended facts are included; without a time of belief, all versions."""


async def fetch_versions(connection: Connection, scope_id: int, wanted: VersionQuery) -> list[Version]:
    """Fetch the currently believed versions, including hidden ones."""
    parameters = {
        "scope_id": scope_id,
        "subjects": list(wanted.subjects),
        "ones": [one for one, _ in wanted.pairs],
        "others": [other for _, other in wanted.pairs],
        "objects": list(wanted.objects),
        "lineages": list(wanted.lineages),
        "asked": list(wanted.ids),
        "newest": wanted.newest,
    }
    found = await connection.execute(QUERIES["versions"], parameters)
    return [to_version(row) for row in await found.fetchall()]


async def fetch_facts(
    connection: Connection,
    scope_id: int,
    *,
    subjects: Sequence[UUID] = (),
    lineages: Sequence[UUID] = (),
    newest: int | None = None,
) -> list[Fact]:
    """Fetch visible, currently believed facts about entities, in the order they were written.

    `newest` is the maximum number of facts per subject that have not ended, newest first.
    """
    wanted = VersionQuery(subjects=subjects, lineages=lineages, newest=newest)
    versions = await fetch_versions(connection, scope_id, wanted)
    return [version.fact for version in versions if not version.hidden]


async def store_beliefs(
    connection: Connection, scope_id: int, facts: Sequence[tuple[UUID, Fact]], moment: datetime
) -> None:
    """Write beliefs for memories of this transaction, each under its memory's ID."""
    parameters = {
        "scope_id": scope_id,
        "moment": moment,
        "ids": [identity for identity, _ in facts],
        "lineages": [fact.id for _, fact in facts],
        "versions": [fact.version for _, fact in facts],
        "subjects": [fact.subject for _, fact in facts],
        "predicates": [normalise_predicate(fact.predicate) for _, fact in facts],
        "objects": [fact.object for _, fact in facts],
        "starts": [fact.span.valid_at for _, fact in facts],
        "ends": [fact.span.invalid_at for _, fact in facts],
    }
    await connection.execute(QUERIES["store"], parameters)


async def supersede(connection: Connection, scope_id: int, ids: Sequence[UUID], moment: datetime) -> None:
    """Supersede versions."""
    await connection.execute(QUERIES["supersede"], {"scope_id": scope_id, "ids": list(ids), "moment": moment})


async def add_evidence(connection: Connection, scope_id: int, pairs: Sequence[tuple[UUID, UUID]]) -> None:
    """Add evidence to existing versions."""
    if pairs:
        parameters = {
            "scope_id": scope_id,
            "memory_ids": [memory_id for memory_id, _ in pairs],
            "source_ids": [source_id for _, source_id in pairs],
        }
        await connection.execute(QUERIES["add_evidence"], parameters)


async def inherit_vectors(connection: Connection, scope_id: int, heirs: Sequence[tuple[UUID, UUID]]) -> Sequence[UUID]:
    """Copy vectors of superseded versions to the next ones; return those without, and queue a job for them."""
    if not heirs:
        return []
    parameters = {"scope_id": scope_id, "heirs": [heir for heir, _ in heirs], "elders": [elder for _, elder in heirs]}
    row = await (await connection.execute(QUERIES["inherit"], parameters)).fetchone()
    waiting: list[UUID] = row["waiting"] if row is not None else []
    if waiting:
        await embeddings.add_pending(connection, scope_id, waiting)
        await jobs.defer(connection, "embed", f"embed:{scope_id}", {"scope_id": scope_id})
    return waiting


async def exclude_from_recall(connection: Connection, scope_id: int, ids: Sequence[UUID]) -> None:
    """Remove ended or superseded versions from all indexes that recall reads."""
    if ids:
        await connection.execute(QUERIES["withhold"], {"scope_id": scope_id, "ids": list(ids)})


async def page(
    database: Database, scope: Scope, bounds: FactQuery, cursor: UUID | None = None, limit: int = 50
) -> list[Fact]:
    """Fetch facts after a cursor, in the order they were written; those of an entity at any time by valid time."""
    every = bounds.whenever and bounds.only.as_of is None
    return await select_facts(database, scope, bounds, {"cursor": cursor or BEGINNING, "limit": limit}, every=every)


async def fetch_by_version(database: Database, scope: Scope, ids: Sequence[UUID]) -> dict[UUID, Fact]:
    """Fetch versions of facts by the IDs of their memories."""
    found = await select_facts(database, scope, FactQuery(), {"ids": list(ids), "limit": len(ids)}, every=True)
    return {fact.memory_id: fact for fact in found if fact.memory_id is not None}


async def select_facts(
    database: Database, scope: Scope, bounds: FactQuery, chosen: dict[str, object], *, every: bool = False
) -> list[Fact]:
    """Read facts of a scope, in all versions if requested."""
    parameters: dict[str, object] = {
        **names(scope),
        "ids": None,
        "cursor": BEGINNING,
        "about": bounds.about,
        "predicate": normalise_predicate(bounds.predicate) if bounds.predicate else "",
        **bind(bounds.only),
    }
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(compose(bounds, every=every), parameters | chosen)
    return [to_fact(row) for row in await found.fetchall()]


def compose(bounds: FactQuery, *, every: bool) -> sql.Composed:
    """Write the statement that reads facts with a filter; its times are those of beliefs."""
    only, by_time = bounds.only, bounds.whenever and bounds.about is not None
    times = [] if every else ["believed" if only.as_of is None else "believed_then"]
    times += ["true_then"] if only.at is not None else []
    return sql.SQL(QUERIES["read"]).format(
        filter=restrict(replace(only, as_of=None, at=None), MEMORIES, PLACE),
        times=sql.Composed([AND + sql.SQL(QUERIES[name]) for name in times]),
        after=sql.SQL(QUERIES["after_time" if by_time else "after"]),
        order=sql.SQL(QUERIES["by_time" if by_time else "by_age"]),
    )


def to_fact(row: DictRow) -> Fact:
    """Turn a row into a version of a fact."""
    return Fact(
        id=row["lineage"],
        subject=row["subject_id"],
        predicate=row["stated"] or row["predicate"],
        object=row["object_id"],
        text=row["content"],
        span=ValidTime(row["valid_at"], row["invalid_at"]),
        created_at=row["created_at"],
        superseded_at=row["superseded_at"],
        version=row["version"],
        memory_id=row["id"],
        subject_name=row["subject"],
        object_name=row["object"],
    )


def to_version(row: DictRow) -> Version:
    """Turn a row into a believed version with its memory."""
    memory = NewMemory(
        content=row["content"],
        kind=Kind.FACT,
        speaker=row["speaker"],
        importance=row["importance"],
        importance_from=ImportanceFrom(row["importance_from"]),
        triple=Triple(row["subject"], row["stated"], row["object"]),
        keywords=tuple(row["keywords"]),
        occurred_at=row["occurred_at"],
        embedding_text=row["embedding_text"],
        metadata=row["metadata"],
        expires_at=row["expires_at"],
        pinned=row["pinned"] or False,
    )
    return Version(
        to_fact(row),
        row["id"],
        memory,
        row["trust"],
        row["withheld"] or "",
        row["hidden"],
        frozenset(row["every_id"]),
    )


async def withhold_ended(database: Database) -> int:
    """Withhold facts of all tenants that have ended, a chunk at a time; return how many."""
    total, taken = 0, 1
    while taken:
        async with database.reading(None) as connection:
            found = await connection.execute(QUERIES["ended"], {"limit": CHUNK})
        ended: dict[int, list[UUID]] = {}
        for row in await found.fetchall():
            ended.setdefault(row["scope_id"], []).append(row["id"])
        chunks = [partial(withhold_chunk, database, scope_id, ids) for scope_id, ids in ended.items()]
        taken = sum([await prevent_archiving(database, chunk) for chunk in chunks])
        total += taken
    return total


async def withhold_chunk(database: Database, scope_id: int, ids: Sequence[UUID]) -> int:
    """Withhold facts of one scope; return how many were in its indexes."""
    parameters = {"scope_id": scope_id, "ids": list(ids)}
    async with database.transaction(tenant_of(scope_id)) as connection:
        await connection.execute(QUERIES["lock"], parameters)
        withheld = await (await connection.execute(QUERIES["withhold"], parameters)).fetchone()
    return withheld["withheld"] if withheld else 0
