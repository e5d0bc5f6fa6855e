"""Recall in extra scopes, too: up to four of the same tenant, within the bounds of the key."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from recollect.core.recall.extra_scopes import join, read_scope_name
from recollect.core.service.permissions import check_bounds
from recollect.errors import ForbiddenError
from recollect.models.recall import Cue, RecallResult
from recollect.models.service import Caller, Scope
from recollect.store.service.scopes import ScopeHandle, locate
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.recall.rank import DEFAULT_LIMIT
from recollect.verbs.recall.recall import recall

Recalling: TypeAlias = Callable[[Dependencies, Scope, Cue, ScopeHandle], Awaitable[RecallResult]]
"""Recalls in a scope: plainly, or for a prompt."""


@dataclass(frozen=True, slots=True)
class RecallCaller:
    """The caller of a recall, and the scope."""

    caller: Caller
    scope: Scope
    place: ScopeHandle


@dataclass(frozen=True, slots=True)
class ExtraScope:
    """An extra scope to read."""

    scope: Scope
    place: ScopeHandle
    parts: Dependencies
    """The dependencies of the call, with the database of this scope."""


async def find_others(parts: Dependencies, asker: RecallCaller, cue: Cue) -> dict[str, ExtraScope]:
    """Find the extra scopes of a query, or of the profile; refuse a scope outside the key's bounds.

    Scopes of the profile outside the bounds are skipped.
    """
    found: dict[str, Scope] = {}
    for name in cue.also or asker.place.profile.also:
        agent, user = read_scope_name(name)
        scope = Scope(asker.scope.tenant_id, agent, user)
        try:
            check_bounds(asker.caller, agent, user)
        except ForbiddenError:
            if cue.also:
                raise
            continue
        if scope != asker.scope:
            found[name] = scope
    there = [await parts.at(scope) for scope in found.values()]
    located = (locate(own.database, scope) for own, scope in zip(there, found.values(), strict=True))
    places = await asyncio.gather(*located)
    return {
        # The caller's profile applies: its names, its limit, its language.
        name: ExtraScope(scope, replace(place, profile=asker.place.profile), own)
        for (name, scope), place, own in zip(found.items(), places, there, strict=True)
    }


async def recall_others(
    asker: RecallCaller, cue: Cue, own: RecallResult, others: Mapping[str, ExtraScope], ask: Recalling = recall
) -> RecallResult:
    """Recall in extra scopes, too, each separately, and merge the results."""
    if not others:
        return own
    # A recall is saved only in the scope of the caller.
    asked = replace(cue, keep=False, explain=False)
    answers = await asyncio.gather(*(ask(other.parts, other.scope, asked, other.place) for other in others.values()))
    limit = cue.limit or asker.place.profile.limit or DEFAULT_LIMIT
    return join(cue, own, dict(zip(others, answers, strict=True)), limit)
