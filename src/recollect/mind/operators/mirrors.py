"""Mirrors in other engines, as an operator looks after them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from recollect.core.mirrors.rows import Difference
from recollect.errors import ConflictError, InvalidInputError, MirrorError, NotFoundError
from recollect.jobs.mirror import Feed, build, drop
from recollect.models.outside import MirrorComparison, MirrorStatus
from recollect.store.mirrors import generations, positions
from recollect.store.mirrors.generations import Generation
from recollect.store.mirrors.mirror import Mirror
from recollect.store.mirrors.positions import Unmirrored
from recollect.store.service import upkeep
from recollect.store.shards.servers import NoServer
from recollect.verbs.parts import Parts

TRIES = 3
"""How often a scope is compared that differs: it may have been changed between the two readings."""


@dataclass(frozen=True, slots=True)
class Mirrors:
    """Where an operator builds, compares and drops mirrors."""

    parts: Parts

    async def status(self, *, probe: bool = True) -> list[MirrorStatus]:
        """Say of every filling how it stands; and whether its engine answers, if asked."""
        if not self.parts.mirrors and isinstance(self.parts.database, NoServer):
            return []
        found = await generations.list_generations(self.parts.database)
        return [await self._describe(each, probe=probe) for each in found]

    async def build(self, name: str, report: Callable[[int], None]) -> MirrorStatus:
        """Fill a mirror for the first time, or go on with that; report how many scopes are done."""
        if any(each.ready for each in await generations.list_generations(self.parts.database, name)):
            raise ConflictError("This mirror is built already: `rebuild` fills it again.")
        return await self.rebuild(name, report)

    async def rebuild(self, name: str, report: Callable[[int], None]) -> MirrorStatus:
        """Fill a mirror beside the one that answers, and let it take its place."""
        return await self._describe(await build(self.parts.database, self._find(name), report), probe=True)

    async def verify(self, name: str, report: Callable[[int], None], *, mend: bool = False) -> MirrorComparison:
        """Compare all that a mirror holds with the record by checksums, and mend it if asked."""
        mirror = self._find(name)
        ready = [each for each in await generations.list_generations(self.parts.database, name) if each.ready]
        if not ready:
            raise NotFoundError("This mirror is not built.")
        feed, total = Feed(self.parts.database, mirror, ready[0]), MirrorComparison(0, 0, 0, 0, mended=mend)
        async for scope_id in self._walk():
            found = await compare_scope(feed, scope_id)
            if found.size and mend:
                await feed.mend(scope_id)
            total = MirrorComparison(
                scopes=total.scopes + 1,
                missing=total.missing + len(found.missing),
                changed=total.changed + len(found.changed),
                extra=total.extra + len(found.extra),
                mended=mend,
            )
            report(total.scopes)
        return total

    async def drop(self, name: str) -> tuple[int, bool]:
        """Drop a mirror with its rows; return how many receipts waited for it, and whether its rows were removed."""
        if not await generations.list_generations(self.parts.database, name):
            raise NotFoundError("There is no such mirror.")
        return await drop(self.parts.database, name, self.parts.mirrors.get(name))

    async def count_scopes(self) -> int:
        """Count the scopes that a mirror would hold."""
        return sum([1 async for _ in self._walk()])

    async def _walk(self) -> AsyncIterator[int]:
        """Walk over all scopes that have memories, or that a mirror has known."""
        seen: set[int] = set()
        for wanted in ("fill", positions.HELD):
            async for scopes in upkeep.walk_due(self.parts.database, wanted):
                for scope_id in scopes:
                    if scope_id not in seen:
                        yield scope_id
                seen.update(scopes)

    async def _describe(self, generation: Generation, *, probe: bool) -> MirrorStatus:
        scopes, behind, seconds = await generations.read_standing(self.parts.database, generation)
        state = "building" if not generation.ready else "ready" if generation.current else "stale"
        mirror = self.parts.mirrors.get(generation.mirror) if probe else None
        answers = None if mirror is None else await does_answer(mirror, generation)
        return MirrorStatus(generation.mirror, generation.number, state, scopes, behind, seconds, answers)

    def _find(self, name: str) -> Mirror:
        if name not in self.parts.mirrors:
            raise InvalidInputError(f"There is no mirror of this name here: set RECOLLECT_{name.upper()}_URL.")
        return self.parts.mirrors[name]


async def does_answer(mirror: Mirror, generation: Generation) -> bool:
    """Tell whether an engine answers."""
    try:
        await mirror.read_beats(generation)
    except MirrorError:
        return False
    return True


async def compare_scope(feed: Feed, scope_id: int) -> Difference:
    """Compare a scope; if it differs, let the mirror follow first, and compare again."""
    found = await feed.verify(scope_id)
    for _ in range(TRIES - 1):
        if not found.size:
            break
        await feed.follow([Unmirrored(scope_id, 0)])
        found = await feed.verify(scope_id)
    return found
