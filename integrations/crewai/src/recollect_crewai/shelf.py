"""Where records lie: each under the path of its scope, and beside them a note of where each one lies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from crewai.memory.types import MemoryRecord

from recollect.errors import ConflictError
from recollect.models.items import DropItem, GetItem, Item, ItemOperation, Path, PutItem
from recollect.sync import BlockingItems
from recollect_crewai.records import to_put

T = TypeVar("T")
AT_ONCE = 30
PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Shelf:
    """The items of one storage: records by scope and id, and places by id alone."""

    items: BlockingItems
    root: Path
    places: Path

    def put(self, records: Sequence[MemoryRecord]) -> None:
        """Store records, in one transaction as long as there are not too many for one."""
        for some in divide(records):
            while not self._try_put({record.id: record for record in some}):
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

    def _try_put(self, records: dict[str, MemoryRecord]) -> bool:
        """Store records in the place of those that have their ids; tell whether nobody else did meanwhile."""
        places = self.items.batch([GetItem(self.places, key) for key in records])
        lain = {place.key: place for place in places if isinstance(place, Item)}
        before = self.get([key for key in lain if not records[key].embedding])
        writes: list[ItemOperation] = []
        for key, record in records.items():
            kept = before[key].embedding if key in before else ()
            put = to_put(record, self.root, record.embedding or kept)
            place = lain.get(key)
            if place is not None and read_path(place) != put.path:
                writes.append(DropItem(read_path(place), key))
            expected = 0 if place is None else place.revision
            writes += [put, PutItem(self.places, key, {"path": [*put.path]}, expected=expected)]
        try:
            self.items.batch(writes)
        except ConflictError:
            return False
        return True


def read_path(place: Item) -> Path:
    """Read where a record lies."""
    path = place.value["path"]
    return tuple(map(str, path)) if isinstance(path, list) else ()


def divide(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Divide values into as many as one batch takes, however long their texts are."""
    return (values[start : start + AT_ONCE] for start in range(0, len(values), AT_ONCE))
