"""The rules of items: valid names and values, and paths and conditions as query parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recollect.core.memories.checks import MAX_CHARACTERS, MAX_CONTENT_LENGTH, MAX_DIMENSIONS, check_importance
from recollect.core.text.checks import MAX_CUE_LENGTH, check_json, check_moment, check_text
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

MAX_OPERATIONS = 1_000
MAX_SEGMENTS = 16
MAX_SEGMENT_LENGTH = 200
MAX_KEY_LENGTH = 500
MAX_PATH_BYTES = 2_000
"""Path and key are one index key, whose size is limited."""
MAX_VALUE_BYTES = 1_000_000
MAX_BATCH_BYTES = 2_000_000
MAX_RESPONSE_BYTES = 128_000_000
MAX_VALUE_DEPTH = 64
MAX_MATCHES = 1_000
MAX_OFFSET = 1_000_000
MAX_CONDITIONS = 64
CLOSING = "\x1f"
AFTER_CLOSING = "\x20"
ANY = "*"
EQUAL = "$eq"
ORDERING = frozenset({"$gt", "$gte", "$lt", "$lte"})
OPERATORS = frozenset({EQUAL, "$ne"}) | ORDERING
PLAIN = re.compile(r"[^A-Za-z0-9_\u0079-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class FieldCondition:
    """A field of an item's value, an operator and an operand."""

    field: str
    operator: str
    operand: JSON


def check_operations(operations: Sequence[ItemOperation]) -> None:
    """Check the operations of one batch."""
    if not 1 <= len(operations) <= MAX_OPERATIONS:
        raise InvalidInputError(f"operations must have 1 to {MAX_OPERATIONS} items")
    puts = [operation for operation in operations if isinstance(operation, PutItem)]
    for operation in operations:
        check_operation(operation)
    if sum(check_value(put.value) for put in puts) > MAX_BATCH_BYTES:
        raise InvalidInputError(f"the values of one batch must be at most {MAX_BATCH_BYTES} bytes of JSON together")
    if sum(len(put.text) for put in puts) > MAX_CHARACTERS:
        raise InvalidInputError(f"the texts of one batch must hold at most {MAX_CHARACTERS} characters together")


def check_operation(operation: ItemOperation) -> None:
    """Check one operation; the value of a put is checked when its size is counted."""
    if isinstance(operation, PutItem | DropItem | GetItem):
        check_name(operation.path, operation.key)
    if isinstance(operation, PutItem | DropItem) and operation.expected is not None and operation.expected < 0:
        raise InvalidInputError("expected must be a revision number, or 0 if the item must not exist")
    if isinstance(operation, PutItem):
        check_put(operation)
    elif isinstance(operation, FindItems):
        check_find(operation)
    elif isinstance(operation, ListPaths):
        check_listing(operation)


def check_put(put: PutItem) -> None:
    """Check the options of a put."""
    check_text("text", put.text, MAX_CONTENT_LENGTH)
    if put.text and put.memory and not put.text.strip():
        raise InvalidInputError("text must not be blank; use an empty string to remember nothing")
    check_importance(put.importance)
    if put.occurred_at is not None:
        check_moment("occurred_at", put.occurred_at)
    check_embedding(put.embedding)


def check_find(find: FindItems) -> None:
    """Check a search."""
    check_path("under", find.under)
    check_text("text", find.text, MAX_CUE_LENGTH)
    if find.text.strip() and find.embedding is not None:
        raise InvalidInputError("use either text or embedding, not both")
    check_embedding(find.embedding)
    check_range(find.limit, find.offset)
    prepare_where(find.where)


def check_listing(listing: ListPaths) -> None:
    """Check a request to list paths."""
    check_path("under", listing.under)
    check_path("suffix", listing.suffix)
    if listing.depth is not None and not 1 <= listing.depth <= MAX_SEGMENTS:
        raise InvalidInputError(f"depth must be between 1 and {MAX_SEGMENTS}")
    check_range(listing.limit, listing.offset)


def check_range(limit: int, offset: int) -> None:
    """Check the bounds of one page."""
    if not 1 <= limit <= MAX_MATCHES:
        raise InvalidInputError(f"limit must be between 1 and {MAX_MATCHES}")
    if not 0 <= offset <= MAX_OFFSET:
        raise InvalidInputError(f"offset must be between 0 and {MAX_OFFSET}")


def check_name(path: Path, key: str) -> None:
    """Check that path and key are valid and not empty."""
    check_path("path", path)
    if not path:
        raise InvalidInputError("path must have at least one segment")
    check_text("key", key, MAX_KEY_LENGTH)
    if not key:
        raise InvalidInputError("key must not be empty")
    if len((encode_path(path) + key).encode()) > MAX_PATH_BYTES:
        raise InvalidInputError(f"path and key must be at most {MAX_PATH_BYTES} bytes of UTF-8 together")


def check_path(field: str, path: Path) -> None:
    """Check that the segments of a path stay distinct when they are joined."""
    if isinstance(path, str):
        raise InvalidInputError(f"{field} must be a list of strings")
    if len(path) > MAX_SEGMENTS:
        raise InvalidInputError(f"{field} must have at most {MAX_SEGMENTS} segments")
    for segment in path:
        check_text(field, segment, MAX_SEGMENT_LENGTH)
        if not segment or CLOSING in segment:
            raise InvalidInputError(f"{field} must have segments that are not empty and do not contain U+001F")


def check_embedding(embedding: Embedding | None) -> None:
    """Check the number of dimensions of a vector; a later check refuses zero vectors."""
    if embedding is not None and not 1 <= len(embedding) <= MAX_DIMENSIONS:
        raise InvalidInputError(f"embedding must have 1 to {MAX_DIMENSIONS} dimensions")


def check_value(value: object) -> int:
    """Check that a value is a JSON object that can be stored; return its size in bytes."""
    return check_json("value", dict(value) if isinstance(value, Mapping) else value, MAX_VALUE_BYTES, MAX_VALUE_DEPTH)


def prepare_where(where: Mapping[str, JSON]) -> tuple[FieldCondition, ...]:
    """Parse conditions: a plain value must be equal; an object contains operators."""
    conditions = [
        FieldCondition(field, operator, operand)
        for field, asked in where.items()
        for operator, operand in (asked.items() if isinstance(asked, Mapping) else ((EQUAL, asked),))
    ]
    if len(conditions) > MAX_CONDITIONS:
        raise InvalidInputError(f"where must have at most {MAX_CONDITIONS} conditions")
    for condition in conditions:
        check_condition(condition)
    return tuple(conditions)


def check_condition(condition: FieldCondition) -> None:
    """Refuse unknown operators, and comparisons of values without an order."""
    check_text("where", condition.field, MAX_KEY_LENGTH)
    if condition.operator not in OPERATORS:
        known = ", ".join(sorted(OPERATORS))
        raise InvalidInputError(f'where: unknown operator. Use {known}; compare an object with {{"$eq": {{...}}}}')
    if condition.operator in ORDERING and not isinstance(condition.operand, str | int | float):
        raise InvalidInputError(f"where: {condition.operator} needs a number or a string")
    check_value({"": condition.operand})


def encode_path(path: Path) -> str:
    """Join the segments of a path, each followed by a separator, so that a path is a prefix of all paths below it."""
    return "".join(segment + CLOSING for segment in path)


def decode_path(encoded: str) -> Path:
    """Split a path into its segments."""
    return tuple(encoded.split(CLOSING)[:-1])


def bound_paths(under: Path) -> tuple[str, str | None]:
    """Return the range of all keys under a path: the first key, and the first key after the range."""
    first = encode_path(under)
    return first, first[:-1] + AFTER_CLOSING if first else None


def before_gap(under: Path) -> Path:
    """Return the segments of a path before the first wildcard."""
    return under[: under.index(ANY)] if ANY in under else under


def match_under(under: Path) -> str | None:
    """Return the pattern of all paths under a path with wildcards; None if its range is enough."""
    return f"^{match_segments(under)}" if ANY in under else None


def match_suffix(suffix: Path) -> str | None:
    """Return the pattern of paths with this suffix; None if it is empty."""
    return f"(^|{CLOSING}){match_segments(suffix)}$" if suffix else None


def match_segments(path: Path) -> str:
    """Convert segments to a PostgreSQL pattern."""
    return "".join((f"[^{CLOSING}]+" if part == ANY else PLAIN.sub(r"\\\g<0>", part)) + CLOSING for part in path)


def divide_limit(operations: Sequence[ItemOperation]) -> int:
    """Return the maximum size of each read of a batch, so that the whole response is bounded."""
    gets = any(isinstance(operation, GetItem) for operation in operations)
    finds = sum(isinstance(operation, FindItems) for operation in operations)
    return MAX_RESPONSE_BYTES // max(1, gets + finds)


def is_write(operation: ItemOperation) -> bool:
    """Return whether an operation is a write."""
    return isinstance(operation, ItemWrite)
