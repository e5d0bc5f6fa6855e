"""The pages of the documentation: which are English, which are generated, which have a Chinese translation."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE_BLOCK = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
GENERATED = re.compile(r"^Written by `", re.MULTILINE)
TRANSLATED = ("tutorial", "howto", "explanation", "reference")


def english(root: Path = ROOT) -> list[Path]:
    """List the English pages that people write: README, architecture, and docs without the generated reference."""
    found = [root / "README.md", root / "ARCHITECTURE.md", *sorted((root / "docs").rglob("*.md"))]
    return [page for page in found if not page.name.endswith(".zh.md") and not is_generated(page)]


def to_translate(root: Path = ROOT) -> list[Path]:
    """List the English pages that need a Chinese translation."""
    homes = {root / "README.md", root / "docs" / "README.md"}
    folders = {root / "docs" / name for name in TRANSLATED}
    return [page for page in english(root) if page in homes or page.parent in folders]


def chinese(page: Path) -> Path:
    """Return the path of the translation of a page."""
    return page.with_name(f"{page.stem}.zh.md")


def is_generated(page: Path) -> bool:
    return bool(GENERATED.search(page.read_text(encoding="utf-8")))
