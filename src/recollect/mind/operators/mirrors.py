"""Mirrors in other engines, as an operator looks after them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from recollect.core.mirrors.rows import MirrorDiff
from recollect.errors import ConflictError, InvalidInputError, MirrorError, NotFoundError
from recollect.jobs.mirror import MirrorFeed, build, drop
from recollect.models.outside import MirrorComparison, MirrorStatus
from recollect.store.database.pool import Database
from recollect.store.mirrors import generations, positions
from recollect.store.mirrors.generations import Generation
from recollect.store.mirrors.mirror import Mirror
from recollect.store.mirrors.positions import PendingScope
from recollect.store.service import maintenance
from recollect.store.shards.servers import OpenServer, Servers

TRIES = 3
"""How often a scope is compared that differs: it may have been changed between the two readings."""


@dataclass(frozen=True, slots=True)
class Mirrors:
    """Operator commands that build, compare and drop mirrors, of every server if there are several."""

    servers: Servers
    engines: Mapping[str, Mirror]
    """The mirrors that this process has an address of, by their names."""

    async def status(self, *, probe: bool = True) -> list[MirrorStatus]:
        """Return the state of every generation of mirrors and, with `probe`, whether its engine answers."""
        return [
            await self._describe(server, each, probe=probe)
            for server in await self.servers.answering()
            for each in await generations.list_generations(server.database)
        ]

    async def build(self, name: str, report: Callable[[int], None]) -> list[MirrorStatus]:
        """Fill a mirror on the servers that have none, or continue an interrupted build; report the scopes done."""
        missing = [each for each in await self.servers.all() if not await find_ready(each.database, name)]
        if not missing:
            raise ConflictError("This mirror already exists. Use `rebuild`.")
        return await self._build(missing, name, report)

    async def rebuild(self, name: str, report: Callable[[int], None]) -> list[MirrorStatus]:
        """Fill a new generation of a mirror next to the active one, then switch to it."""
        return await self._build(await self.servers.all(), name, report)

    async def _build(
        self, servers: Sequence[OpenServer], name: str, report: Callable[[int], None]
    ) -> list[MirrorStatus]:
        made: list[MirrorStatus] = []
        for server in servers:
            before = sum(each.scopes for each in made)
            built = await build(server.database, self._find(name), partial(report_sum, report, before))
            made.append(await self._describe(server, built, probe=True))
        return made

    async def verify(self, name: str, report: Callable[[int], None], *, mend: bool = False) -> MirrorComparison:
        """Compare all that a mirror holds with the record by checksums, and mend it if asked."""
        mirror, total = self._find(name), MirrorComparison(0, 0, 0, 0, mended=mend)
        for server in await self.servers.all():
            ready = await find_ready(server.database, name)
            if ready is None:
                raise NotFoundError("This mirror is not built.")
            feed = MirrorFeed(server.database, mirror, ready)
            async for scope_id in walk(server.database):
                found = await compare_scope(feed, scope_id)
                if found.size and mend:
                    await feed.repair_scope(scope_id)
                total = add_difference(total, found)
                report(total.scopes)
        return total

    async def drop(self, name: str) -> tuple[int, bool]:
        """Drop a mirror with its rows; return how many receipts waited for it, and whether its rows were removed."""
        having = [
            each.database
            for each in await self.servers.all()
            if await generations.list_generations(each.database, name)
        ]
        if not having:
            raise NotFoundError("No such mirror.")
        outcomes = [await drop(database, name, self.engines.get(name)) for database in having]
        return sum(ended for ended, _ in outcomes), all(removed for _, removed in outcomes)

    async def count_scopes(self) -> int:
        """Count the scopes that a mirror would hold."""
        return sum([1 for server in await self.servers.all() async for _ in walk(server.database)])

    async def _describe(self, server: OpenServer, generation: Generation, *, probe: bool) -> MirrorStatus:
        scopes, behind, seconds = await generations.read_lag(server.database, generation)
        state = "building" if not generation.ready else "ready" if generation.current else "stale"
        mirror = self.engines.get(generation.mirror) if probe else None
        answers = None if mirror is None else await does_answer(mirror, generation)
        standing = (scopes, behind, seconds, answers, server.name)
        return MirrorStatus(generation.mirror, generation.number, state, *standing)

    def _find(self, name: str) -> Mirror:
        if name not in self.engines:
            raise InvalidInputError(f"There is no mirror of this name here: set RECOLLECT_{name.upper()}__URL.")
        return self.engines[name]


def report_sum(report: Callable[[int], None], before: int, done: int) -> None:
    """Report the sum of the count before and the count now."""
    report(before + done)


async def find_ready(database: Database, name: str) -> Generation | None:
    """Return the generation of a mirror that answers, if there is one."""
    return next((each for each in await generations.list_generations(database, name) if each.ready), None)


async def walk(database: Database) -> AsyncIterator[int]:
    """Walk over all scopes of a server that have memories, or that a mirror has known."""
    seen: set[int] = set()
    for wanted in ("fill", positions.HELD):
        async for scopes in maintenance.walk_due(database, wanted):
            for scope_id in scopes:
                if scope_id not in seen:
                    yield scope_id
            seen.update(scopes)


def add_difference(total: MirrorComparison, found: MirrorDiff) -> MirrorComparison:
    """Add what differs in a scope."""
    return MirrorComparison(
        scopes=total.scopes + 1,
        missing=total.missing + len(found.missing),
        changed=total.changed + len(found.changed),
        extra=total.extra + len(found.extra),
        mended=total.mended,
    )


async def does_answer(mirror: Mirror, generation: Generation) -> bool:
    """Return whether an engine answers."""
    try:
        await mirror.read_beats(generation)
    except MirrorError:
        return False
    return True


async def compare_scope(feed: MirrorFeed, scope_id: int) -> MirrorDiff:
    """Compare a scope; if it differs, let the mirror follow first, and compare again."""
    found = await feed.verify(scope_id)
    for _ in range(TRIES - 1):
        if not found.size:
            break
        await feed.apply_log([PendingScope(scope_id, 0)])
        found = await feed.verify(scope_id)
    return found
