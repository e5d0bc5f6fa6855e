"""How buckets change hands: both shards are compared, one is fenced and closed, the other opened, and jobs go along."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from psycopg.types.json import Jsonb

from recollect.errors import UnavailableError
from recollect.store.database.ownership import owning
from recollect.store.database.pool import load_queries
from recollect.store.shards.copies import ATTEMPTS, HOLD_SECONDS, Copies, Owner, one, read_one, read_position, rows

QUERIES = load_queries(__file__)
UNFINISHED = (
    "Receipts of erasures wait for a mirror, or for another shard: let that end, or drop the mirror, then try again."
)


@dataclass(frozen=True, slots=True)
class Handover:
    """What is done with the two shards of a move once the target follows the source."""

    copies: Copies

    @asynccontextmanager
    async def same_state(self) -> AsyncIterator[tuple[Owner, Owner]]:
        """Look at both shards as of one moment; who writes to the tenant waits until the target has come to it."""
        async with (
            owning(self.copies.source) as source,
            owning(self.copies.target) as target,
            owning(self.copies.source) as other,
        ):
            for each in (source, target):
                await each.execute(QUERIES["same_texts"])
            for _ in range(ATTEMPTS):
                await source.execute(QUERIES["hold"], self.copies.named)
                try:
                    await source.execute(QUERIES["begin_snapshot"])
                    if await self.copies.arrives(other, await read_position(source), HOLD_SECONDS):
                        await target.execute(QUERIES["begin_snapshot"])
                        await read_position(target)
                        break
                    await source.execute(QUERIES["end_snapshot"])
                finally:
                    await source.execute(QUERIES["release"], self.copies.named)
                await asyncio.sleep(HOLD_SECONDS)
            else:
                raise UnavailableError("The target does not keep up with what is written; try again when less is.")
            yield source, target

    async def compare(self, report: Callable[[int, int], None]) -> list[str]:
        """Compare every table by counts and checksums, as of one moment; return those that differ."""
        differing: list[str] = []
        async with self.same_state() as (source, target):
            tables = await self.copies.tables(source)
            for number, table in enumerate(tables, 1):
                query = table.fill("checksum")
                both = await asyncio.gather(*(read_one(each, query) for each in (source, target)))
                differing += [table.name] if both[0] != both[1] else []
                report(number, len(tables))
        return differing

    async def fence(self, seconds: float) -> None:
        """Let nobody write to the buckets for so long, and wait until the target has all that was written."""
        async with owning(self.copies.source) as source:
            await source.execute(QUERIES["fence"], self.copies.named | {"seconds": seconds})
            if not await self.copies.arrives(source, await read_position(source), seconds / 2):
                raise UnavailableError("The target did not get the last changes in time; try again.")

    async def count_unfinished(self) -> int:
        """Count the receipts that wait for a mirror, or for another server: what they wait for must not move away."""
        async with owning(self.copies.source) as source, owning(self.copies.target) as target:
            counted = [await one(each, QUERIES["unfinished"], self.copies.named) for each in (source, target)]
        return sum(each["receipts"] for each in counted)

    async def await_receipts(self, seconds: float) -> None:
        """Wait so long until no receipt waits for anything."""
        until = time.monotonic() + seconds
        while await self.count_unfinished():
            if time.monotonic() > until:
                raise UnavailableError(UNFINISHED)
            await asyncio.sleep(HOLD_SECONDS)

    async def compare_numbers(self) -> bool:
        """Tell whether the scopes have the same numbers of changes on both shards."""
        async with owning(self.copies.source) as source, owning(self.copies.target) as target:
            found = [await one(each, QUERIES["change_numbers"], self.copies.named) for each in (source, target)]
        return found[0] == found[1]

    async def close(self) -> bool:
        """Let the source serve the buckets no more; tell whether its fence still stood."""
        async with owning(self.copies.source) as source:
            closed: bool = (await one(source, QUERIES["close"], self.copies.named))["closed"]
        return closed

    async def reopen(self) -> None:
        """Let the source serve the buckets again."""
        async with owning(self.copies.source) as source:
            await source.execute(QUERIES["unfence"], self.copies.named)

    async def open(self, generation: int) -> None:
        """Let the target serve the buckets, and its mirrors hold them; those of the source let go of them."""
        async with owning(self.copies.target) as target, owning(self.copies.source) as source:
            await target.execute(QUERIES["forget_positions"], self.copies.named)
            await target.execute(QUERIES["feed_mirrors"], self.copies.named)
            for known in await rows(source, QUERIES["incarnations"], self.copies.named):
                await target.execute(QUERIES["know_incarnation"], self.copies.named | known)
            await target.execute(QUERIES["open"], self.copies.named | {"generation": generation})
            await source.execute(QUERIES["feed_mirrors"], self.copies.named)
            for each in (target, source):
                await each.execute(QUERIES["defer_feeding"], self.copies.named)

    async def move_jobs(self) -> int:
        """Let the target do what waits or runs or has failed on the source; what runs there loses its lease."""
        async with owning(self.copies.source) as source, owning(self.copies.target) as target:
            found = await rows(source, QUERIES["jobs"], self.copies.named)
            for job in found:
                told = job | {"shard": self.copies.move.source, "args": Jsonb(job["args"])}
                taken = await rows(target, QUERIES["take_job"], told)
                for each in taken:
                    await target.execute(QUERIES["fail_job"], each)
            await source.execute(QUERIES["drop_jobs"], {"ids": [job["id"] for job in found]})
        return len(found)
