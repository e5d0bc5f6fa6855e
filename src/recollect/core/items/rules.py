"""The rules of items: valid names and values, and paths and conditions as parameters of queries."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recollect.core.memories.checks import LONGEST_CONTENT, MOST_CHARACTERS, MOST_DIMENSIONS, check_importance
from recollect.core.text.checks import LONGEST_CUE, check_json, check_moment, check_text
from recollect.errors import InvalidInputError
from recollect.models.items import (
    DropItem,
    FindItems,
    GetItem,
    ItemOperation,
    ItemWrite,
    ListPaths,
    Path,
    PutItem,
)
from recollect.models.memories import JSON, Embedding

MOST_OPERATIONS = 1_000
MOST_SEGMENTS = 16
LONGEST_SEGMENT = 200
LONGEST_KEY = 500
LONGEST_BYTES = 2_000
"""Path and key are one key of an index, which has room for little more."""
LARGEST_VALUE = 1_000_000
LARGEST_BATCH = 2_000_000
LARGEST_ANSWER = 128_000_000
DEEPEST_VALUE = 64
MOST_FOUND = 1_000
FARTHEST = 1_000_000
MOST_CONDITIONS = 64
CLOSING = "\x1f"
AFTER_CLOSING = "\x20"
ANY = "*"
EQUAL = "$eq"
ORDERING = frozenset({"$gt", "$gte", "$lt", "$lte"})
OPERATORS = frozenset({EQUAL, "$ne"}) | ORDERING
PLAIN = re.compile(r"[^A-Za-z0-9_\u0079-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class FieldCondition:
    """What a field of an item's value is compared with, and how."""

    field: str
    operator: str
    operand: JSON


def check_operations(operations: Sequence[ItemOperation]) -> None:
    """Check everything that one batch asks for."""
    if not 1 <= len(operations) <= MOST_OPERATIONS:
        raise InvalidInputError(f"operations must hold 1 to {MOST_OPERATIONS} items")
    puts = [operation for operation in operations if isinstance(operation, PutItem)]
    for operation in operations:
        check_operation(operation)
    if sum(check_value(put.value) for put in puts) > LARGEST_BATCH:
        raise InvalidInputError(f"the values of one batch must be at most {LARGEST_BATCH} bytes of JSON together")
    if sum(len(put.text) for put in puts) > MOST_CHARACTERS:
        raise InvalidInputError(f"the texts of one batch must hold at most {MOST_CHARACTERS} characters together")


def check_operation(operation: ItemOperation) -> None:
    """Check one operation; the value of a put is checked where its size is counted."""
    if isinstance(operation, PutItem | DropItem | GetItem):
        check_name(operation.path, operation.key)
    if isinstance(operation, PutItem | DropItem) and operation.expected is not None and operation.expected < 0:
        raise InvalidInputError("expected must be a revision, or 0 where nothing may be there")
    if isinstance(operation, PutItem):
        check_put(operation)
    elif isinstance(operation, FindItems):
        check_find(operation)
    elif isinstance(operation, ListPaths):
        check_listing(operation)


def check_put(put: PutItem) -> None:
    """Check the options of a put."""
    check_text("text", put.text, LONGEST_CONTENT)
    if put.text and put.memory and not put.text.strip():
        raise InvalidInputError("text must not be blank; leave it empty where nothing is to be remembered")
    check_importance(put.importance)
    if put.occurred_at is not None:
        check_moment("occurred_at", put.occurred_at)
    check_embedding(put.embedding)


def check_find(find: FindItems) -> None:
    """Check a search."""
    check_path("under", find.under)
    check_text("text", find.text, LONGEST_CUE)
    if find.text.strip() and find.embedding is not None:
        raise InvalidInputError("find by text or by embedding, not by both")
    check_embedding(find.embedding)
    check_range(find.limit, find.offset)
    prepare_where(find.where)


def check_listing(listing: ListPaths) -> None:
    """Check which paths are asked for."""
    check_path("under", listing.under)
    check_path("suffix", listing.suffix)
    if listing.depth is not None and not 1 <= listing.depth <= MOST_SEGMENTS:
        raise InvalidInputError(f"depth must be between 1 and {MOST_SEGMENTS}")
    check_range(listing.limit, listing.offset)


def check_range(limit: int, offset: int) -> None:
    """Limit how much one answer may hold."""
    if not 1 <= limit <= MOST_FOUND:
        raise InvalidInputError(f"limit must be between 1 and {MOST_FOUND}")
    if not 0 <= offset <= FARTHEST:
        raise InvalidInputError(f"offset must be between 0 and {FARTHEST}")


def check_name(path: Path, key: str) -> None:
    """Accept a path that is not empty and a key that is not empty."""
    check_path("path", path)
    if not path:
        raise InvalidInputError("path must have at least one segment")
    check_text("key", key, LONGEST_KEY)
    if not key:
        raise InvalidInputError("key must not be empty")
    if len((encode_path(path) + key).encode()) > LONGEST_BYTES:
        raise InvalidInputError(f"path and key must be at most {LONGEST_BYTES} bytes of UTF-8 together")


def check_path(field: str, path: Path) -> None:
    """Accept a few texts that stay distinct once they are joined."""
    if isinstance(path, str):
        raise InvalidInputError(f"{field} must be a list of texts, not one text")
    if len(path) > MOST_SEGMENTS:
        raise InvalidInputError(f"{field} must have at most {MOST_SEGMENTS} segments")
    for segment in path:
        check_text(field, segment, LONGEST_SEGMENT)
        if not segment or CLOSING in segment:
            raise InvalidInputError(f"{field} must have segments that are not empty and do not contain U+001F")


def check_embedding(embedding: Embedding | None) -> None:
    """Accept a vector of any dimensions; whether it is zero is checked where it is used."""
    if embedding is not None and not 1 <= len(embedding) <= MOST_DIMENSIONS:
        raise InvalidInputError(f"embedding must have 1 to {MOST_DIMENSIONS} dimensions")


def check_value(value: object) -> int:
    """Accept a JSON object that can be stored; return its size in bytes."""
    return check_json("value", dict(value) if isinstance(value, Mapping) else value, LARGEST_VALUE, DEEPEST_VALUE)


def prepare_where(where: Mapping[str, JSON]) -> tuple[FieldCondition, ...]:
    """Parse conditions: a plain value must be equal, an object holds operators."""
    conditions = [
        FieldCondition(field, operator, operand)
        for field, asked in where.items()
        for operator, operand in (asked.items() if isinstance(asked, Mapping) else ((EQUAL, asked),))
    ]
    if len(conditions) > MOST_CONDITIONS:
        raise InvalidInputError(f"where must hold at most {MOST_CONDITIONS} conditions")
    for condition in conditions:
        check_condition(condition)
    return tuple(conditions)


def check_condition(condition: FieldCondition) -> None:
    """Refuse an unknown operator, and an order of values that have none."""
    check_text("where", condition.field, LONGEST_KEY)
    if condition.operator not in OPERATORS:
        known = ", ".join(sorted(OPERATORS))
        raise InvalidInputError(f'where knows the operators {known}; an object is compared as {{"$eq": {{...}}}}')
    if condition.operator in ORDERING and not isinstance(condition.operand, str | int | float):
        raise InvalidInputError(f"where: {condition.operator} needs a number or a text")
    check_value({"": condition.operand})


def encode_path(path: Path) -> str:
    """Join the segments of a path, each with a separator at its end: everything under a path begins with it."""
    return "".join(segment + CLOSING for segment in path)


def decode_path(encoded: str) -> Path:
    """Split a path into its segments."""
    return tuple(encoded.split(CLOSING)[:-1])


def bound_paths(under: Path) -> tuple[str, str | None]:
    """Return the range of all keys under a path: the first one, and the first one after it."""
    first = encode_path(under)
    return first, first[:-1] + AFTER_CLOSING if first else None


def before_gap(under: Path) -> Path:
    """Return the segments of a path before the first wildcard."""
    return under[: under.index(ANY)] if ANY in under else under


def match_under(under: Path) -> str | None:
    """Return the pattern of everything under a path with wildcards; None where its range is enough."""
    return f"^{match_segments(under)}" if ANY in under else None


def match_suffix(suffix: Path) -> str | None:
    """Return the pattern of paths that end so; None where all do."""
    return f"(^|{CLOSING}){match_segments(suffix)}$" if suffix else None


def match_segments(path: Path) -> str:
    """Write segments as a PostgreSQL pattern."""
    return "".join((f"[^{CLOSING}]+" if part == ANY else PLAIN.sub(r"\\\g<0>", part)) + CLOSING for part in path)


def share_room(operations: Sequence[ItemOperation]) -> int:
    """Say how much each question of a batch may return, so that the whole answer is bounded."""
    gets = any(isinstance(operation, GetItem) for operation in operations)
    finds = sum(isinstance(operation, FindItems) for operation in operations)
    return LARGEST_ANSWER // max(1, gets + finds)


def is_write(operation: ItemOperation) -> bool:
    """Tell whether an operation changes anything."""
    return isinstance(operation, ItemWrite)
