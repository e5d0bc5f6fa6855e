"""Refuse texts, names, times and JSON that cannot be stored."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime

from recollect.core.text.names import CONTROL
from recollect.errors import InvalidInputError
from recollect.models.service import MAX_SCOPE_NAME_LENGTH, is_scope_name

MAX_CUE_LENGTH = 8_000


MAX_NAME_LENGTH = 200


MAX_HITS = 200


MAX_KEY_LENGTH = 255


UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


EARLIEST, LATEST = datetime(2, 1, 1, tzinfo=UTC), datetime(9998, 12, 31, tzinfo=UTC)


def check_scope(agent: str, user: str) -> None:
    """Check the names of a scope: any script, in a unique form; the user may be empty."""
    for field, value in (("agent", agent), ("user", user)):
        if not (is_scope_name(value) or (field == "user" and value == "")):
            raise InvalidInputError(
                f"{field} must be a name of 1 to {MAX_SCOPE_NAME_LENGTH} visible characters in Unicode's composed form "
                "(NFC), without a slash, and with no blanks but single ones between words"
            )


def check_limit(limit: int) -> None:
    """Check the maximum number of results."""
    if not 1 <= limit <= MAX_HITS:
        raise InvalidInputError(f"limit must be between 1 and {MAX_HITS}")


def check_text(field: str, value: str, longest: int) -> None:
    """Refuse text that is too long or that PostgreSQL cannot store."""
    if len(value) > longest:
        raise InvalidInputError(f"{field} must be at most {longest} characters long")
    if is_unstorable(value):
        raise InvalidInputError(f"{field} must not contain NUL characters or lone surrogates")


def is_unstorable(value: str) -> bool:
    """Return whether PostgreSQL cannot store a text."""
    return "\0" in value if value.isascii() else bool(UNSTORABLE.search(value))


def check_line(field: str, value: str, longest: int = MAX_NAME_LENGTH) -> None:
    """Refuse a short text that is too long or has several lines."""
    # Printable text has no control characters, and this check is faster than a search.
    if len(value) > longest or (not value.isprintable() and CONTROL.search(value)):
        raise InvalidInputError(f"{field} must be one line of at most {longest} characters")


def check_idempotency_key(key: str) -> None:
    """Check that a key is printable ASCII of bounded length."""
    if len(key) > MAX_KEY_LENGTH or not (key.isascii() and key.isprintable()):
        raise InvalidInputError(f"Idempotency-Key must be at most {MAX_KEY_LENGTH} printable ASCII characters")


def check_moment(field: str, moment: datetime) -> None:
    """Check that a time has an offset, and is in a year that every clock supports."""
    if moment.tzinfo is None:
        raise InvalidInputError(f"{field} must carry a time zone offset, as in 2026-01-31T12:00:00+08:00")
    if not EARLIEST <= moment <= LATEST:
        raise InvalidInputError(f"{field} must be between the years 2 and 9998")


def check_json(field: str, value: object, largest: int, deepest: int) -> int:
    """Check that a JSON object can be stored, within a size and depth; return its size in bytes."""
    if not isinstance(value, dict):
        raise InvalidInputError(f"{field} must be a JSON object")
    if not value:
        return len("{}")
    for text in walk_texts(value, deepest, f"{field} must be at most {deepest} levels deep"):
        if is_unstorable(text):
            raise InvalidInputError(f"{field} must not contain U+0000 or lone surrogates: PostgreSQL cannot store them")
    try:
        size = len(json.dumps(value, allow_nan=False, ensure_ascii=False).encode())
    except (TypeError, ValueError) as problem:
        raise InvalidInputError(f"{field} must be plain JSON without NaN or infinity") from problem
    if size > largest:
        raise InvalidInputError(f"{field} must be at most {largest} bytes of JSON")
    return size


def walk_texts(value: object, left: int, complaint: str) -> Iterable[str]:
    """Yield every text in a JSON value, including field names; raise if it is nested too deep."""
    if left < 0:
        raise InvalidInputError(complaint)
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, part in value.items():
            if not isinstance(name, str):
                raise InvalidInputError("JSON object keys must be strings")
            yield name
            yield from walk_texts(part, left - 1, complaint)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from walk_texts(part, left - 1, complaint)
