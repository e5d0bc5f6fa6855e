"""Fade: withhold from recall what has decayed or expired, say why, and revive it on request."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from recollect.core.memories.fading import check_rules, complete_rules, policy_by
from recollect.core.text.checks import check_limit
from recollect.errors import InvalidInputError
from recollect.models.memories import FadedPage, Fading, FadingRules, Grounds, Judgement
from recollect.models.service import Scope
from recollect.store.memories import fading
from recollect.store.memories.fading import Walk
from recollect.store.service.scopes import BEGINNING, locate
from recollect.verbs.parts import Parts

FADE_SECONDS = 2.0
"""A call works so long, and returns where to continue; a scope of usual size is done by then."""
MOST_SHOWN = 200
MOST_IDS = 1_000


async def fade(
    parts: Parts, scope: Scope, asked: FadingRules, *, dry_run: bool = False, cursor: UUID | None = None
) -> Fading:
    """Judge a scope's memories after a cursor, let those fade that may unless it is a dry run, and report."""
    scope_id, rules = await find_rules(parts, scope, asked)
    walk = Walk(scope_id or 0, policy_by(rules), dry_run=dry_run)
    grounds: Counter[Grounds] = Counter()
    faded: list[Judgement] = []
    following = (cursor or BEGINNING) if scope_id is not None else None
    until = time.monotonic() + FADE_SECONDS
    while following is not None and time.monotonic() < until:
        chunk = await fading.fade_chunk(parts.database, walk, following)
        grounds.update(each.grounds for each in chunk.judgements)
        faded += [each for each in chunk.judgements if each.fades]
        following = chunk.next_cursor
    shown = tuple(faded[:MOST_SHOWN])
    return Fading(dry_run, rules, grounds.total(), len(faded), dict(grounds), shown, following)


async def explain(parts: Parts, scope: Scope, ids: Sequence[UUID], asked: FadingRules) -> list[Judgement]:
    """Say of memories whether they would fade now, and why; what does not take part in recall is left out."""
    check_ids(ids)
    scope_id, rules = await find_rules(parts, scope, asked)
    if scope_id is None:
        return []
    async with parts.database.reading(scope.tenant_id) as connection:
        found = await fading.ask_standings(connection, scope_id, ids)
    return await fading.read_judgements(found, policy_by(rules))


async def list_faded(parts: Parts, scope: Scope, cursor: UUID | None, limit: int) -> FadedPage:
    """Give one page of what has faded, the oldest memory first."""
    check_limit(limit)
    place = await locate(parts.database, scope)
    if place.scope_id is None:
        return FadedPage((), None)
    rows = await fading.list_faded(parts.database, place.scope_id, cursor or BEGINNING, limit + 1)
    return FadedPage(tuple(rows[:limit]), rows[limit - 1].id if len(rows) > limit else None)


async def revive(parts: Parts, scope: Scope, ids: Sequence[UUID]) -> list[UUID]:
    """Bring faded memories back as they were, and tell which; from now on they may fade again."""
    check_ids(ids)
    place = await locate(parts.database, scope)
    return [] if place.scope_id is None else await fading.revive(parts.database, place.scope_id, ids)


async def find_rules(parts: Parts, scope: Scope, asked: FadingRules) -> tuple[int | None, FadingRules]:
    """Find a scope, and complete the rules of fading."""
    check_rules(asked)
    place = await locate(parts.database, scope)
    return place.scope_id, complete_rules(asked, place.profile, parts.fading_days)


def check_ids(ids: Sequence[UUID]) -> None:
    """Limit the number of memories that one call names."""
    if not 1 <= len(ids) <= MOST_IDS:
        raise InvalidInputError(f"ids must hold 1 to {MOST_IDS} items")
