"""Readers: database roles that read one tenant's memories with SQL, and nothing else."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.service import NewReader, Reader
from recollect.store.service import readers
from recollect.store.shards.tenants import Tenants

NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
OURS = ("recollect_", "pg_")


@dataclass(frozen=True, slots=True)
class Readers:
    """Creates, lists and drops the roles that read with SQL, for operators."""

    tenants: Tenants
    """Provides the owners of the tables: only they may create roles."""

    async def create(self, name: str, tenant: str) -> NewReader:
        """Create a role that may read the views of a tenant; only the caller knows its password."""
        if not NAME.fullmatch(name) or name.startswith(OURS):
            raise InvalidInputError(
                "name must begin with a letter and have at most 63 of a-z, 0-9 and _; not recollect_... or pg_..."
            )
        tenant_id = await self.tenants.find_tenant_number(tenant)
        owner, *_ = await self.tenants.owners_of(tenant)
        password = secrets.token_urlsafe(24)
        reader = await readers.create_reader(owner, name, tenant_id, password)
        return NewReader(reader, readers.address(owner, name, password))

    async def list(self) -> tuple[Reader, ...]:
        """List all reader roles."""
        return tuple([each for owner in await self.tenants.owners() for each in await readers.list_readers(owner)])

    async def drop(self, name: str) -> None:
        """Drop a reader; it can read nothing from now on, even if it is still logged in."""
        for owner in await self.tenants.owners():
            if any(each.name == name for each in await readers.list_readers(owner)):
                return await readers.drop_reader(owner, name)
        raise NotFoundError("No such reader.")
