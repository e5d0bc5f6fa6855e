"""Check a caller's rights, and that a bound key is used only for its agent or user."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from recollect.core.text.checks import check_scope
from recollect.errors import ForbiddenError, InvalidInputError
from recollect.models.service import Caller, KeyBinding, KeyRequest, Right

# The same text whether or not the scope exists: a bound key learns nothing about other scopes.
KEY_BINDING_MISMATCH = (
    "This API key is bound to another agent or user. Leave agent and user empty, or use those of the key."
)
DELEGATED_HOURS = 24
"""Maximum lifetime in hours of a key that was created without the right `admin`."""


def check_right(caller: Caller, right: Right) -> None:
    """Raise ForbiddenError unless a caller has a right."""
    if right not in caller.rights:
        raise ForbiddenError(f"This API key does not have the `{right}` permission.")


def check_unbound(caller: Caller) -> None:
    """Raise ForbiddenError if a bound caller requests an operation on a whole tenant."""
    if caller.bounds.agent is not None:
        raise ForbiddenError("This API key is bound to an agent. Use an unbound key for operations on all agents.")


def check_all_users(caller: Caller) -> None:
    """Raise ForbiddenError if a caller bound to a user requests an operation on all users."""
    if caller.bounds.user is not None:
        raise ForbiddenError("This API key is bound to a user. Use an unbound key for operations on all users.")


def check_new_bounds(maker: Caller, bounds: KeyBinding) -> None:
    """Refuse bounds with invalid names, or wider than those of the key's creator."""
    if bounds.agent is None:
        if bounds.user is not None:
            raise InvalidInputError("a key bound to a user must also be bound to an agent")
    else:
        check_scope(bounds.agent, bounds.user or "")
    for own, new in ((maker.bounds.agent, bounds.agent), (maker.bounds.user, bounds.user)):
        if own is not None and new != own:
            raise ForbiddenError("This API key is bound; keys that it creates must have the same binding.")


def makes_children(caller: Caller) -> bool:
    """Return whether a caller may only create and revoke children of its key; refuse other callers without `admin`."""
    if Right.DELEGATE in caller.rights and (Right.ADMIN not in caller.rights or caller.bounds.agent is not None):
        return True
    check_unbound(caller)
    check_right(caller, Right.ADMIN)
    return False


def check_new_rights(maker: Caller, rights: Collection[Right], trust: int) -> None:
    """Refuse rights or trust beyond those of the key's creator."""
    if not rights or not maker.rights.issuperset(rights):
        raise InvalidInputError("rights must not be empty and must not exceed those of your key")
    if not 0 <= trust <= maker.trust:
        raise InvalidInputError(f"trust must be between 0 and {maker.trust}, the trust of your key")


def check_expiry(expires_at: datetime | None, now: datetime, latest: datetime | None) -> None:
    """Refuse a key that is already expired, or that expires later than its creator."""
    if expires_at is not None and expires_at <= now:
        raise InvalidInputError("expires_at must be in the future")
    if latest is not None and (expires_at is None or expires_at > latest):
        raise InvalidInputError("expires_at is required and must not be later than that of your key")


def check_delegated(wanted: KeyRequest, now: datetime) -> None:
    """Refuse keys that require the right `admin`; see `Right.DELEGATE`."""
    if wanted.bounds.agent is None or wanted.bounds.user is None:
        raise InvalidInputError("without `admin`, a key must be bound to one agent and user")
    if not wanted.rights <= {Right.READ, Right.WRITE}:
        raise InvalidInputError("without `admin`, a key can have only `read` and `write`")
    if wanted.expires_at is None or wanted.expires_at > now + timedelta(hours=DELEGATED_HOURS):
        raise InvalidInputError(f"without `admin`, a key is valid for at most {DELEGATED_HOURS} hours: set expires_at")


def check_bounds(caller: Caller, agent: str | None, user: str | None) -> None:
    """Raise ForbiddenError if a request is for scopes outside the key's bounds; None means all."""
    for own, asked in ((caller.bounds.agent, agent), (caller.bounds.user, user)):
        if own is not None and asked != own:
            raise ForbiddenError(KEY_BINDING_MISMATCH)


def may_restore(caller: Caller) -> bool:
    """Return whether a caller may restore origin, trust, receipts and times.

    Operators and unbound admin keys may.
    """
    return Right.ADMIN in caller.rights and caller.bounds.agent is None
