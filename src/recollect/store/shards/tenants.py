"""Tenants by name, which only operators know: in the only database, or in the catalog of several."""

from __future__ import annotations

from dataclasses import dataclass, field

from recollect.errors import NotFoundError, SetupError
from recollect.models.shards import ServerAddresses
from recollect.store.database import ownership
from recollect.store.shards import catalog

NO_TENANT = "There is no tenant {name!r}."


@dataclass(frozen=True, slots=True)
class Tenants:
    """The names of tenants, and the owners of their tables."""

    owner: str = field(default="", repr=False)
    """The DSN of the owner of the only database's tables."""
    catalog: str = field(default="", repr=False)
    """The DSN of the catalog's owner, if there are several servers."""
    several: bool = False

    async def seek(self, name: str) -> int | None:
        """Return a tenant's number; None for an unknown tenant."""
        if self.several:
            return await catalog.find_tenant(catalog.require_owner(self.catalog), name)
        return await ownership.find_tenant(self._owner(), name)

    async def find_tenant_number(self, name: str) -> int:
        """Return a tenant's number; raise an error for an unknown tenant."""
        number = await self.seek(name)
        if number is None:
            raise NotFoundError(NO_TENANT.format(name=name))
        return number

    async def ensure(self, name: str) -> int:
        """Return a tenant's number, creating the tenant if it is new."""
        if self.several:
            return await catalog.ensure_tenant(catalog.require_owner(self.catalog), name)
        return await ownership.ensure_tenant(ownership.require_owner(self.owner), name)

    async def owners_of(self, name: str) -> list[str]:
        """List the owners of the tables with rows of a tenant, its home first."""
        return [each.owner for each in (await self.servers_of(name)).values()]

    async def servers_of(self, name: str) -> dict[int, ServerAddresses]:
        """Return the servers that have something of a tenant by their numbers, its home first; 0 is a server alone."""
        if not self.several:
            return {0: ServerAddresses("", self._owner())}
        placed = await catalog.find_placed(self.catalog, await self.find_tenant_number(name))
        return await catalog.list_servers(self.catalog, placed.shards)

    async def owners(self) -> list[str]:
        """List the owners of all tables."""
        if not self.several:
            return [ownership.require_owner(self.owner)]
        return [each.owner for each in (await catalog.list_servers(catalog.require_owner(self.catalog))).values()]

    def _owner(self) -> str:
        if not self.owner:
            raise SetupError("Set RECOLLECT_OWNER_DATABASE_URL: only the owner of the tables knows tenants by name.")
        return self.owner
