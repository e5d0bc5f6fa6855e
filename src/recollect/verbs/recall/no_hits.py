"""Recall, and explain why there are no hits; only then one more query is sent."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from recollect.core.recall.fusion import MAX_USERS, explain_empty_scope, explain_no_match
from recollect.errors import UnavailableError
from recollect.models.recall import Cue, RecallResult, Status
from recollect.models.service import Caller, Scope
from recollect.store.service import scopes
from recollect.store.service.scopes import ScopeHandle
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.recall.extra_scopes import RecallCaller, find_others, recall_others
from recollect.verbs.recall.recall import recall_each


async def recall_for(
    parts: Dependencies,
    caller: Caller,
    scope: Scope,
    cues: Sequence[Cue],
    place: ScopeHandle,
    *,
    isolated: bool = False,
) -> list[RecallResult]:
    """Recall for several queries; an answer without hits explains why."""
    found = await recall_each(parts, scope, cues, place, isolated=isolated)
    found = [
        await count_extra_scopes(parts, RecallCaller(caller, scope, place), cue, own)
        for cue, own in zip(cues, found, strict=True)
    ]
    if all(each.status is not Status.NO_CANDIDATES for each in found):
        return found
    empty = explain_empty_scope(scope, await find_users(parts, caller, scope)) if not place.memory_count else ""
    return [
        replace(each, message=empty or explain_no_match(cue, each.methods))
        if each.status is Status.NO_CANDIDATES
        else each
        for cue, each in zip(cues, found, strict=True)
    ]


async def count_extra_scopes(parts: Dependencies, asker: RecallCaller, cue: Cue, own: RecallResult) -> RecallResult:
    """Add the hits of extra scopes."""
    return await recall_others(asker, cue, own, await find_others(parts, asker, cue))


async def find_users(parts: Dependencies, caller: Caller, scope: Scope) -> list[str]:
    """List a few users with memories of the agent; none for a key that is bound to one of them."""
    if caller.bounds.user is not None:
        return []
    with suppress(UnavailableError):  # an answer with less information is better than none
        return await scopes.list_users(parts.database, scope, MAX_USERS + 1)
    return []
