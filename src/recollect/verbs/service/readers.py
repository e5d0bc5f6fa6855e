"""Readers: database roles that read one tenant's memories by SQL, and nothing else."""

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
    """Where an operator makes, sees and drops the roles that read by SQL."""

    tenants: Tenants
    """Knows the owners of the tables: only they may make roles."""

    async def create(self, name: str, tenant: str) -> NewReader:
        """Make a role that may read the views of a tenant; its password is known to nobody but the caller."""
        if not NAME.fullmatch(name) or name.startswith(OURS):
            raise InvalidInputError(
                "name must begin with a letter and have at most 63 of a-z, 0-9 and _; not recollect_... or pg_..."
            )
        tenant_id = await self.tenants.find(tenant)
        owner, *_ = await self.tenants.owners_of(tenant)
        password = secrets.token_urlsafe(24)
        reader = await readers.create_reader(owner, name, tenant_id, password)
        return NewReader(reader, readers.address(owner, name, password))

    async def list(self) -> tuple[Reader, ...]:
        """List the readers of every tenant."""
        return tuple([each for owner in await self.tenants.owners() for each in await readers.list_readers(owner)])

    async def drop(self, name: str) -> None:
        """Drop a reader; it reads nothing from now on, though it may still be logged in."""
        for owner in await self.tenants.owners():
            if any(each.name == name for each in await readers.list_readers(owner)):
                return await readers.drop_reader(owner, name)
        raise NotFoundError("There is no reader of this name.")
