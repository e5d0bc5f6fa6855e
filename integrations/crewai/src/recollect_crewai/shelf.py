"""Where records lie: each under the path of its scope, and beside them a note of where each one lies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from crewai.memory.types import MemoryRecord

from recollect.errors import ConflictError
from recollect.models.items import DropItem, GetItem, Item, ItemOperation, Path, PutItem
from recollect.sync import SyncItems
from recollect_crewai.records import measure, to_put

T = TypeVar("T")
AT_ONCE = 30
BYTES_AT_ONCE = 1_500_000
PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Shelf:
    """The items of one storage: records by scope and id, and places by id alone."""

    items: SyncItems
    root: Path
    places: Path

    def put(self, records: Sequence[MemoryRecord]) -> None:
        """Store records, in one transaction as long as there is not too much for one."""
        puts = {record.id: to_put(record, self.root) for record in records}
        largest = max(map(measure, puts.values()), default=1)
        for some in divide([*puts.values()], BYTES_AT_ONCE // largest):
            while not self._try_put({put.key: put for put in some}):
                pass

    def get(self, record_ids: Sequence[str]) -> dict[str, Item]:
        """Read records by their ids, with their vectors."""
        found: dict[str, Item] = {}
        for some in divide(record_ids):
            places = self.items.batch([GetItem(self.places, key) for key in some])
            gets = [GetItem(read_path(place), place.key, vector=True) for place in places if isinstance(place, Item)]
            items = self.items.batch(gets) if gets else []
            found |= {item.key: item for item in items if isinstance(item, Item)}
        return found

    def drop(self, gone: Sequence[Item]) -> None:
        """Drop records, and the notes of where they lay."""
        for some in divide(gone):
            self.items.batch([DropItem(path, item.key) for item in some for path in (item.path, self.places)])

    def scan(self, under: Path, where: dict[str, Any] | None = None) -> Iterator[Item]:
        """Read all records under a path that meet the conditions."""
        offset = 0
        while page := self.items.find(under, where=where, limit=PAGE, offset=offset):
            yield from (found.item for found in page)
            offset += PAGE

    def _try_put(self, puts: dict[str, PutItem]) -> bool:
        """Store records in the place of those that have their ids; tell whether nobody else did meanwhile."""
        places = self.items.batch([GetItem(self.places, key) for key in puts])
        lain = {place.key: place for place in places if isinstance(place, Item)}
        before = self.get([key for key in lain if puts[key].embedding is None])
        writes: list[ItemOperation] = []
        for key, new in puts.items():
            put = replace(new, embedding=before[key].embedding or None) if key in before else new
            place = lain.get(key)
            if place and read_path(place) != put.path:
                writes.append(DropItem(read_path(place), key))
            writes += [put, PutItem(self.places, key, {"path": [*put.path]}, expected=place.revision if place else 0)]
        try:
            self.items.batch(writes)
        except ConflictError:
            return False
        return True


def read_path(place: Item) -> Path:
    """Read where a record lies."""
    path = place.value["path"]
    return tuple(map(str, path)) if isinstance(path, list) else ()


def divide(values: Sequence[T], most: int = AT_ONCE) -> Iterator[Sequence[T]]:
    """Divide values into as many as one batch takes, or fewer where they are large."""
    step = min(most, AT_ONCE)
    return (values[start : start + step] for start in range(0, len(values), step))
