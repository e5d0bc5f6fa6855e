"""The page of the founding documents names pages and tests that exist, and says of each row whether it holds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "founding.md"
HOLDS = {"yes", "yes, off", "otherwise", "later", "no"}
EXPLAINED = {"otherwise", "later"}
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
PLANTED = """
| mechanism | holds | how | test |
|---|---|---|---|
| one | partly | [page](glossary-of-nobody.md) | `tests/house/pages/test_founding.py::test_nothing` |
| two | otherwise | without a reason | `tests/house/test_nobody.py` |
| three | yes | [all](../adr/README.md#decisions) | `tests/house/pages/test_founding.py::test_a_wrong_row_is_found` |
"""


def read_rows(text: str) -> list[list[str]]:
    """Return mechanism, holds, how and test of each row."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for row in rows if row[0] != "mechanism" and set(row[0]) != {"-"}]


def find_faults(text: str) -> Iterator[str]:
    for mechanism, holds, how, test in read_rows(text):
        links = LINK.findall(how)
        if holds not in HOLDS:
            yield f"{mechanism}: {holds} is no word for it"
        if holds in EXPLAINED and not links:
            yield f"{mechanism}: no page says why"
        yield from (f"{mechanism}: no page {link}" for link in links if not (PAGE.parent / link).exists())
        if (test or holds.startswith("yes")) and not has_test(test.strip("`")):
            yield f"{mechanism}: no test {test}"


def has_test(named: str) -> bool:
    path, _, name = named.partition("::")
    found = ROOT / path
    return found.is_file() and bool(re.search(rf"^\s*(async )?def {name}\b", found.read_text(encoding="utf-8"), re.M))


def test_every_row_holds_what_it_says():
    text = PAGE.read_text(encoding="utf-8")
    assert len(read_rows(text)) == 124
    assert list(find_faults(text)) == []


def test_a_wrong_row_is_found():
    found = [fault.split(": ")[:2] for fault in find_faults(PLANTED)]
    assert [mechanism for mechanism, _ in found] == ["one", "one", "one", "two", "two"]
