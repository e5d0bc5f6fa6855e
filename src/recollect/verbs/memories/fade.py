"""Fade: withhold decayed or expired memories from recall, explain why, and revive them on request."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from recollect.core.memories.fading import check_rules, complete_rules, policy_by
from recollect.core.text.checks import check_limit
from recollect.errors import InvalidInputError
from recollect.models.memories import FadeDecision, FadedPage, FadeReason, FadeReport, FadingRules
from recollect.models.service import Scope
from recollect.store.memories import fading
from recollect.store.memories.fading import FadePass
from recollect.store.service.scopes import BEGINNING, locate
from recollect.verbs.dependencies import Dependencies

FADE_SECONDS = 2.0
"""How long a call works before it returns a cursor; enough for most scopes."""
MAX_LISTED = 200
MAX_IDS = 1_000


async def fade(
    parts: Dependencies, scope: Scope, asked: FadingRules, *, dry_run: bool = False, cursor: UUID | None = None
) -> FadeReport:
    """Judge a scope's memories after a cursor, fade those that may fade unless it is a dry run, and report."""
    scope_id, rules = await find_rules(parts, scope, asked)
    walk = FadePass(scope_id or 0, policy_by(rules), dry_run=dry_run)
    grounds: Counter[FadeReason] = Counter()
    faded: list[FadeDecision] = []
    following = (cursor or BEGINNING) if scope_id is not None else None
    until = time.monotonic() + FADE_SECONDS
    while following is not None and time.monotonic() < until:
        chunk = await fading.fade_chunk(parts.database, walk, following)
        grounds.update(each.grounds for each in chunk.judgements)
        faded += [each for each in chunk.judgements if each.fades]
        following = chunk.next_cursor
    shown = tuple(faded[:MAX_LISTED])
    return FadeReport(dry_run, rules, grounds.total(), len(faded), dict(grounds), shown, following)


async def explain_fading(
    parts: Dependencies, scope: Scope, ids: Sequence[UUID], asked: FadingRules
) -> list[FadeDecision]:
    """Explain for each memory whether it would fade now."""
    check_ids(ids)
    scope_id, rules = await find_rules(parts, scope, asked)
    if scope_id is None:
        return []
    async with parts.database.reading(scope.tenant_id) as connection:
        found = await fading.query_fade_state(connection, scope_id, ids)
    return await fading.read_judgements(found, policy_by(rules))


async def list_faded(parts: Dependencies, scope: Scope, cursor: UUID | None, limit: int) -> FadedPage:
    """Return one page of faded memories, oldest first."""
    check_limit(limit)
    place = await locate(parts.database, scope)
    if place.scope_id is None:
        return FadedPage((), None)
    rows = await fading.list_faded(parts.database, place.scope_id, cursor or BEGINNING, limit + 1)
    return FadedPage(tuple(rows[:limit]), rows[limit - 1].id if len(rows) > limit else None)


async def revive(parts: Dependencies, scope: Scope, ids: Sequence[UUID]) -> list[UUID]:
    """Restore faded memories, and return their IDs; they may fade again from now on."""
    check_ids(ids)
    place = await locate(parts.database, scope)
    return [] if place.scope_id is None else await fading.revive(parts.database, place.scope_id, ids)


async def find_rules(parts: Dependencies, scope: Scope, asked: FadingRules) -> tuple[int | None, FadingRules]:
    """Find a scope, and complete the rules of fading."""
    check_rules(asked)
    place = await locate(parts.database, scope)
    return place.scope_id, complete_rules(asked, place.profile, parts.options.fading_days)


def check_ids(ids: Sequence[UUID]) -> None:
    """Limit the number of memories that one call names."""
    if not 1 <= len(ids) <= MAX_IDS:
        raise InvalidInputError(f"ids must hold 1 to {MAX_IDS} items")
