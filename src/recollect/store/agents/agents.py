"""An agent's profile and metadata."""

from __future__ import annotations

from dataclasses import replace

from psycopg import AsyncCursor
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from recollect.core.agents.profiles import from_profile, to_profile
from recollect.models.agents import Profile
from recollect.models.service import Scope
from recollect.store.database.pool import Connection, Database, load_queries

QUERIES = load_queries(__file__)


async def fetch(database: Database, scope: Scope) -> Profile:
    """Fetch the profile of a scope's agent."""
    async with database.reading(scope.tenant_id) as connection:
        found = await query_agent(connection, scope)
    return await read_agent(found)


async def query_agent(connection: Connection, scope: Scope) -> AsyncCursor[DictRow]:
    """Query the profile of a scope's agent."""
    return await connection.execute(QUERIES["read"], {"agent": scope.agent})


async def read_agent(found: AsyncCursor[DictRow]) -> Profile:
    """Read the result of `query_agent`; an unknown agent has the default profile."""
    row = await found.fetchone()
    return replace(to_profile(row["profile"]), metadata=row["metadata"]) if row else Profile()


async def write_profile(database: Database, scope: Scope, profile: Profile) -> Profile:
    """Replace the settings of a scope's agent, and return them with its metadata."""
    parameters = {"agent": scope.agent, "profile": Jsonb(from_profile(profile))}
    async with database.transaction(scope.tenant_id) as connection:
        written = await connection.execute(QUERIES["write_profile"], parameters)
    return await read_agent(written)


async def store_agent(connection: Connection, scope: Scope, profile: Profile) -> None:
    """Replace an agent's settings, and merge its metadata."""
    settings, metadata = Jsonb(from_profile(profile)), Jsonb(dict(profile.metadata))
    parameters = {"agent": scope.agent, "profile": settings, "metadata": metadata}
    await connection.execute(QUERIES["write"], parameters)
