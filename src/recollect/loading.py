"""The one way to import something late: an extra that may be absent, or what most processes never need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from recollect.errors import SetupError


def load(name: str, extra: str = "") -> Any:  # noqa: ANN401 - modules have no common type
    """Import a module when it is first needed, or say which extra installs it; a test lists every use by name."""
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        if not extra or (missing.name or "").startswith("recollect"):
            raise
        raise SetupError(
            f"{missing.name} is not installed: run pip install '.[{extra}]' in a checkout of Recollect."
        ) from None
