"""Know time zones by their IANA names; UTC is known everywhere, also where no names are installed."""

from __future__ import annotations

from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo

from recollect.errors import InvalidInputError

LONGEST_ZONE = 64


def find_zone(name: str) -> tzinfo:
    """Give the time zone of a name, or say that there is none."""
    if name == "UTC":
        return UTC
    try:
        if 0 < len(name) <= LONGEST_ZONE:
            return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        # It may be no name at all, a path, or the name of a folder of zones.
        pass
    raise InvalidInputError("zone must be the IANA name of a time zone, as in Europe/Berlin or Asia/Shanghai")
