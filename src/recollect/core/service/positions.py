"""Positions as text: a header carries the newest of each server, with commas."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from recollect.errors import InvalidInputError
from recollect.models.shards import Position

FORM = re.compile(r"(\d{1,5})\.(\d{1,10})\.([0-9A-F]{1,8}/[0-9A-F]{1,8})", re.ASCII)
MOST_POSITIONS = 1_000
UNREADABLE = "A position is written as its server gave it, like 0.1.0/16B3748; several have commas between them."


def read_lsn(written: str) -> int:
    """Read a place in the log as PostgreSQL writes it."""
    high, low = written.split("/")
    return int(high, 16) << 32 | int(low, 16)


def read_positions(written: str) -> dict[int, Position]:
    """Read positions, each by its server; an empty text has none."""
    parts = [part for each in written.split(",") if (part := each.strip())]
    found = [FORM.fullmatch(part) for part in parts[: MOST_POSITIONS + 1]]
    if len(found) > MOST_POSITIONS or None in found:
        raise InvalidInputError(UNREADABLE)
    return join_positions({}, (Position(int(each[1]), int(each[2]), read_lsn(each[3])) for each in found if each))


def write_positions(positions: Mapping[int, Position]) -> str:
    """Write positions as a header has them."""
    return ",".join(str(positions[shard]) for shard in sorted(positions))


def join_positions(known: Mapping[int, Position], others: Iterable[Position]) -> dict[int, Position]:
    """Leave the newest position of each server."""
    joined = dict(known)
    for each in others:
        joined[each.shard] = max(each, joined.get(each.shard, each))
    return joined
