"""A conversation store of Pydantic AI on the items of one scope: a save that fails leaves nothing to recall."""

from __future__ import annotations

import sys
from asyncio import CancelledError
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress

from anyio import CancelScope
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)

from recollect.client import RemoteMind
from recollect.errors import ConflictError, RecollectError
from recollect.models import JSON
from recollect.models.items import DropItem, GetItem, Item, ItemOperation, Path, PutItem
from recollect_pydantic_ai.entries import Link, Shelf, check_size, to_entry, to_key, to_link, to_record

MAX_OPERATIONS = 900
MAX_CHARACTERS = 225_000
PAGE = 1_000
ENTRIES_AT_ONCE = 200


class RecollectConversationStore(ConversationStore):
    """Conversations in one scope of Recollect; what the user and the model say is remembered there."""

    def __init__(self, mind: RemoteMind, path: Path = ("pydantic_ai",)) -> None:
        self._items = mind.items
        self._shelf = Shelf(*((*path, name) for name in ("records", "revisions", "entries", "links")))
        self._turn = GetItem(tuple(path), "turn")

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Read the record of a conversation, if there is one."""
        item = await self._items.get(self._shelf.records, to_key(conversation_id))
        return None if item is None else to_record(item)

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        """List the records, the last saved first."""
        where: dict[str, JSON] = {} if scope is None else {"scope": to_key(scope)}
        records = [to_record(item) async for item in self._find(self._shelf.records, where, limit)]
        return sorted(records, key=lambda record: record.updated_at, reverse=True)

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record with its new entries where the expected revision is still current, or leave nothing of it."""
        puts = [put for entry in new_entries for put in self._shelf.put_entry(entry, record.conversation_id)]
        stored, mark = self._shelf.put_record(record, new=expected_revision is None)
        check_size([stored, *puts])
        *early, last = pack(puts)
        writes = [*self._take(expected_revision), stored, mark, *last]
        head = None if record.head_id in {entry.id for entry in new_entries} else record.head_id
        try:
            for some in early:
                await self._items.batch([DropItem(mark.path, mark.key, expected=0), *some])
            while not await self._try(writes, record.conversation_id, expected_revision, head):
                pass
        except (Exception, CancelledError):
            await self._undo(mark, early)
            raise

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Delete a conversation with its messages and their memories, but for those that a fork shares."""
        while True:
            get = GetItem(self._shelf.records, to_key(conversation_id))
            [record, turn] = await self._items.batch([get, self._turn])
            if not isinstance(record, Item) or to_record(record).revision != expected_revision:
                raise ConversationConflict(conversation_id)
            gone = map(to_key, await self._find_released(to_record(record)))
            drops = [DropItem(path, key) for key in gone for path in (self._shelf.links, self._shelf.entries)]
            first = [*self._take(expected_revision), DropItem(get.path, get.key), self._pass(turn)]
            try:
                await self._items.batch([*first, *drops[:MAX_OPERATIONS]])
            except ConflictError:
                continue  # It was saved, or something was forked or deleted meanwhile: look again.
            for start in range(MAX_OPERATIONS, len(drops), MAX_OPERATIONS):
                await self._items.batch(drops[start : start + MAX_OPERATIONS])
            return

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Read one entry; a message that was forgotten is there no more."""
        item = await self._items.get(self._shelf.entries, to_key(entry_id))
        if item is None:
            raise KeyError(entry_id)
        return to_entry(item)

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """Read the entries up to a head, or only the last of them, without those that were forgotten."""
        links = [link async for link in self._walk(head_id, limit)]
        gets = [GetItem(self._shelf.entries, to_key(link.id)) for link in reversed(links)]
        parts = [gets[start : start + ENTRIES_AT_ONCE] for start in range(0, len(gets), ENTRIES_AT_ONCE)]
        return [to_entry(item) for part in parts for item in await self._items.batch(part) if isinstance(item, Item)]

    async def _try(self, writes: Sequence[ItemOperation], name: str, expected: str | None, head: str | None) -> bool:
        """Write if nothing stands against it; tell whether it is done, or to be tried again."""
        if head is not None:
            # An old entry must stay as long as this takes, so whoever releases entries waits for its turn.
            link, turn = await self._items.batch([GetItem(self._shelf.links, to_key(head)), self._turn])
            if link is None:
                raise ConversationConflict(name)
            writes = [*writes, self._pass(turn)]
        try:
            await self._items.batch(writes)
        except ConflictError:
            stored = await self.read_record(name)
            if head is None or (stored.revision if stored else None) != expected:
                raise ConversationConflict(name) from None
            return False
        return True

    async def _undo(self, mark: PutItem, early: Sequence[Sequence[PutItem]]) -> None:
        """Take back what a failed save wrote early; its mark, once set here, refuses what is still on the way."""
        with CancelScope(shield=True), suppress(RecollectError):  # Where it was saved after all, the mark is there.
            if early:
                await self._items.batch([mark])
            for some in early:
                await self._items.batch([DropItem(put.path, put.key) for put in some])

    def _take(self, expected: str | None) -> list[ItemOperation]:
        """Take away the mark of the revision that is replaced: only one write can, for none comes twice."""
        return [] if expected is None else [DropItem(self._shelf.revisions, to_key(expected), expected=1)]

    def _pass(self, turn: object) -> PutItem:
        """Take a turn among the writes that release entries, or that count on some to stay."""
        return PutItem(self._turn.path, self._turn.key, {}, expected=turn.revision if isinstance(turn, Item) else 0)

    async def _find_released(self, record: ConversationRecord) -> dict[str, Link]:
        """Find the entries that no other conversation has, once this one is gone."""
        own = await self._reach(record)
        origins = {link.conversation for link in own.values()}
        others = {item.key: item async for item in self._find(self._shelf.records, {"forked": True})}
        if origins:
            found = await self._items.batch([GetItem(self._shelf.records, each) for each in origins])
            others |= {item.key: item for item in found if isinstance(item, Item)}
        others.pop(to_key(record.conversation_id), None)
        for other in others.values():
            with suppress(LookupError):  # Where it goes at the same time, one of both looks again.
                own = {each: own[each] for each in own.keys() - await self._reach(to_record(other))}
        return own

    async def _reach(self, record: ConversationRecord) -> dict[str, Link]:
        """Find all entries of a conversation, on the branches that it left too."""
        tips = [record.head_id, *record.branches]
        return {link.id: link for tip in tips async for link in self._walk(tip)}

    async def _walk(self, head_id: str | None, limit: int | None = None) -> AsyncIterator[Link]:
        """Walk from an entry to the first one, reading the links of each conversation page by page."""
        known: dict[str, Link] = {}
        pages: dict[str, int] = {}
        while head_id is not None and (limit is None or limit > 0):
            key = to_key(head_id)
            if key not in known:
                item = await self._items.get(self._shelf.links, key)
                if item is None:
                    raise KeyError(head_id)
                link = to_link(item)
                where, offset = {"conversation": link.conversation}, pages.get(link.conversation, 0)
                page = await self._items.find(self._shelf.links, where=where, limit=PAGE, offset=offset)
                pages[link.conversation] = offset + PAGE
                known |= {each.item.key: to_link(each.item) for each in page} | {item.key: link}
            yield known[key]
            limit, head_id = None if limit is None else limit - 1, known[key].parent_id

    async def _find(self, under: Path, where: dict[str, JSON], limit: int | None = None) -> AsyncIterator[Item]:
        """Find items under a path, the newest first, as many as there are or as are wanted."""
        most = sys.maxsize if limit is None else limit
        for offset in range(0, most, PAGE):
            page = await self._items.find(under, where=where, limit=min(PAGE, most - offset), offset=offset)
            for found in page:
                yield found.item
            if len(page) < PAGE:
                return


def pack(puts: Sequence[PutItem]) -> Iterator[list[PutItem]]:
    """Divide puts into batches of a size that the service takes."""
    packed: list[PutItem] = []
    room = MAX_CHARACTERS
    for put in puts:
        size = len(put.text) + len(str(put.value.get("message", "")))
        if packed and (size > room or len(packed) >= MAX_OPERATIONS):
            yield packed
            packed, room = [], MAX_CHARACTERS
        packed.append(put)
        room -= size
    yield packed
