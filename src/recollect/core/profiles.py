"""Turn an agent's profile into the JSON it is kept as, and back."""

from __future__ import annotations

from pydantic import TypeAdapter

from recollect.models.agents import Profile
from recollect.models.memories import JSON

PROFILE = TypeAdapter(Profile)


def to_profile(kept: JSON) -> Profile:
    """Read a profile; what is absent is as by default, and what a newer version added is left alone."""
    return PROFILE.validate_python(kept or {})


def from_profile(profile: Profile) -> dict[str, JSON]:
    """Write only what the profile says, so that a default can change for all who never chose."""
    written: dict[str, JSON] = PROFILE.dump_python(profile, mode="json", exclude_defaults=True, exclude_none=True)
    return written
