"""The table of what ran names every door, and the versions that the lock files hold."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "doors.md"


def rows():
    """Return door, package, version, lock file and tests of each row."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    cells = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if len(row) == 5 and row[3].endswith("uv.lock")]


@cache
def read_lock(path):
    return tomllib.loads((ROOT / path).read_text(encoding="utf-8"))["package"]


def locked(path):
    return {package["name"]: package["version"] for package in read_lock(path) if "version" in package}


def test_the_versions_are_those_of_the_lock_files():
    differ = [(row, locked(row[3]).get(row[1])) for row in rows() if locked(row[3]).get(row[1]) != row[2]]
    assert differ == []
    assert rows()


def test_every_integration_is_in_the_table():
    projects = {f"integrations/{path.parent.name}/uv.lock" for path in ROOT.glob("integrations/*/pyproject.toml")}
    assert projects <= {row[3] for row in rows()}


def test_the_tests_that_it_names_exist():
    assert [row[4] for row in rows() if not (ROOT / row[4]).exists()] == []


def test_lock_files_name_the_public_registry_alone():
    projects = [path.parent.relative_to(ROOT) for path in ROOT.glob("integrations/*/uv.lock")]
    for path in ["uv.lock", *(f"{project.as_posix()}/uv.lock" for project in projects)]:
        sources = {package["source"].get("registry", "https://pypi.org/simple") for package in read_lock(path)}
        assert sources == {"https://pypi.org/simple"}, path
