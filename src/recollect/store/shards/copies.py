"""What a move does on its two shards to copy: logical replication of the rows of some buckets, and their removal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, LiteralString

from psycopg import AsyncConnection, sql
from psycopg.rows import DictRow

from recollect.core.service.numbers import number_range
from recollect.errors import ConflictError, SetupError, UnavailableError
from recollect.models.shards import FIRST_BUCKET, PlacedBuckets
from recollect.store.database.ownership import owning
from recollect.store.database.pool import load_queries
from recollect.store.shards.moves import Move

QUERIES = load_queries(__file__)
OF_HOME = frozenset({"api_keys", "erasure_receipts", "tenant_keys"})
"""What belongs to a tenant and to no scope; it goes with its home."""
PROFILES = "agents"
"""Every shard that has something of a tenant has these."""
NOT_COMPARED = frozenset({"last_used_at"})
"""Columns that are written past the lock of the tenant."""
HOLD_SECONDS, LOOK_SECONDS = 0.5, 0.01
ATTEMPTS = 20
"""How often both shards are looked at in the same state, before the target counts as one that cannot follow."""
Owner = AsyncConnection[DictRow]


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """A table, and which of its rows go."""

    name: str
    columns: Sequence[str]
    filter: sql.Composed

    def fill(self, query: str) -> sql.Composed:
        """Write a query about these rows."""
        columns = sql.SQL(", ").join(sql.Identifier(each) for each in self.columns if each not in NOT_COMPARED)
        return sql.SQL(QUERIES[query]).format(table=sql.Identifier(self.name), filter=self.filter, columns=columns)


@dataclass(frozen=True, slots=True)
class Copies:
    """The two shards of a move, as their owners reach them."""

    move: Move
    source: str = field(repr=False)
    target: str = field(repr=False)

    @property
    def named(self) -> dict[str, int | str]:
        """Give what the queries name: the move, its buckets, and the first and the last number of a scope."""
        move = self.move
        first, last = number_range(move.tenant_id, max(move.first_bucket, FIRST_BUCKET), move.last_bucket)
        buckets = {"first_bucket": move.first_bucket, "last_bucket": move.last_bucket}
        return {"name": move.name, "tenant_id": move.tenant_id, **buckets, "first": first, "last": last}

    async def check(self) -> None:
        """Refuse what cannot be moved: versions or spaces that differ, a space that is filled, roles that may not."""
        async with owning(self.source) as source, owning(self.target) as target:
            able = [await one(each, QUERIES["able"]) for each in (source, target)]
            stands = [await one(each, QUERIES["versions"]) for each in (source, target)]
        if not all(each["able"] for each in able):
            raise SetupError("A move needs owners that may replicate: superusers, or as the page on shards says.")
        if not able[0]["logical"]:
            raise SetupError("A move needs wal_level = logical on the server that the buckets come from.")
        if stands[0]["steps"] != stands[1]["steps"]:
            raise ConflictError("The shards have different schemas: run `recollect migrate` first.")
        if stands[0]["spaces"] != stands[1]["spaces"] or any(each["being_filled"] for each in stands):
            raise ConflictError("The shards differ in embedding spaces, or one is being filled: let that end first.")

    async def align(self, placements: Sequence[PlacedBuckets]) -> None:
        """Tell the source which placements it serves."""
        told = {
            "starts": [each.first_bucket for each in placements],
            "ends": [each.last_bucket for each in placements],
            "generations": [each.generation for each in placements],
        }
        async with owning(self.source) as connection, connection.transaction():
            await connection.execute(QUERIES["forget_served"], self.named)
            await connection.execute(QUERIES["align"], self.named | told)

    async def begin(self, generation: int) -> None:
        """Begin to copy, or go on: what is there already stays."""
        async with owning(self.source) as source, owning(self.target) as target:
            await target.execute(QUERIES["copy_tenant"], await one(source, QUERIES["read_tenant"], self.named))
            for left in await rows(target, QUERIES["left_behind"], self.named | {"generation": generation}):
                await self.remove(target, (left["first_bucket"], left["last_bucket"]))
            other = (await one(target, QUERIES["has_other_part"], self.named))["present"]
            await target.execute(QUERIES["expect"], self.named | {"generation": generation})
            if not (await one(source, QUERIES["has_publication"], self.named))["present"]:
                listed = [each for each in await self.tables(source) if not (other and each.name == PROFILES)]
                tables = sql.SQL(", ").join(each.fill("publish_table") for each in listed)
                await source.execute(self._named("publish", tables=tables))
            if not (await one(source, QUERIES["has_slot"], self.named))["present"]:
                await source.execute(QUERIES["create_slot"], self.named)
            if not (await one(target, QUERIES["has_subscription"], self.named))["present"]:
                slot, address = sql.Literal(self.move.name), sql.Literal(self.source)
                await target.execute(self._named("subscribe", slot=slot, source=address))

    async def tables(self, connection: Owner, buckets: tuple[int, int] | None = None) -> list[CopiedTable]:
        """List the tables with rows of the buckets, and if their home is among them, of the tenant."""
        start, end = buckets or (self.move.first_bucket, self.move.last_bucket)
        first, last = number_range(self.move.tenant_id, max(start, FIRST_BUCKET), end)
        tenant, home = sql.Literal(self.move.tenant_id), start < FIRST_BUCKET
        found: list[CopiedTable] = []
        for row in await rows(connection, QUERIES["tables"]):
            if row["name"] in OF_HOME and not home:
                continue
            if row["of_scopes"] or row["name"] == "scopes":
                column = sql.Identifier("scope_id" if row["of_scopes"] else "id")
                limits = {"column": column, "first": sql.Literal(first), "last": sql.Literal(last)}
                chosen = sql.SQL(QUERIES["of_scopes"]).format(**limits)
            elif row["name"] == "scope_counters":
                limits = {"tenant": tenant, "first": sql.Literal(start), "last": sql.Literal(end)}
                chosen = sql.SQL(QUERIES["of_buckets"]).format(**limits)
            else:
                chosen = sql.SQL(QUERIES["of_tenant"]).format(tenant=tenant)
            found.append(CopiedTable(row["name"], row["columns"], chosen))
        return found

    async def remove(self, connection: Owner, buckets: tuple[int, int]) -> None:
        """Remove what a shard has of buckets that it does not serve."""
        other = (await one(connection, QUERIES["has_other_part"], self.named))["present"]
        async with connection.transaction():
            await connection.execute(QUERIES["past_triggers"])
            for table in await self.tables(connection, buckets):
                if not (other and table.name == PROFILES):
                    await connection.execute(table.fill("remove"))
            await connection.execute(QUERIES["drop_placement"], self.named | {"first_bucket": buckets[0]})

    async def follow_copy(self, report: Callable[[int, int], None]) -> None:
        """Wait until every table is copied; report how many are."""
        async with owning(self.target) as target:
            while True:
                row = await one(target, QUERIES["progress"], self.named)
                if not row["enabled"]:
                    raise ConflictError("The target could not take a row: its server log says which, and why.")
                report(row["copied"], row["tables"])
                if row["copied"] == row["tables"]:
                    return
                await asyncio.sleep(0.2)

    async def catch_up(self, near: int, report: Callable[[int], None]) -> None:
        """Wait until the target is so many bytes of the log behind; report how many it is."""
        async with owning(self.source) as source:
            while (behind := await self.behind(source, await read_position(source))) > near:
                report(behind)
                await asyncio.sleep(0.2)

    async def behind(self, source: Owner, position: str) -> int:
        """Tell how many bytes of the log before a position the target lacks."""
        behind: int = (await one(source, QUERIES["behind"], self.named | {"position": position}))["bytes"]
        return behind

    async def arrives(self, source: Owner, position: str, seconds: float) -> bool:
        """Wait so long for the target to have all before a position; tell whether it has."""
        until = time.monotonic() + seconds
        while behind := await self.behind(source, position):
            if time.monotonic() > until:
                break
            await asyncio.sleep(LOOK_SECONDS)
        return not behind

    async def end_copying(self) -> None:
        """Stop following: remove subscription, slot and publication, as far as they are there."""
        async with owning(self.target) as target:
            if (await one(target, QUERIES["has_subscription"], self.named))["present"]:
                await target.execute(self._named("detach"))
                await target.execute(self._named("unslot"))
                await target.execute(self._named("unsubscribe"))
        async with owning(self.source) as source:
            for _ in range(ATTEMPTS):
                # Whoever reads it needs a moment to notice that it is not needed any more.
                await source.execute(QUERIES["drop_slot"], self.named)
                if not (await one(source, QUERIES["has_slot"], self.named))["present"]:
                    break
                await asyncio.sleep(HOLD_SECONDS)
            await source.execute(self._named("drop_publication"))

    async def give_up(self) -> None:
        """Remove what has come to the target."""
        async with owning(self.target) as target:
            await self.remove(target, (self.move.first_bucket, self.move.last_bucket))

    def _named(self, query: str, **places: sql.Composable) -> sql.Composed:
        return sql.SQL(QUERIES[query]).format(name=sql.Identifier(self.move.name), **places)


async def list_closed(owner: str, hours: float) -> list[tuple[int, tuple[int, int]]]:
    """List the buckets that a shard closed so long ago, each with its tenant."""
    async with owning(owner) as connection:
        found = await rows(connection, QUERIES["closed_long_ago"], {"hours": hours})
    return [(row["tenant_id"], (row["first_bucket"], row["last_bucket"])) for row in found]


async def rows(connection: Owner, query: LiteralString, named: Mapping[str, Any] | None = None) -> list[DictRow]:
    """Read the rows of a query."""
    return await (await connection.execute(query, named)).fetchall()


async def one(connection: Owner, query: LiteralString, named: Mapping[str, Any] | None = None) -> DictRow:
    """Read the one row of a query."""
    found = await rows(connection, query, named)
    if not found:
        raise UnavailableError("The move is not known to its shards as the catalog has it; try again.")
    return found[0]


async def read_one(connection: Owner, query: sql.Composed) -> DictRow | None:
    """Read the row of a composed query."""
    return await (await connection.execute(query)).fetchone()


async def read_position(connection: Owner) -> str:
    """Read how far a server's log is."""
    position: str = (await one(connection, QUERIES["position"]))["position"]
    return position
