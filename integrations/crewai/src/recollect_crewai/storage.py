"""A storage of CrewAI's memory on the items of one scope of Recollect."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime
from typing import Any, cast

from crewai.memory.types import MemoryRecord, ScopeInfo

from recollect.models.items import FindItems, FoundItem, Path
from recollect.sync import SyncMind
from recollect_crewai.records import by_category, to_conditions, to_path, to_record
from recollect_crewai.shelf import PAGE, Shelf


class RecollectStorage:
    """Records under their scopes, found by CrewAI's vectors there, and by Recollect as memories of their own."""

    def __init__(self, mind: SyncMind, path: Path = ("crewai",)) -> None:
        self._shelf = Shelf(mind.items, (*path, "records"), (*path, "places"))

    def save(self, records: list[MemoryRecord]) -> None:
        """Store records in one transaction, or in several where there is more than one can carry."""
        self._shelf.put(records)

    def update(self, record: MemoryRecord) -> None:
        """Replace a record, wherever it lay; without a vector it keeps the one that it had."""
        self.save([record])

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """Read one record."""
        item = self._shelf.get([record_id]).get(record_id)
        return None if item is None else to_record(item)

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Find the records nearest to a vector, by cosine similarity."""
        if not any(query_embedding) or limit < 1:
            return []
        under, most = to_path(self._shelf.root, scope_prefix), min(limit, PAGE)
        wheres = by_category(to_conditions(metadata_filter or {}, None), categories)
        finds = [FindItems(under, where, embedding=query_embedding, limit=most) for where in wheres]
        answers = cast("list[tuple[FoundItem, ...]]", self._shelf.items.batch(finds))
        found = {each.item.key: each for answer in answers for each in answer}
        best = sorted(found.values(), key=lambda each: each.score or 0.0, reverse=True)
        return [(to_record(each.item), each.score or 0.0) for each in best if (each.score or 0.0) >= min_score][:limit]

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Delete the records that meet every criterion, with their memories; all of them if there is none."""
        under, where = to_path(self._shelf.root, scope_prefix), to_conditions(metadata_filter or {}, older_than)
        if record_ids is not None and not (scope_prefix or categories or where):
            met = self._shelf.get(record_ids)
        else:
            met = {item.key: item for each in by_category(where, categories) for item in self._shelf.scan(under, each)}
        gone = [item for key, item in met.items() if record_ids is None or key in record_ids]
        self._shelf.drop(gone)
        return len(gone)

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        """List the records of a scope and those below it, the newest first."""
        records = [to_record(item) for item in self._shelf.scan(to_path(self._shelf.root, scope_prefix))]
        newest = sorted(records, key=lambda record: record.created_at, reverse=True)
        return newest[offset : offset + limit] if limit > 0 <= offset else []

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Describe a scope with all that lies below it."""
        records = self.list_records(scope, limit=PAGE * PAGE)
        return ScopeInfo(
            path=scope.rstrip("/") or "/",
            record_count=len(records),
            categories=sorted({category for record in records for category in record.categories}),
            oldest_record=records[-1].created_at if records else None,
            newest_record=records[0].created_at if records else None,
            child_scopes=self.list_scopes(scope),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """List the scopes directly below one."""
        under = to_path(self._shelf.root, parent)
        depth, found = len(under) + 1, list[Path]()
        while len(page := self._shelf.items.paths(under, depth=depth, limit=PAGE, offset=len(found))) == PAGE:
            found += page
        children = [path for path in (*found, *page) if path[:-1] == under]  # To the service, `*` is any segment.
        return sorted("/" + "/".join(path[len(self._shelf.root) :]) for path in children)

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Count the records of each category."""
        items = self._shelf.scan(to_path(self._shelf.root, scope_prefix))
        return dict(Counter(category for item in items for category in to_record(item).categories))

    def count(self, scope_prefix: str | None = None) -> int:
        """Count the records of a scope and those below it."""
        return sum(1 for _ in self._shelf.scan(to_path(self._shelf.root, scope_prefix)))

    def reset(self, scope_prefix: str | None = None) -> None:
        """Delete all records of a scope and those below it."""
        self.delete(scope_prefix)

    async def asave(self, records: list[MemoryRecord]) -> None:
        """Store records, without holding up the event loop."""
        await asyncio.to_thread(self.save, records)

    async def asearch(self, *args: Any, **kwargs: Any) -> list[tuple[MemoryRecord, float]]:  # noqa: ANN401 - as there
        """Find the records nearest to a vector, without holding up the event loop."""
        return await asyncio.to_thread(self.search, *args, **kwargs)

    async def adelete(self, *args: Any, **kwargs: Any) -> int:  # noqa: ANN401 - as there
        """Delete records, without holding up the event loop."""
        return await asyncio.to_thread(self.delete, *args, **kwargs)
