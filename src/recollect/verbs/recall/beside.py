"""Recall beside the own scope: in up to four more of the same tenant, as far as the key reaches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from recollect.core.recall.beside import join, read_scope_name
from recollect.core.service.rights import check_bounds
from recollect.errors import ForbiddenError
from recollect.models.recall import Cue, Recollection
from recollect.models.service import Caller, Scope
from recollect.store.service.scopes import Place, locate
from recollect.verbs.parts import Parts
from recollect.verbs.recall.rank import USUAL_LIMIT
from recollect.verbs.recall.recall import recall

Recalling: TypeAlias = Callable[[Parts, Scope, Cue, Place], Awaitable[Recollection]]
"""How a scope is recalled in: plainly, or for a prompt."""


@dataclass(frozen=True, slots=True)
class Asker:
    """Who recalls, and where."""

    caller: Caller
    scope: Scope
    place: Place


@dataclass(frozen=True, slots=True)
class OtherScope:
    """A scope that is read beside the own one."""

    scope: Scope
    place: Place
    parts: Parts
    """Those of the call, with the database of this scope."""


async def find_others(parts: Parts, asker: Asker, cue: Cue) -> dict[str, OtherScope]:
    """Find the scopes that a cue names, or the profile; refuse one that is out of the key's bounds.

    Of those that the profile names, the ones within the bounds are read.
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
        # The asker's profile holds: its names, its limit, its language.
        name: OtherScope(scope, replace(place, profile=asker.place.profile), own)
        for (name, scope), place, own in zip(found.items(), places, there, strict=True)
    }


async def recall_others(
    asker: Asker, cue: Cue, own: Recollection, others: Mapping[str, OtherScope], ask: Recalling = recall
) -> Recollection:
    """Recall by a cue in other scopes, too, each by itself, and merge what is found."""
    if not others:
        return own
    # A recall is kept where it was asked for.
    asked = replace(cue, keep=False, explain=False)
    answers = await asyncio.gather(*(ask(other.parts, other.scope, asked, other.place) for other in others.values()))
    limit = cue.limit or asker.place.profile.limit or USUAL_LIMIT
    return join(cue, own, dict(zip(others, answers, strict=True)), limit)
