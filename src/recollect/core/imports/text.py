"""Convert values of another system to our limits, and count the changes."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime

from recollect.core.memories.checks import check_metadata
from recollect.core.text.checks import EARLIEST, LATEST, MAX_NAME_LENGTH, UNSTORABLE
from recollect.core.text.names import CONTROL
from recollect.errors import InvalidInputError
from recollect.models.memories import JSON
from recollect.models.service import IDENTIFIER, is_scope_name

UNREADABLE = "\ufffd"
MILLISECONDS = 100_000_000_000
"""Larger numbers are times in milliseconds: in seconds they would be after the year 5138."""
KEPT = 110
"""How many characters of a name stay before its hash."""
FOREIGN = re.compile(r"[^A-Za-z0-9._:@-]+")

CLEANED = f"texts with NUL or lone surrogates: {UNREADABLE} stands for each"
LONG = "texts longer than can be kept: cut"
LARGE = "entries whose metadata is too large or too deep: without it"
INVALID_TIME = "times that cannot be read: left out"
RENAMED = "invalid user IDs: replaced by a readable part and a hash"


def clean(text: str, remarks: Counter[str]) -> str:
    """Replace every character that cannot be stored."""
    if not UNSTORABLE.search(text):
        return text
    remarks[CLEANED] += 1
    return UNSTORABLE.sub(UNREADABLE, text)


def clean_json(value: JSON, remarks: Counter[str]) -> JSON:
    """Clean every text of a JSON value."""
    if isinstance(value, str):
        return clean(value, remarks)
    if isinstance(value, dict):
        return {clean(key, remarks): clean_json(item, remarks) for key, item in value.items()}
    return [clean_json(item, remarks) for item in value] if isinstance(value, list) else value


def to_line(text: str, remarks: Counter[str], longest: int = MAX_NAME_LENGTH) -> str:
    """Convert a short text to one line of bounded length."""
    return CONTROL.sub(" ", clean(text, remarks))[:longest].strip()


def cut(text: str, longest: int, remarks: Counter[str]) -> str:
    """Clean a text, and cut it at a maximum length."""
    if len(text) > longest:
        remarks[LONG] += 1
    return clean(text[:longest], remarks)


def to_text(value: JSON) -> str:
    """Return a value if it is a text, else an empty text."""
    return value if isinstance(value, str) else ""


def to_list(value: JSON) -> list[JSON]:
    """Return a value if it is a list, else an empty list."""
    return value if isinstance(value, list) else []


def to_fields(value: JSON) -> dict[str, JSON]:
    """Return a value if it is an object, else an empty object."""
    return value if isinstance(value, dict) else {}


def to_moment(value: JSON, remarks: Counter[str]) -> datetime | None:
    """Parse a time from a text or from a number since 1970; without a zone it is UTC."""
    if value is None or value == "":
        return None
    try:
        moment = _read(value)
        if EARLIEST <= moment <= LATEST:
            return moment
    except (ValueError, OverflowError, OSError):
        pass
    remarks[INVALID_TIME] += 1
    return None


def _read(value: JSON) -> datetime:
    if isinstance(value, str):
        moment = datetime.fromisoformat(value.strip())
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(value)  # noqa: TRY004 - the caller handles every invalid time in the same way
    return datetime.fromtimestamp(value / 1_000 if abs(value) > MILLISECONDS else value, UTC)


def to_identifier(text: str) -> str:
    """Return an ID if it fits, else its readable part and a hash, which keeps it unique."""
    if IDENTIFIER.fullmatch(text) and text.strip("."):
        return text
    readable = FOREIGN.sub("-", text).strip("-.")[:KEPT]
    return "-".join(filter(None, (readable, hash_parts(text))))


def to_user(text: str) -> str:
    """Return a user ID in composed form if it fits, else as an identifier."""
    composed = unicodedata.normalize("NFC", text)
    return composed if is_scope_name(composed) else to_identifier(text)


def hash_parts(*parts: object) -> str:
    """Return a short hash of some texts."""
    joined = "\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:16]


def note(name: str, kept: Mapping[str, JSON], more: Mapping[str, JSON], remarks: Counter[str]) -> dict[str, JSON]:
    """Return metadata of fields without an equivalent here; `more` is included only if it fits."""
    told: dict[str, JSON] = {field: value for field, value in kept.items() if value not in (None, "", [], {})}
    extra = {field: value for field, value in more.items() if value not in (None, "", [], {})}
    if extra:
        try:
            full: dict[str, JSON] = {
                name: {**told, **{key: clean_json(value, remarks) for key, value in extra.items()}}
            }
            check_metadata(full)
        except (InvalidInputError, RecursionError):
            remarks[LARGE] += 1
        else:
            return full
    return {name: told}
