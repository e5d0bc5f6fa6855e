"""Read named queries from the .sql file that lies beside a module."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import LiteralString, cast

HEADING = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def load_queries(module_file: str) -> Mapping[str, LiteralString]:
    """Load the queries of a module by name; they ship with the package, so they count as literals."""
    text = Path(module_file).with_suffix(".sql").read_text(encoding="utf-8")
    parts = HEADING.split(text)[1:]
    return {name: cast("LiteralString", body.strip()) for name, body in zip(parts[::2], parts[1::2], strict=True)}
