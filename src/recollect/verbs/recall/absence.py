"""Recall for a caller who wants to know why nothing was found; only then one more query is sent."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from recollect.core.recall.fusion import MOST_USERS, tell_empty, tell_unmatched
from recollect.errors import UnavailableError
from recollect.models.recall import Cue, Recollection, Status
from recollect.models.service import Caller, Scope
from recollect.store.service import scopes
from recollect.store.service.scopes import Place
from recollect.verbs.parts import Parts
from recollect.verbs.recall.beside import Asker, find_others, recall_others
from recollect.verbs.recall.recall import recall_each


async def recall_for(
    parts: Parts, caller: Caller, scope: Scope, cues: Sequence[Cue], place: Place, *, isolated: bool = False
) -> list[Recollection]:
    """Recall by several cues; an answer without a hit says why."""
    found = await recall_each(parts, scope, cues, place, isolated=isolated)
    found = [await beside(parts, Asker(caller, scope, place), cue, own) for cue, own in zip(cues, found, strict=True)]
    if all(each.status is not Status.NO_CANDIDATES for each in found):
        return found
    empty = tell_empty(scope, await find_users(parts, caller, scope)) if not place.memory_count else ""
    return [
        replace(each, message=empty or tell_unmatched(cue, each.methods))
        if each.status is Status.NO_CANDIDATES
        else each
        for cue, each in zip(cues, found, strict=True)
    ]


async def beside(parts: Parts, asker: Asker, cue: Cue, own: Recollection) -> Recollection:
    """Add what the scopes hold that are read beside the own one."""
    return await recall_others(asker, cue, own, await find_others(parts, asker, cue))


async def find_users(parts: Parts, caller: Caller, scope: Scope) -> list[str]:
    """List a few users of whom the agent has memories; none for a key that is bound to one of them."""
    if caller.bounds.user is not None:
        return []
    with suppress(UnavailableError):  # an answer that says less is better than none
        return await scopes.list_users(parts.database, scope, MOST_USERS + 1)
    return []
