"""Turn records of CrewAI's memory into items, and back; what is filtered by becomes a field of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from crewai.memory.types import MemoryRecord

from recollect.models import JSON
from recollect.models.items import Item, Path, PutItem

LONGEST_TEXT = 32_000
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def to_put(record: MemoryRecord, root: Path, embedding: Sequence[float]) -> PutItem:
    """Put a record under its scope, with its content as what is remembered."""
    fields = record.model_dump(mode="json")
    value: dict[str, JSON] = {"record": json.dumps(fields), "created": to_moment(record.created_at).timestamp()}
    value |= {f"category:{clean(each)}": True for each in record.categories}
    value |= {f"metadata:{clean(name)}": scrub(each) for name, each in fields["metadata"].items()}
    text = clean(record.content)[:LONGEST_TEXT]
    return PutItem(
        path=to_path(root, record.scope),
        key=record.id,
        value=value,
        text=text if text.strip() else "",
        embedding=embedding if any(embedding) else None,
        importance=1 + 9 * record.importance,
        occurred_at=to_moment(record.created_at),
    )


def to_record(item: Item) -> MemoryRecord:
    """Read a record out of its item."""
    fields = json.loads(str(item.value["record"]))
    return MemoryRecord(**fields, embedding=list(item.embedding) or None)


def to_path(root: Path, scope: str | None) -> Path:
    """Give the path of the items of a scope such as /crew/research."""
    return (*root, *filter(None, clean(scope or "").split("/")))


def to_conditions(metadata: Mapping[str, Any] | None, older_than: datetime | None) -> dict[str, JSON]:
    """Say which fields an item must have to meet the filters; categories are told apart elsewhere."""
    where: dict[str, JSON] = {
        f"metadata:{clean(name)}": {"$eq": scrub(each)} for name, each in (metadata or {}).items()
    }
    return where | ({} if older_than is None else {"created": {"$lt": to_moment(older_than).timestamp()}})


def by_category(where: Mapping[str, JSON], categories: Sequence[str] | None) -> Iterator[dict[str, JSON]]:
    """Give the conditions once for each category, because any of them will do; once in all where none is named."""
    for category in {clean(each) for each in categories or ()}:
        yield {**where, f"category:{category}": True}
    if not categories:
        yield dict(where)


def to_moment(moment: datetime) -> datetime:
    """Give a moment its offset; CrewAI's have none, and are in UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def clean(text: str) -> str:
    """Replace what no text of the database can hold."""
    return UNSTORABLE.sub("\ufffd", text)


def scrub(value: JSON) -> JSON:
    """Clean every text of a value."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [scrub(each) for each in value]
    return {clean(name): scrub(each) for name, each in value.items()} if isinstance(value, dict) else value
