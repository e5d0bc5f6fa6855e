"""An agent's profile and metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from psycopg import AsyncCursor
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from recollect.core.agents.profiles import from_profile, to_profile
from recollect.models.agents import Profile
from recollect.models.memories import JSON
from recollect.models.service import Scope
from recollect.store.database.pool import Connection, Database, load_queries

QUERIES = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class Agent:
    """The stored data of an agent."""

    profile: Profile
    metadata: Mapping[str, JSON]


async def fetch(database: Database, scope: Scope) -> Agent:
    """Fetch the stored data of a scope's agent."""
    async with database.reading(scope.tenant_id) as connection:
        found = await query_agent(connection, scope)
    return await read_agent(found)


async def query_agent(connection: Connection, scope: Scope) -> AsyncCursor[DictRow]:
    """Query the stored data of a scope's agent."""
    return await connection.execute(QUERIES["read"], {"agent": scope.agent})


async def read_agent(found: AsyncCursor[DictRow]) -> Agent:
    """Read the result of `query_agent`; an unknown agent has no data."""
    row = await found.fetchone()
    return Agent(to_profile(row["profile"]), row["metadata"]) if row else Agent(Profile(), {})


async def write_profile(database: Database, scope: Scope, profile: Profile) -> None:
    """Replace the profile of a scope's agent."""
    parameters = {"agent": scope.agent, "profile": Jsonb(from_profile(profile))}
    async with database.transaction(scope.tenant_id) as connection:
        await connection.execute(QUERIES["write_profile"], parameters)


async def store_agent(connection: Connection, scope: Scope, agent: Agent) -> None:
    """Replace an agent's profile, and merge its metadata."""
    profile, metadata = Jsonb(from_profile(agent.profile)), Jsonb(dict(agent.metadata))
    parameters = {"agent": scope.agent, "profile": profile, "metadata": metadata}
    await connection.execute(QUERIES["write"], parameters)
