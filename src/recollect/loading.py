"""The one way to fetch something late: an extra that may be absent, its data, or what most processes never need."""

from __future__ import annotations

from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from recollect.errors import SetupError


def load(name: str, extra: str = "") -> Any:  # noqa: ANN401 - modules have no common type
    """Import a module when it is first needed, or say which extra installs it; a test lists every use by name."""
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        if not extra or (missing.name or "").startswith("recollect"):
            raise
        raise SetupError(_ask_for(missing.name or name, extra)) from None


def read_data(package: str, file: str, digest: str, extra: str) -> str:
    """Read a file of an installed package without running its code; refuse one that is not the file that is meant."""
    spec = find_spec(package)
    for folder in spec.submodule_search_locations or () if spec else ():
        path = Path(folder) / file
        if path.is_file():
            content = path.read_bytes()
            if sha256(content).hexdigest() != digest:
                raise SetupError(f"{file} of {package} is not the one that Recollect pins: install that version again.")
            return content.decode()
    raise SetupError(_ask_for(package, extra))


def _ask_for(missing: str, extra: str) -> str:
    return f"{missing} is not installed: run pip install '.[{extra}]' in a checkout of Recollect."
