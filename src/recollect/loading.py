"""What a process finds where it runs: packages that may be absent and their data, loaded late, and the time zone."""

from __future__ import annotations

import importlib.util
import os
from datetime import timedelta
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from recollect.errors import SetupError

DISTRIBUTION = "recollect-memory"
"""The name on PyPI; another project has the name of the package."""
LOCAL_TIME = Path("/etc/localtime")


def package_version() -> str:
    """Return the version of Recollect that is installed."""
    return version(DISTRIBUTION)


@cache
def local_timezone() -> str:
    """Name the time zone of this machine, as the variable TZ or /etc/localtime has it; UTC if neither names one."""
    name = os.environ.get("TZ", "").lstrip(":") or str(LOCAL_TIME.resolve()).rpartition("zoneinfo/")[2]
    try:
        return "UTC" if ZoneInfo(name).utcoffset(None) == timedelta(0) else name
    except (LookupError, ValueError, OSError):
        return "UTC"


def load(name: str, extra: str = "") -> Any:  # noqa: ANN401 - modules have no common type
    """Import a module when it is first needed, or say which extra installs it; a test lists every use by name."""
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        if not extra or (missing.name or "").startswith("recollect"):
            raise
        raise SetupError(_ask_for(missing.name or name, extra)) from None


def find_data(package: str, name: str | Path) -> Path | None:
    """Find a file or folder of an installed package without importing it; None if it is not there."""
    spec = importlib.util.find_spec(package)
    places = (Path(folder) / name for folder in spec.submodule_search_locations or ()) if spec else ()
    return next((path for path in places if path.exists()), None)


def read_data(package: str, file: str, digest: str, extra: str) -> str:
    """Read a text of an installed package without importing it; refuse one that is not the file that is meant."""
    path = find_data(package, file)
    if path is None:
        raise SetupError(_ask_for(package, extra))
    content = path.read_bytes()
    if sha256(content).hexdigest() != digest:
        raise SetupError(f"{file} of {package} is not the one that Recollect pins: install that version again.")
    return content.decode()


def install_hint(extra: str) -> str:
    """Return how to install an extra."""
    return f"run: pip install '{DISTRIBUTION}[{extra}]'"


def _ask_for(missing: str, extra: str) -> str:
    return f"{missing} is not installed; {install_hint(extra)}"
