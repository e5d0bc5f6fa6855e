"""Tenants by their names, which only operators know: in the one database, or in the catalog of several."""

from __future__ import annotations

from dataclasses import dataclass, field

from recollect.errors import NotFoundError, SetupError
from recollect.store.database import ownership
from recollect.store.shards import catalog

NO_TENANT = "There is no tenant of this name."


@dataclass(frozen=True, slots=True)
class Tenants:
    """Who is called what, and who owns the tables of whom."""

    owner: str = field(default="", repr=False)
    """The DSN of the owner of the one database's tables."""
    catalog: str = field(default="", repr=False)
    """Set where there are several servers: the DSN of the owner of their catalog."""
    several: bool = False

    async def seek(self, name: str) -> int | None:
        """Return a tenant's number, if there is such a tenant."""
        if self.several:
            return await catalog.find_tenant(catalog.require_owner(self.catalog), name)
        return await ownership.find_tenant(self._owner(), name)

    async def find(self, name: str) -> int:
        """Return a tenant's number, or raise."""
        number = await self.seek(name)
        if number is None:
            raise NotFoundError(NO_TENANT)
        return number

    async def ensure(self, name: str) -> int:
        """Return a tenant's number, making the tenant if it is new."""
        if self.several:
            return await catalog.ensure_tenant(catalog.require_owner(self.catalog), name)
        return await ownership.ensure_tenant(ownership.require_owner(self.owner), name)

    async def owners_of(self, name: str) -> list[str]:
        """List the owners of the tables that have something of a tenant, its home first."""
        if not self.several:
            return [self._owner()]
        placed = await catalog.find_placed(self.catalog, await self.find(name))
        known = await catalog.list_addresses(self.catalog)
        return [known[shard_id].owner for shard_id in placed.shards]

    async def owners(self) -> list[str]:
        """List the owners of all tables."""
        if not self.several:
            return [ownership.require_owner(self.owner)]
        known = await catalog.list_addresses(catalog.require_owner(self.catalog))
        return [each.owner for each in known.values()]

    def _owner(self) -> str:
        if not self.owner:
            raise SetupError("Set RECOLLECT_OWNER_DATABASE_URL: only the owner of the tables knows tenants by name.")
        return self.owner
