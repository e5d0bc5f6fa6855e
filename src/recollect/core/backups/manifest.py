"""The manifest of a backup: its checksum, the server's roles, and its position in the erasure log."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from recollect.core.service.erasures import LogPosition
from recollect.errors import InvalidInputError

FORMAT = 1
UNREADABLE = "This program cannot read the manifest of the backup."


@dataclass(frozen=True, slots=True)
class BackupManifest:
    """Description of one dump of the embedded server's database."""

    program: str
    """The version of Recollect."""
    sha256: str
    """The checksum of the dump."""
    roles: str
    """SQL that creates the roles of the server."""
    erasure_log: str
    """The location of the erasure log; empty if there was none."""
    position: LogPosition
    """The newest entry of each stream of the log when the dump began."""


def write_manifest(manifest: BackupManifest) -> str:
    """Format a manifest as JSON."""
    return json.dumps({"format": FORMAT, **asdict(manifest)}, indent=1)


def read_manifest(text: str) -> BackupManifest:
    """Parse a manifest, or raise InvalidInputError."""
    try:
        given = json.loads(text)
        texts = {name: str(given[name]) for name in ("program", "sha256", "roles", "erasure_log")}
        position = {str(stream): int(number) for stream, number in given["position"].items()}
        if given["format"] == FORMAT:
            return BackupManifest(**texts, position=position)
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise InvalidInputError(UNREADABLE)
