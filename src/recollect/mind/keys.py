"""API keys: made, listed, revoked; keys that another key makes for a short time; sessions of the console."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from recollect.core.service.permissions import (
    check_delegated,
    check_expiry,
    check_new_bounds,
    check_new_rights,
    check_unbound,
    makes_children,
)
from recollect.core.text.checks import check_line
from recollect.errors import ForbiddenError
from recollect.models.service import ApiKey, Caller, CurrentKey, KeyBinding, KeyRequest, Right
from recollect.store.database.pool import Database
from recollect.store.service import keys
from recollect.store.service.scopes import find_tenant
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.recovery import recovered

SESSION_HOURS = 12
NO_SESSION = "This is a session, and a session cannot begin another one: sign in with an API key."
OPERATOR = "operator"
"""What the session of an operator is called, who has shown no key."""


class KeyVerbs:
    """What a caller does with the keys of a tenant."""

    __slots__ = ()
    parts: Dependencies

    @staticmethod
    def check_format(secret: str) -> int:
        """Return the tenant that a key names, without asking for it; raise if no key looks like this."""
        return find_tenant(secret)

    async def create_key(
        self,
        caller: Caller,
        name: str,
        rights: Sequence[Right],
        trust: int,
        bounds: KeyBinding = KeyBinding(),  # noqa: B008 - a frozen value
        expires_at: datetime | None = None,
    ) -> tuple[ApiKey, str]:
        """Make a key for the caller's tenant: no more rights, trust or time and no wider bounds than its maker has."""
        return await self._create(caller, KeyRequest(name, frozenset(rights), trust, bounds, expires_at))

    @recovered
    async def make_key(self, caller: Caller, wanted: KeyRequest) -> tuple[ApiKey, str]:
        """Make any key with `admin`; with `delegate` one for a scope and a day, that ends with the caller's own."""
        child = makes_children(caller)
        if child:
            check_new_bounds(caller, wanted.bounds)
            check_delegated(wanted, datetime.now(UTC))
        return await self._create(caller, wanted, child=child)

    async def _create(self, caller: Caller, wanted: KeyRequest, *, child: bool = False) -> tuple[ApiKey, str]:
        check_line("name", wanted.name)
        check_new_bounds(caller, wanted.bounds)
        check_new_rights(caller, wanted.rights, wanted.trust)
        maker = await self._maker(caller)
        check_expiry(wanted.expires_at, datetime.now(UTC), maker.expires_at if maker else None)
        parent = maker.id if child and maker else None
        return await keys.create_key(await self._home(caller), caller.tenant_id, replace(wanted, parent=parent))

    async def _home(self, caller: Caller) -> Database:
        return await self.parts.servers.home(caller.tenant_id)

    async def _maker(self, caller: Caller) -> ApiKey | None:
        """Find the key that a caller acts for. A session acts for the key that opened it; its new keys outlive it."""
        if caller.key_id is None:
            return None
        own = await keys.read_key(await self._home(caller), caller.tenant_id, caller.key_id)
        return (
            own if own.parent is None else await keys.read_key(await self._home(caller), caller.tenant_id, own.parent)
        )

    @recovered
    async def list_keys(self, caller: Caller) -> list[ApiKey]:
        """List the keys of the caller's tenant."""
        check_unbound(caller)
        return await keys.list_keys(await self._home(caller), caller.tenant_id)

    @recovered
    async def current_key(self, caller: Caller) -> CurrentKey:
        """Return the rights of the caller's own key, and its expiry."""
        if caller.key_id is None:
            raise ForbiddenError("No API key was sent.")
        key = await keys.read_key(await self._home(caller), caller.tenant_id, caller.key_id)
        rest = (key.agent, key.user, key.created_at, key.expires_at)
        return CurrentKey(key.id, key.name, key.rights, key.trust, caller.tenant_id, *rest)

    @recovered
    async def revoke_key(self, caller: Caller, key_id: UUID) -> ApiKey:
        """Revoke a key of the caller's tenant; without the right `admin`, one that the caller's key has made."""
        maker = await self._maker(caller) if makes_children(caller) else None
        return await keys.revoke_key(await self._home(caller), caller.tenant_id, key_id, maker.id if maker else None)

    @recovered
    async def begin_session(self, caller: Caller) -> tuple[ApiKey, str]:
        """Make a child of the caller's key with the same rights, trust and bounds, for as long as a session lasts."""
        until, name = datetime.now(UTC) + timedelta(hours=SESSION_HOURS), OPERATOR
        if caller.key_id is not None:
            own = await keys.read_key(await self._home(caller), caller.tenant_id, caller.key_id)
            maker = await self._maker(caller)
            # A session alone has all rights of its parent: a key that was made by another one cannot make keys.
            if maker and maker.id != own.id and maker.rights == own.rights:
                raise ForbiddenError(NO_SESSION)
            until, name = min(until, own.expires_at or until), own.name
        wanted = KeyRequest(name, caller.rights, caller.trust, caller.bounds, until, caller.key_id)
        return await keys.create_key(await self._home(caller), caller.tenant_id, wanted)

    @recovered
    async def end_session(self, caller: Caller) -> None:
        """Revoke the key that the caller has shown, if it expires anyway, as every session does."""
        own = await self.current_key(caller)
        if own.expires_at is not None:
            await keys.revoke_key(await self._home(caller), caller.tenant_id, own.id)
