"""What a backup says of itself: when and of what it was made, its files, and how far the erasure log had come."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from recollect.core.service.erasures import LogPosition
from recollect.errors import InvalidInputError
from recollect.models.outside import BackupKind

FORMAT = 1
NAME = "manifest.json"
UNREADABLE = "This is no manifest of a backup that this program can read."


@dataclass(frozen=True, slots=True)
class RecordDescription:
    """What is known of a database when it is copied."""

    incarnation: UUID
    database: str
    """Its name."""
    schema: str
    """The newest migration."""
    server: int
    """The version of PostgreSQL, as its number."""
    roles: tuple[str, ...]
    """The roles that its objects name."""
    rows: Mapping[str, int] | None
    """How many rows each table has; None if that changed while it was copied."""


@dataclass(frozen=True, slots=True)
class BackupFile:
    """One file of a backup."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class BackupManifest:
    """All that a backup says of itself."""

    made_at: datetime
    """When it was begun."""
    kind: BackupKind
    program: str
    """The version of Recollect."""
    record: RecordDescription
    files: Mapping[str, BackupFile]
    erasure_log: str
    """Where the log was; empty if there was none."""
    position: LogPosition
    """How far the log had come when the copy was begun."""


def write_manifest(manifest: BackupManifest) -> str:
    """Write a manifest as JSON."""
    return json.dumps({"format": FORMAT, **asdict(manifest)}, indent=1, default=str)


def read_manifest(text: str) -> BackupManifest:
    """Read a manifest."""
    try:
        given = json.loads(text)
        if given["format"] != FORMAT:
            raise InvalidInputError(UNREADABLE)
        record = given["record"]
        described = {
            "incarnation": UUID(record["incarnation"]),
            "database": str(record["database"]),
            "roles": tuple(record["roles"]),
            "schema": str(record["schema"]),
            "server": int(record["server"]),
            "rows": record["rows"],
        }
        return BackupManifest(
            datetime.fromisoformat(given["made_at"]),
            BackupKind(given["kind"]),
            str(given["program"]),
            RecordDescription(**described),
            {name: BackupFile(**file) for name, file in given["files"].items()},
            str(given["erasure_log"]),
            dict(given["position"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidInputError(UNREADABLE) from None
