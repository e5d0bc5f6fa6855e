"""Fade: withhold decayed or expired memories from recall, explain why, and restore them on request."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from recollect.core.memories.fading import check_rules, complete_rules, policy_by
from recollect.errors import InvalidInputError
from recollect.models.memories import FadeDecision, FadeReason, FadeReport, FadingRules
from recollect.models.service import Scope
from recollect.store.memories import fading
from recollect.store.memories.fading import FadePass
from recollect.store.service.scopes import BEGINNING, locate
from recollect.verbs.dependencies import Dependencies

FADE_SECONDS = 2.0
"""How long a call works before it returns a cursor; enough for most scopes."""
MAX_LISTED = 200
MAX_IDS = 1_000


@dataclass(frozen=True, slots=True)
class FadeRequest:
    """Which memories to judge, by which rules, and whether to fade them."""

    rules: FadingRules
    ids: Sequence[UUID] | None = None
    """Only these memories; all of the scope if None."""
    dry_run: bool = False
    cursor: UUID | None = None


async def fade(parts: Dependencies, scope: Scope, asked: FadeRequest) -> FadeReport:
    """Judge memories, fade those that may fade unless it is a dry run, and report; explain each named memory."""
    if asked.ids is not None:
        check_ids(asked.ids)
    scope_id, rules = await find_rules(parts, scope, asked.rules)
    walk = FadePass(scope_id or 0, policy_by(rules), dry_run=asked.dry_run, ids=asked.ids or ())
    grounds: Counter[FadeReason] = Counter()
    judged: list[FadeDecision] = []
    following = (asked.cursor or BEGINNING) if scope_id is not None else None
    until = time.monotonic() + FADE_SECONDS
    while following is not None and time.monotonic() < until:
        chunk = await fading.fade_chunk(parts.database, walk, following)
        grounds.update(each.grounds for each in chunk.judgements)
        judged += [each for each in chunk.judgements if each.fades or asked.ids]
        following = chunk.next_cursor
    faded = sum(each.fades and each.faded_at is None for each in judged)
    shown = tuple(judged if asked.ids else judged[:MAX_LISTED])
    return FadeReport(asked.dry_run, rules, grounds.total(), faded, dict(grounds), shown, following)


async def restore_faded(parts: Dependencies, scope: Scope, ids: Sequence[UUID]) -> list[UUID]:
    """Restore faded memories, and return their IDs; they may fade again from now on."""
    check_ids(ids)
    place = await locate(parts.database, scope)
    return [] if place.scope_id is None else await fading.restore_faded(parts.database, place.scope_id, ids)


async def find_rules(parts: Dependencies, scope: Scope, asked: FadingRules) -> tuple[int | None, FadingRules]:
    """Find a scope, and complete the rules of fading."""
    check_rules(asked)
    place = await locate(parts.database, scope)
    return place.scope_id, complete_rules(asked, place.profile, parts.options.fading_days)


def check_ids(ids: Sequence[UUID]) -> None:
    """Limit the number of memories that one call names."""
    if not 1 <= len(ids) <= MAX_IDS:
        raise InvalidInputError(f"ids must hold 1 to {MAX_IDS} items")
