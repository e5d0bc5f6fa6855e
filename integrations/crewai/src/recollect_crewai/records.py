"""Turn records of CrewAI's memory into items, and back; what is filtered by becomes a field of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from crewai.memory.types import MemoryRecord

from recollect.errors import InvalidInputError
from recollect.models import JSON
from recollect.models.items import Item, Path, PutItem

MAX_TEXT = 32_000
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
MAX_VALUE = 1_000_000


def to_put(record: MemoryRecord, root: Path) -> PutItem:
    """Put a record under its scope, with its content as what is remembered."""
    fields, moment = record.model_dump(mode="json"), to_moment(record.created_at)
    # Letters as they are, so that none takes more room than it must; but what no text can hold is written as JSON may.
    written = UNSTORABLE.sub(lambda lone: f"\\u{ord(lone[0]):04x}", json.dumps(fields, ensure_ascii=False))
    value: dict[str, JSON] = {"record": written, "created": moment.timestamp()}
    value |= {f"category:{clean(each)}": True for each in record.categories}
    value |= {f"metadata:{clean(name)}": clean_json(each) for name, each in fields["metadata"].items()}
    text = said if (said := clean(record.content)[:MAX_TEXT]).strip() else ""
    vector = record.embedding if any(record.embedding or ()) else None
    return PutItem(to_path(root, record.scope), record.id, value, text, vector, 1 + 9 * record.importance, moment)


def measure(put: PutItem) -> int:
    """Give the bytes of a record as it is stored, or refuse one that no item can hold."""
    size = len(json.dumps(put.value, ensure_ascii=False).encode())
    if size > MAX_VALUE:
        raise InvalidInputError(f"record {put.key} has {size} bytes of JSON, over {MAX_VALUE}: save it in parts")
    return size


def to_record(item: Item) -> MemoryRecord:
    """Read a record out of its item."""
    return MemoryRecord(**json.loads(str(item.value["record"])), embedding=list(item.embedding) or None)


def to_path(root: Path, scope: str | None) -> Path:
    """Give the path of the items of a scope such as /crew/research."""
    return (*root, *filter(None, clean(scope or "").split("/")))


def to_conditions(metadata: Mapping[str, Any], older_than: datetime | None) -> dict[str, JSON]:
    """Say which fields an item must have to meet the filters; categories are told apart elsewhere."""
    where: dict[str, JSON] = {f"metadata:{clean(name)}": {"$eq": clean_json(each)} for name, each in metadata.items()}
    return where | ({} if older_than is None else {"created": {"$lt": to_moment(older_than).timestamp()}})


def by_category(where: Mapping[str, JSON], categories: Sequence[str] | None) -> list[dict[str, JSON]]:
    """Give the conditions once for each category, because any of them will do; once in all where none is named."""
    named = {f"category:{clean(each)}" for each in categories or ()}
    return [{**where, name: True} for name in named] or [dict(where)]


def to_moment(moment: datetime) -> datetime:
    """Give a moment its offset; CrewAI's have none, and are in UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def clean(text: str) -> str:
    """Replace what no text of the database can hold."""
    return UNSTORABLE.sub("\ufffd", text)


def clean_json(value: JSON) -> JSON:
    """Clean every text of a value."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [clean_json(each) for each in value]
    return {clean(name): clean_json(each) for name, each in value.items()} if isinstance(value, dict) else value
