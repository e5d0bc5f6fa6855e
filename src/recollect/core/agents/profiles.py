"""Check an agent's profile, and turn it into the JSON it is kept as and back."""

from __future__ import annotations

from collections.abc import Collection

from pydantic import TypeAdapter

from recollect.core.memories.fading import MOST_DAYS
from recollect.core.recall.checks import check_weighing
from recollect.core.text.checks import check_limit, check_line
from recollect.errors import InvalidInputError
from recollect.models.agents import Profile
from recollect.models.memories import JSON

PROFILE = TypeAdapter(Profile)
HIGHEST_THRESHOLD = 1_000_000
MOST_MINUTES = 525_600
DAYS = ("archive_after_days", "delete_after_days", "purge_after_days", "fading_days", "fading_fact_days")
MOST_NAMES = 20


def to_profile(kept: JSON) -> Profile:
    """Read a profile; absent fields have their defaults, and fields of a newer version are ignored."""
    return PROFILE.validate_python(kept or {})


def from_profile(profile: Profile) -> dict[str, JSON]:
    """Write only fields that are set, so that a default can change for all who did not set it."""
    written: dict[str, JSON] = PROFILE.dump_python(profile, mode="json", exclude_defaults=True, exclude_none=True)
    return written


def check_names(names: Collection[str]) -> None:
    """Check the names of those whose memory it is."""
    if len(names) > MOST_NAMES:
        raise InvalidInputError(f"names must hold at most {MOST_NAMES} items")
    for name in names:
        check_line("names", name)


def check_profile(profile: Profile) -> None:
    """Check the settings of an agent."""
    check_weighing(profile.weighing)
    if len(set(profile.kinds)) != len(profile.kinds):
        raise InvalidInputError("kinds must not name a kind twice")
    if profile.limit is not None:
        check_limit(profile.limit)
    check_names(profile.names)
    for field in ("fading_threshold", "topic_threshold"):
        share = getattr(profile, field)
        if share is not None and not 0 <= share <= 1:
            raise InvalidInputError(f"{field} must be between 0 and 1")
    most = {"reflection_threshold": HIGHEST_THRESHOLD, "idle_minutes": MOST_MINUTES} | dict.fromkeys(DAYS, MOST_DAYS)
    for field, highest in most.items():
        value = getattr(profile, field)
        if value is not None and not 0 <= value <= highest:
            raise InvalidInputError(f"{field} must be between 0 and {highest}; 0 means never")
