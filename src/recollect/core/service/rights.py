"""Check a caller's rights, and that a bound key stays within its agent or user."""

from __future__ import annotations

from recollect.core.text.checks import check_scope
from recollect.errors import ForbiddenError, InvalidInputError
from recollect.models.service import Bounds, Caller, Right

# The same text whether or not the scope exists: a bound key learns nothing of others.
OUT_OF_BOUNDS = "This API key is bound: leave agent and user empty, or name those that it was made for."


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


def check_bounds(caller: Caller, agent: str | None, user: str | None) -> None:
    """Raise ForbiddenError where a request concerns other scopes than those a key is bound to; None is every one."""
    for own, asked in ((caller.bounds.agent, agent), (caller.bounds.user, user)):
        if own is not None and asked != own:
            raise ForbiddenError(OUT_OF_BOUNDS)


def may_restore(caller: Caller) -> bool:
    """Tell whether a caller may restore origin, trust, receipts and times: an operator, or an unbound admin key."""
    return Right.ADMIN in caller.rights and caller.bounds.agent is None
