"""Check a caller's rights, and that a bound key stays within its agent or user."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from recollect.core.text.checks import check_scope
from recollect.errors import ForbiddenError, InvalidInputError
from recollect.models.service import Bounds, Caller, KeyRequest, Right

# The same text whether or not the scope exists: a bound key learns nothing of others.
OUT_OF_BOUNDS = "This API key is bound: leave agent and user empty, or name those that it was made for."
DELEGATED_HOURS = 24
"""How long a key lives at most that was made without the right `admin`."""


def check_right(caller: Caller, right: Right) -> None:
    """Raise ForbiddenError unless a caller has a right."""
    if right not in caller.rights:
        raise ForbiddenError(f"This API key lacks the right `{right}`.")


def check_unbound(caller: Caller) -> None:
    """Raise ForbiddenError where a request concerns a whole tenant and the caller is bound."""
    if caller.bounds.agent is not None:
        raise ForbiddenError("This API key is bound to an agent; what concerns all agents needs a key that is not.")


def check_all_users(caller: Caller) -> None:
    """Raise ForbiddenError where a request concerns all users of an agent and the caller is bound to one."""
    if caller.bounds.user is not None:
        raise ForbiddenError("This API key is bound to one user; what concerns all users needs a key that is not.")


def check_new_bounds(maker: Caller, bounds: Bounds) -> None:
    """Refuse bounds that are invalid names, or wider than those of the key's maker."""
    if bounds.agent is None:
        if bounds.user is not None:
            raise InvalidInputError("a key that is bound to a user is bound to an agent, too: name it")
    else:
        check_scope(bounds.agent, bounds.user or "")
    for own, new in ((maker.bounds.agent, bounds.agent), (maker.bounds.user, bounds.user)):
        if own is not None and new != own:
            raise ForbiddenError("This API key is bound, and so are the keys that it makes: to the same names.")


def makes_children(caller: Caller) -> bool:
    """Tell whether a caller makes and revokes children of its own key alone; refuse one who may make no key."""
    if Right.DELEGATE in caller.rights and (Right.ADMIN not in caller.rights or caller.bounds.agent is not None):
        return True
    check_unbound(caller)
    check_right(caller, Right.ADMIN)
    return False


def check_new_rights(maker: Caller, rights: Collection[Right], trust: int) -> None:
    """Refuse rights or trust beyond those of the key's maker."""
    if not rights or not maker.rights.issuperset(rights):
        raise InvalidInputError("rights must name at least one right, and none that the maker of the key lacks")
    if not 0 <= trust <= maker.trust:
        raise InvalidInputError(f"trust must be between 0 and {maker.trust}, the trust of the key's maker")


def check_expiry(expires_at: datetime | None, now: datetime, latest: datetime | None) -> None:
    """Refuse a key that would have expired already, or that would outlive its maker."""
    if expires_at is not None and expires_at <= now:
        raise InvalidInputError("expires_at must lie in the future")
    if latest is not None and (expires_at is None or expires_at > latest):
        raise InvalidInputError("expires_at must be set, and not later than the maker of the key expires itself")


def check_delegated(wanted: KeyRequest, now: datetime) -> None:
    """Refuse what only a key of the right `admin` may make: see `Right.DELEGATE`."""
    if wanted.bounds.agent is None or wanted.bounds.user is None:
        raise InvalidInputError("without the right `admin`, a key is made for one scope: name its agent and its user")
    if not wanted.rights <= {Right.READ, Right.WRITE}:
        raise InvalidInputError("without the right `admin`, a key is made with `read`, `write` or both")
    if wanted.expires_at is None or wanted.expires_at > now + timedelta(hours=DELEGATED_HOURS):
        raise InvalidInputError(
            f"without the right `admin`, a key is made for {DELEGATED_HOURS} hours at most: set expires_at"
        )


def check_bounds(caller: Caller, agent: str | None, user: str | None) -> None:
    """Raise ForbiddenError where a request concerns other scopes than those a key is bound to; None is every one."""
    for own, asked in ((caller.bounds.agent, agent), (caller.bounds.user, user)):
        if own is not None and asked != own:
            raise ForbiddenError(OUT_OF_BOUNDS)


def may_restore(caller: Caller) -> bool:
    """Tell whether a caller may restore origin, trust, receipts and times: an operator, or an unbound admin key."""
    return Right.ADMIN in caller.rights and caller.bounds.agent is None
