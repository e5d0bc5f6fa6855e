"""Say why a recall found nothing: an empty scope, restrictions that nothing meets, words that nothing has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recollect.models.recall import Cue
from recollect.models.service import Scope

MOST_USERS = 5
RESTRICTIONS = ("kinds", "min_trust", "as_of", "at", "channels", "topics", "since", "until")
VECTOR, SKIPPED = "vector", "skipped: "


def tell_empty(scope: Scope, users: Sequence[str]) -> str:
    """Say that a scope is empty, and which others of its agent are not, as far as they are given."""
    said = f"agent {scope.agent} has no memories with {name_user(scope.user)}"
    if not users:
        return said
    more = " and others" if len(users) > MOST_USERS else ""
    return f"{said}; users with memories: {', '.join(map(name_user, users[:MOST_USERS]))}{more}"


def name_user(user: str) -> str:
    """Name a user; an agent's own memories have none."""
    return user or "no user"


def tell_unmatched(cue: Cue, methods: Mapping[str, str]) -> str:
    """Say what nothing was found by: the restrictions that were given, or the words."""
    given = [name for name in RESTRICTIONS if getattr(cue, name)]
    said = f"nothing was found within the given {' and '.join(given)}" if given else "nothing has the words of the cue"
    skipped = methods.get(VECTOR, "")
    return f"{said}; vectors were not compared: {skipped.removeprefix(SKIPPED)}" if SKIPPED in skipped else said
