"""Print which Chinese pages are missing or old; with --stamp, mark translations as made from the page of today.

python tools/translations.py [--stamp docs/howto/backup.zh.md ...]

The first line of a translation names its source and the first 12 hex digits of that file's SHA-256.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from pathlib import Path

from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, String, Text

import pages

STAMP = re.compile(r"<!-- translated from (\S+) ([0-9a-f]{12}) -->\n")
PROSE = {"", "text", "mermaid"}
"""Blocks that hold what a program prints or what a picture says: their words are translated."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--stamp", nargs="+", type=Path, metavar="PAGE", help="translations that are up to date")
    given = parser.parse_args()
    for page in given.stamp or ():
        stamp(page)
    for name, fault in find_faults().items():
        print(f"{name}: {fault}")


def find_faults(root: Path = pages.ROOT) -> dict[str, str]:
    """Return the fault of each page without a good translation."""
    faults = {page.relative_to(root).as_posix(): check(page) for page in pages.to_translate(root)}
    return {name: fault for name, fault in faults.items() if fault}


def check(page: Path) -> str:
    """Return the fault of a page's translation; empty if it is good."""
    translation = pages.chinese(page)
    if not translation.exists():
        return "missing"
    text = translation.read_text(encoding="utf-8")
    found = STAMP.match(text)
    if not found:
        return "not stamped"
    if found.groups() != (page.name, digest(page)):
        return "old"
    return compare_blocks(page.read_text(encoding="utf-8"), text)


def compare_blocks(english: str, chinese: str) -> str:
    """Name the first code block that differs in more than strings and comments."""
    ours, theirs = pages.CODE_BLOCK.findall(english), pages.CODE_BLOCK.findall(chinese)
    if [block[1] for block in ours] != [block[1] for block in theirs]:
        return f"{len(ours)} and {len(theirs)} code blocks, or in other languages"
    for number, (here, there) in enumerate(zip(ours, theirs, strict=True), start=1):
        if read_code(here[1], here[2]) != read_code(there[1], there[2]):
            return f"code block {number} ({here[1]}) differs"
    return ""


def read_code(language: str, text: str) -> list[str]:
    """Return the tokens of a code block without strings, comments and spaces."""
    if language in PROSE:
        return []
    tokens = get_lexer_by_name(language).get_tokens(text)
    kept = [(kind, value) for kind, value in tokens if kind not in Comment and kind not in String]
    return [value for kind, value in kept if not (kind in Text and not value.strip())]


def stamp(translation: Path) -> None:
    """Write the name and the digest of its source as the first line of a translation."""
    source = translation.with_name(translation.name.replace(".zh.md", ".md"))
    text = STAMP.sub("", translation.read_text(encoding="utf-8"), count=1)
    line = f"<!-- translated from {source.name} {digest(source)} -->\n"
    translation.write_text(line + text, encoding="utf-8")


def digest(page: Path) -> str:
    return hashlib.sha256(page.read_bytes()).hexdigest()[:12]


if __name__ == "__main__":
    main()
