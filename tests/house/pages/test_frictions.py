"""The page of frictions names for each a test that exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "frictions.md"
ROW = re.compile(r"\| (\d+) \|.*\| `(tests/\S+\.py)::(test_\w+)` \|")


def read_rows(page):
    """Return number, file and test of each row of a page, and the rows that name no test."""
    rows = [line for line in page.splitlines() if re.match(r"\| \d", line)]
    found = [ROW.fullmatch(row) for row in rows]
    return [match.groups() for match in found if match], [
        row for row, match in zip(rows, found, strict=True) if not match
    ]


def has_test(root, file, name):
    """Return whether a file has a test of this name."""
    path = root / file
    if not path.is_file():
        return False
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name for node in tree.body)


def test_every_friction_has_a_number_and_a_test_that_exists():
    rows, without = read_rows(PAGE.read_text(encoding="utf-8"))
    assert without == []
    assert [int(number) for number, _, _ in rows] == list(range(1, len(rows) + 1))
    assert [(file, name) for _, file, name in rows if not has_test(ROOT, file, name)] == []


@pytest.mark.parametrize("name", ["test_absent", "planted"])
def test_a_test_that_does_not_exist_is_found(tmp_path, name):
    (tmp_path / "test_planted.py").write_text("def test_planted(): ...\n", encoding="utf-8")
    assert has_test(tmp_path, "test_planted.py", "test_planted")
    assert not has_test(tmp_path, "test_planted.py", name)
    assert not has_test(tmp_path, "test_other.py", "test_planted")
    assert read_rows("| 1 | it hangs | it ends | none |") == ([], ["| 1 | it hangs | it ends | none |"])
