"""Write a filter as SQL: the conditions that it names, on the columns that a statement has, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from psycopg import sql

from recollect.core.memories.ids import first_id_after
from recollect.models.memories import Kind
from recollect.models.recall import Filter
from recollect.store.database.pool import load_queries

QUERIES = load_queries(__file__)
MOST_WRITTEN = 256
"""So many texts of a statement are remembered, each for another filter."""
AND = sql.SQL("\n  and ")
SCOPE_ID = sql.SQL("%(scope_id)s")
ALL = sql.SQL("null::uuid[]")
PLACE = sql.SQL(QUERIES["place"])
"""The scope of a statement that looks it up by its names."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Where a statement has the columns of the filter."""

    table: str
    id: str = "id"
    kind: str = "kind"
    trust: str | None = "trust"
    """Looked up in `memories` if None."""
    occurred_at: str = "occurred_at"


MEMORIES = Columns("memories")
FEATURE_ROWS = Columns("features", trust=None)
FEATURES = frozenset({"pinned"})
"""A field that is a column of `memory_features`: its condition is looked up there before each limit."""


def restrict(only: Filter, columns: Columns, scope: sql.Composable = SCOPE_ID) -> sql.Composed:
    """Write the conditions of a filter on the indexes of recall, each after an `and`."""
    return join(name_conditions(only), columns, scope)


def restrict_rows(
    only: Filter, scope: sql.Composable = SCOPE_ID, *, every: bool = False, columns: Columns = MEMORIES
) -> sql.Composed:
    """Write the conditions of a filter on rows that past versions have, too; on every version if asked."""
    times = [] if every else ["standing", "happened"] if only.at is not None else ["standing"]
    return join([*(name for name in name_conditions(only) if name != "at"), *times], columns, scope)


def restrict_among(only: Filter, columns: Columns) -> sql.Composed:
    """Write a filter as one condition on ids, for lists that include withheld memories."""
    identity = sql.Identifier(columns.table, columns.id)
    among = sql.SQL(QUERIES["among"]).format(id=identity, allowed=find_allowed(only, SCOPE_ID))
    return sql.Composed([AND, among] if only.named else [])


def list_allowed(only: Filter, scope: sql.Composable = SCOPE_ID) -> sql.Composable:
    """Write the array of all ids that a filter allows, for a function with its own limit; null if it names nothing."""
    return sql.SQL(QUERIES["listed"]).format(allowed=find_allowed(only, scope)) if only.named else ALL


def list_featured(only: Filter) -> sql.Composable:
    """Write the array of all ids with the features that a filter names; null if it names none."""
    named = [name if getattr(only, name) else f"not_{name}" for name in FEATURES.intersection(only.named)]
    return sql.SQL(QUERIES["listed"]).format(allowed=find_featured(named, SCOPE_ID)) if named else ALL


def find_featured(names: Iterable[str], scope: sql.Composable) -> sql.Composed:
    """Write the query for all ids with the features of these names."""
    conditions = sql.Composed([AND + sql.SQL(QUERIES[name]) for name in sorted(names)])
    return sql.SQL(QUERIES["featured"]).format(scope=scope, conditions=conditions)


def find_allowed(only: Filter, scope: sql.Composable) -> sql.Composed:
    """Write the query for all ids that a filter allows; without times, of any version."""
    conditions = restrict_rows(only, scope, every=not only.past)
    return sql.SQL(QUERIES["allowed"]).format(scope=scope, filter=conditions)


def name_conditions(only: Filter) -> list[str]:
    """List the conditions of a filter: each field that it names has one of its name, or of its opposite."""
    return ["unpinned" if name == "pinned" and not only.pinned else name for name in only.named]


def join(names: Iterable[str], columns: Columns, scope: sql.Composable) -> sql.Composed:
    """Write the conditions of these names on a table's columns, each after an `and`."""
    named = [*names]
    own: dict[str, sql.Composable] = {
        "id": sql.Identifier(columns.table, columns.id),
        "kind": sql.Identifier(columns.table, columns.kind),
        "occurred_at": sql.Identifier(columns.table, columns.occurred_at),
        "scope": scope,
    }
    if "min_trust" in named:
        looked_up = sql.SQL(QUERIES["trust"])
        own["trust"] = sql.Identifier(columns.table, columns.trust) if columns.trust else looked_up.format(**own)
    written = [sql.SQL(QUERIES[name]).format(**own) for name in named if name not in FEATURES]
    if features := FEATURES.intersection(named):
        written.append(sql.SQL(QUERIES["rare"]).format(**own, allowed=find_featured(features, scope)))
    return sql.Composed([AND + condition for condition in written])


def bind(only: Filter, usual: Sequence[Kind] = ()) -> dict[str, object]:
    """Return the values that the conditions of a filter compare with; `usual` are the kinds if it names none."""
    return {
        "kinds": [kind.value for kind in only.kinds or usual] or None,
        "min_trust": only.min_trust,
        "before": first_id_after(only.as_of) if only.as_of else None,
        "as_of": only.as_of,
        "at": only.at,
    }
