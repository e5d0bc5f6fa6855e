"""Carry: put a whole mind into an empty scope in one transaction, and count what one holds."""

from __future__ import annotations

from uuid import UUID

from recollect.core.agents.profiles import check_profile
from recollect.errors import InvalidInputError
from recollect.models.agents import Overview, SavedMind
from recollect.models.service import Caller, Scope
from recollect.store.agents import agents, overview
from recollect.store.service import scopes
from recollect.verbs.load import load_within
from recollect.verbs.parts import Parts


async def restore(parts: Parts, caller: Caller, scope: Scope, saved: SavedMind) -> list[UUID]:
    """Store a saved mind, all of it or nothing, and return the ids of its memories."""
    check_profile(saved.profile)
    async with parts.database.transaction(scope.tenant_id, pipelined=False) as connection:
        opening = await scopes.read_opening(await scopes.ask_opening(connection, scope))
        if opening.memory_count:
            raise InvalidInputError(
                f"{scope.agent} has {opening.memory_count} memories already: give an agent or a user of its own"
            )
        ids = await load_within(connection, parts, caller, scope, saved.memories, saved.space)
        await agents.write(connection, scope, agents.Agent(saved.profile, saved.metadata))
        gathered = (saved.unreflected_importance, saved.unreflected_events)
        await scopes.set_unreflected(connection, opening.scope_id, *gathered)
        return ids


async def take_stock(parts: Parts, scope: Scope) -> tuple[Overview, dict[str, int]]:
    """Read a scope's numbers, with the strength of every keyword, and count by name what it holds beside memories."""
    return await overview.read(parts.database, scope, None), await overview.count_beside(parts.database, scope)
