"""Limits, as an operator sets them: what a key, or a tenant with all of its keys, may ask of one process."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from uuid import UUID

from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.service import Limits
from recollect.store.database import ownership
from recollect.store.shards.tenants import NO_TENANT, Tenants

MAX_INT = 2**31 - 1
NO_KEY = "No such key."


@dataclass(frozen=True, slots=True)
class OperatorLimits:
    """Where an operator sees and sets limits; a process follows with the next request that the key is let in with."""

    tenants: Tenants

    async def tenant_limits(self, tenant: str, limits: Limits | None = None) -> Limits:
        """Return the limits of a tenant, after setting them if some are given."""
        check_limits(limits)
        await self.tenants.find_tenant_number(tenant)
        found = [await ownership.limit_tenant(owner, tenant, limits) for owner in await self.tenants.owners_of(tenant)]
        if found[0] is None:
            raise NotFoundError(NO_TENANT.format(name=tenant))
        return found[0]

    async def key_limits(self, tenant: str, key_id: UUID, limits: Limits | None = None) -> Limits:
        """Return the limits of a key, after setting them if some are given."""
        check_limits(limits)
        number, owners = await self.tenants.find_tenant_number(tenant), await self.tenants.owners_of(tenant)
        found = await ownership.limit_key(owners[0], number, key_id, limits)
        if found is None:
            raise NotFoundError(NO_KEY)
        return found


def check_limits(limits: Limits | None) -> None:
    """Refuse limits that cannot be kept."""
    for name, value in asdict(limits).items() if limits else ():
        if value is not None and not 0 < value <= MAX_INT:
            raise InvalidInputError(f"{name} must be above 0 and at most {MAX_INT}")
