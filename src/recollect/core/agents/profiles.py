"""Check an agent's profile, and convert it to and from the stored JSON."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from recollect.core.memories.fading import MAX_DAYS
from recollect.core.recall.checks import check_channels, check_cue, check_weighing
from recollect.core.recall.weights import EVERY_CHANNEL
from recollect.core.text.checks import check_limit, check_line
from recollect.errors import InvalidInputError
from recollect.models.agents import Profile
from recollect.models.memories import JSON
from recollect.models.recall import Cue

PROFILE = TypeAdapter(Profile)
MAX_THRESHOLD = 1_000_000
MAX_MINUTES = 525_600
DAYS = ("archive_after_days", "delete_after_days", "purge_after_days", "fading_days", "fading_fact_days")
MAX_NAMES = 20
NOTHING_SET: tuple[object, ...] = ((), {}, None, None, None, ())
LANGUAGES = ("", "en", "zh")


def to_profile(kept: JSON) -> Profile:
    """Read a profile; absent fields have their defaults, and fields of a newer version are ignored."""
    return PROFILE.validate_python(kept or {})


def from_profile(profile: Profile) -> dict[str, JSON]:
    """Write only settings that are set, so that later changes of a default reach all other agents."""
    written: dict[str, JSON] = PROFILE.dump_python(
        profile, mode="json", exclude={"metadata"}, exclude_defaults=True, exclude_none=True
    )
    return written


def check_names(names: Collection[str]) -> None:
    """Check the names of the owners of the memory."""
    if len(names) > MAX_NAMES:
        raise InvalidInputError(f"names must hold at most {MAX_NAMES} items")
    for name in names:
        check_line("names", name)


def fill_in(cue: Cue, profile: Profile) -> Cue:
    """Complete a cue with the profile's settings.

    If the cue has only one channel, the minimum relevance of the profile does not apply.
    """
    own = (profile.channels, profile.weights, profile.min_relevance, profile.consult, profile.judge, profile.named)
    if own == NOTHING_SET:
        return cue
    channels = cue.channels or profile.channels
    alone = cue.blank or len({*channels}) == 1
    return replace(
        cue,
        channels=() if cue.blank and not cue.channels else channels,
        weights={**profile.weights, **cue.weights},
        min_relevance=profile.min_relevance if cue.min_relevance is None and not alone else cue.min_relevance,
        consult=profile.consult if cue.consult is None else cue.consult,
        judge=profile.judge if cue.judge is None else cue.judge,
        **restrict(cue, profile),
    )


def restrict(cue: Cue, profile: Profile) -> dict[str, Any]:
    """List the restrictions of the profile that the cue does not set."""
    given = {name: getattr(profile, name) for name in profile.named if name not in cue.named}
    how = ("below", "topics_only") if "topics" in given else ()
    return given | {name: getattr(profile, name) for name in how}


def check_recall(profile: Profile, channels: Collection[str]) -> None:
    """Refuse recall defaults that would be invalid in a cue."""
    check_channels(profile.channels, {*EVERY_CHANNEL, *channels})
    defaults = fill_in(Cue("any", also=profile.also), profile)
    check_cue(replace(defaults, min_relevance=profile.min_relevance), channels)


def check_profile(profile: Profile, channels: Collection[str] = ()) -> None:
    """Check the settings of an agent; `channels` are additional channel names."""
    check_weighing(profile.weighing)
    check_recall(profile, channels)
    if len(set(profile.kinds)) != len(profile.kinds):
        raise InvalidInputError("kinds must not name a kind twice")
    if profile.limit is not None:
        check_limit(profile.limit)
    check_names(profile.names)
    if profile.language not in LANGUAGES:
        raise InvalidInputError("language must be en, zh or empty")
    for field, most in (("fading_threshold", 1), ("segment_depth", 2)):
        share = getattr(profile, field)
        if share is not None and not 0 <= share <= most:
            raise InvalidInputError(f"{field} must be between 0 and {most}")
    longest = {"reflection_threshold": MAX_THRESHOLD, "idle_minutes": MAX_MINUTES} | dict.fromkeys(DAYS, MAX_DAYS)
    for field, highest in longest.items():
        value = getattr(profile, field)
        if value is not None and not 0 <= value <= highest:
            raise InvalidInputError(f"{field} must be between 0 and {highest}; 0 means never")
