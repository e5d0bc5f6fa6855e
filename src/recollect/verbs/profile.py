"""Profile: read and change what an agent goes by in all its scopes, and what its callers keep of it."""

from __future__ import annotations

from collections.abc import Mapping

from recollect.core.agents.profiles import check_profile
from recollect.models.agents import Profile
from recollect.models.memories import JSON
from recollect.models.service import Scope
from recollect.store.agents import agents
from recollect.verbs.parts import Parts


async def read_profile(parts: Parts, scope: Scope) -> Profile:
    """Read the profile of a scope's agent."""
    return (await agents.fetch(parts.database, scope)).profile


async def set_profile(parts: Parts, scope: Scope, profile: Profile) -> None:
    """Put a profile in place of the one before; what it leaves open is as usual again."""
    check_profile(profile)
    await agents.write_profile(parts.database, scope, profile)


async def read_metadata(parts: Parts, scope: Scope) -> Mapping[str, JSON]:
    """Read the metadata of a scope's agent."""
    return (await agents.fetch(parts.database, scope)).metadata
