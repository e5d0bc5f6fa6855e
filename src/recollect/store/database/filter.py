"""Write a filter as SQL: only the conditions that it names, on the columns that a statement has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from psycopg import sql
from psycopg.types.json import Jsonb

from recollect.core.memories.conditions import read_condition
from recollect.core.memories.ids import first_id_after
from recollect.core.text.names import normalize_name
from recollect.core.topics.paths import encode, find_topics
from recollect.models.filters import MAX_CONDITIONS, Filter
from recollect.models.memories import Kind, RecallState
from recollect.store.database.pool import load_queries

QUERIES = load_queries(__file__)
MAX_CACHED_STATEMENTS = 256
"""Maximum number of cached SQL texts per statement, one for each different filter."""
AND = sql.SQL("\n  and ")
SCOPE_ID = sql.SQL("%(scope_id)s")
ALL = sql.SQL("null::uuid[]")
PLACE = sql.SQL(QUERIES["place"])
"""The scope of a statement that finds it by its names."""


class Lookup(StrEnum):
    """How a statement finds the features of a memory, which are in a separate table."""

    BY_KEY = "by_key"
    """It reads by the key: the allowed IDs are its keys."""
    BY_SET = "by_set"
    """It reads in another order: each row is searched in the set of all allowed IDs."""
    BY_ROW = "by_row"
    """It reads few rows: the features of each row are looked up."""
    OWN = "own"
    """It reads the features themselves."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that a statement has for the filter."""

    table: str
    id: str = "id"
    kind: str = "kind"
    trust: str | None = "trust"
    """Looked up in `memories` if None."""
    occurred_at: str = "occurred_at"
    lookup: Lookup = Lookup.BY_KEY


MEMORIES = Columns("memories")
MEMORIES_BY_TIME = replace(MEMORIES, lookup=Lookup.BY_SET)
KEYWORDS = Columns("memory_keywords", trust=None)
NAMED_MEMORIES = replace(MEMORIES, lookup=Lookup.BY_ROW)
FEATURE_ROWS = Columns("features", trust=None, lookup=Lookup.OWN)
FEATURES: Mapping[str, Callable[[Filter], object]] = MappingProxyType(
    {
        "conversations": lambda only: list(only.conversations),
        "roles": lambda only: [role.value for role in only.roles],
        "speakers": lambda only: [normalize_name(name) for name in only.speakers],
        "origins": lambda only: list(only.origins),
        "topics": lambda only: [encode(names) for names in find_topics(only.topics)],
        "since": lambda only: only.since,
        "until": lambda only: only.until,
        "min_importance": lambda only: only.min_importance,
        "pinned": lambda only: only.pinned,
        "state": lambda only: only.state,
    }
)
"""Fields with conditions on rows of `memory_features`, and the values to compare with."""
TOPICS = ("topics", "topics_below")
WHERE = {f"where_{count}": count for count in range(1, MAX_CONDITIONS + 1)}
"""The condition on metadata for each number of conditions."""
LOOKED_UP = frozenset({*FEATURES, *TOPICS, *WHERE})
NARROW = frozenset({"pinned", "conversations", *TOPICS})
"""Fields that few memories match: these are read by their keys, in any order of the statement."""


def restrict(only: Filter, columns: Columns, scope: sql.Composable = SCOPE_ID) -> sql.Composed:
    """Write the conditions of a filter on the indexes of recall, each after an `and`."""
    return join(name_conditions(without_current_state(only)), columns, scope)


def restrict_rows(
    only: Filter, scope: sql.Composable = SCOPE_ID, *, every: bool = False, columns: Columns = MEMORIES
) -> sql.Composed:
    """Write the conditions of a filter on rows that past versions also have; on every version if requested."""
    # A named state decides itself which versions it has.
    whole = every or (only.outside and not only.past)
    times = [] if whole else ["standing", "happened"] if only.at is not None else ["standing"]
    return join([*(name for name in name_conditions(only) if name != "at"), *times], columns, scope)


def restrict_among(only: Filter, columns: Columns) -> sql.Composed:
    """Write a filter as one condition on ids, for lists that include withheld memories."""
    identity = sql.Identifier(columns.table, columns.id)
    among = sql.SQL(QUERIES["among"]).format(id=identity, allowed=find_allowed(only, SCOPE_ID))
    return sql.Composed([AND, among] if only.named else [])


def list_allowed(only: Filter, scope: sql.Composable = SCOPE_ID) -> sql.Composable:
    """Write the array of all IDs that a filter allows, for functions with a limit; null without conditions."""
    return sql.SQL(QUERIES["listed"]).format(allowed=find_allowed(only, scope)) if only.named else ALL


def list_featured(only: Filter) -> sql.Composable:
    """Write the array of all IDs with the features that a filter names; null if it names none."""
    named = name_features(only)
    return sql.SQL(QUERIES["listed"]).format(allowed=find_featured(named, SCOPE_ID)) if named else ALL


def name_features(only: Filter) -> list[str]:
    """List the conditions of a filter on features, for the rows in the indexes of recall."""
    named = [name for name in without_current_state(only).named if name in FEATURES or name == "where"]
    return ["not_pinned" if name == "pinned" and not only.pinned else choose_condition(only, name) for name in named]


def without_current_state(only: Filter) -> Filter:
    """Remove the "current" state from a filter: all rows in the indexes of recall have it."""
    return replace(only, state=None) if only.state is RecallState.CURRENT else only


def find_featured(names: Iterable[str], scope: sql.Composable) -> sql.Composed:
    """Write the query for all IDs with the features of these names."""
    return sql.SQL(QUERIES["featured"]).format(scope=scope, conditions=write_features(names, scope))


def write_features(names: Iterable[str], scope: sql.Composable, *, few: bool = False) -> sql.Composed:
    """Write conditions on features, each after an `and`; `few` looks up each row."""
    return sql.Composed([AND + write_feature(name, scope, few=few) for name in sorted(names)])


def write_feature(name: str, scope: sql.Composable, *, few: bool) -> sql.Composed:
    """Write one condition on features."""
    if name not in WHERE:
        return sql.SQL(QUERIES[name]).format(scope=scope)
    each = sql.SQL(QUERIES["condition"])
    conditions = [AND + each.format(place=sql.Literal(place)) for place in range(1, WHERE[name] + 1)]
    among = sql.SQL(QUERIES["where_of_row" if few else "where"])
    return among.format(scope=scope, conditions=sql.Composed(conditions))


def find_allowed(only: Filter, scope: sql.Composable) -> sql.Composed:
    """Write the query for all IDs that a filter allows; without times, of any version."""
    conditions = restrict_rows(only, scope, every=not only.past)
    return sql.SQL(QUERIES["allowed"]).format(scope=scope, filter=conditions)


def name_conditions(only: Filter) -> list[str]:
    """List the names of a filter's conditions: each field has one condition, or the opposite one."""
    return ["unpinned" if name == "pinned" and not only.pinned else choose_condition(only, name) for name in only.named]


def choose_condition(only: Filter, name: str) -> str:
    """Return the condition of a field; for topics, with or without subtopics; for metadata, by number."""
    if name == "where":
        return f"where_{len(only.where)}"
    return "topics_below" if name == "topics" and only.below else name


def join(names: Iterable[str], columns: Columns, scope: sql.Composable) -> sql.Composed:
    """Write the conditions of these names on a table's columns, each after an `and`."""
    named = [*names]
    own: dict[str, sql.Composable] = {
        "id": sql.Identifier(columns.table, columns.id),
        "kind": sql.Identifier(columns.table, columns.kind),
        "occurred_at": sql.Identifier(columns.table, columns.occurred_at),
        "scope": scope,
        "current": sql.SQL(QUERIES["indexed_features" if columns.lookup is Lookup.OWN else "indexed"]),
    }
    if "min_trust" in named:
        looked_up = sql.SQL(QUERIES["trust"])
        own["trust"] = sql.Identifier(columns.table, columns.trust) if columns.trust else looked_up.format(**own)
    written = [AND + sql.SQL(QUERIES[name]).format(**own) for name in named if name not in LOOKED_UP]
    if features := LOOKED_UP.intersection(named):
        written.append(compose_conditions(features, columns, own))
    return sql.Composed(written)


def compose_conditions(features: Iterable[str], columns: Columns, own: Mapping[str, sql.Composable]) -> sql.Composed:
    """Write the conditions on features in the form that the statement needs, after an `and`."""
    names = [*features]
    conditions = write_features(names, own["scope"], few=True)
    if columns.lookup is Lookup.OWN:
        return conditions
    narrow = columns.lookup is Lookup.BY_SET and not NARROW.isdisjoint(names)
    allowed = find_featured(names, own["scope"])
    found = sql.SQL(QUERIES[Lookup.BY_KEY if narrow else columns.lookup])
    return AND + found.format(**own, allowed=allowed, conditions=conditions)


def bind(only: Filter, usual: Sequence[Kind] = ()) -> dict[str, object]:
    """Return the values for the conditions of a filter; `usual` are the kinds if it names none."""
    return {
        "kinds": [kind.value for kind in only.kinds or usual] or None,
        "min_trust": only.min_trust,
        "before": first_id_after(only.as_of) if only.as_of else None,
        "as_of": only.as_of,
        "at": only.at,
        **{name: FEATURES[name](only) for name in only.named if name in FEATURES},
        **(bind_where(only.where) if only.where else {}),
    }


def bind_where(where: Sequence[str]) -> dict[str, object]:
    """Return the values of conditions on metadata."""
    conditions = [read_condition(each) for each in where]
    return {
        "where_fields": [each.field for each in conditions],
        "where_operators": [each.operator for each in conditions],
        "where_operands": [Jsonb(each.operand) for each in conditions],
    }
