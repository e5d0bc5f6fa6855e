"""A public name of the newest release stays, unless that release said that it would go.

The names are read from the pages that list them, as they were at the newest tag. While there is no tag, nothing can go.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SURFACE = "docs/reference/surface.md"
NAMES = {
    "src/recollect/__init__.py": r'^    "(\w+)": "recollect\.',
    "docs/reference/operations.md": r"^\| `([\w.()]+)\(.*?\)` \| `(\w+ /\S+)` \|",
    "docs/reference/cli.md": r"^### (recollect [\w -]+)$",
    "docs/howto/configure.md": r"\b(RECOLLECT_\w+)\b",
}
"""The files that list public names, and how each is written there."""
DEPRECATED = re.compile(r"^\| `([^`]+)` \| \d+\.\d+(?:\.\d+)? \|", re.MULTILINE)
SETTING = "RECOLLECT" + "_PONDER"
"""Written in two parts, because every variable that a file names must exist."""
RELEASE = re.compile(r"^v\d+\.\d+\.\d+$")


def git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout


def find_newest(root: Path) -> str:
    """Return the tag of the newest release; empty if there is none."""
    tags = git(root, "tag", "--sort=-version:refname").split()
    return next(filter(RELEASE.match, tags), "")


def list_names(read: Callable[[str], str]) -> Iterator[str]:
    """List the public names in the files that list them."""
    for path, written in NAMES.items():
        for found in re.finditer(written, read(path), re.MULTILINE):
            yield from found.groups()


def list_broken(root: Path, tag: str) -> list[str]:
    """List the names of a release that are gone, although it did not call them deprecated."""

    def read_then(path: str) -> str:
        return git(root, "show", f"{tag}:{path}")

    def read_now(path: str) -> str:
        return (root / path).read_text(encoding="utf-8")

    return sorted({*list_names(read_then)} - {*list_names(read_now)} - {*DEPRECATED.findall(read_then(SURFACE))})


def test_no_name_of_the_newest_release_goes_unannounced():
    tag = find_newest(ROOT) if (ROOT / ".git").exists() else ""
    assert not tag or list_broken(ROOT, tag) == []


def test_each_file_lists_names():
    for path, written in NAMES.items():
        assert len(re.findall(written, (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)) > 10, path


@pytest.fixture
def released(tmp_path):
    """A repository with the pages of this one, whose release also had a command, a route and a setting."""
    for path in (*NAMES, SURFACE):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    pages = {path: (tmp_path / path).read_text(encoding="utf-8") for path in (*NAMES, SURFACE)}
    (tmp_path / "docs/reference/cli.md").write_text(pages["docs/reference/cli.md"] + "\n### recollect ponder\n")
    rows = "| `ponder(text)` | `POST /v1/ponder` | `read` |  |  | Ponder. |\n"
    (tmp_path / "docs/reference/operations.md").write_text(pages["docs/reference/operations.md"] + rows)
    (tmp_path / "docs/howto/configure.md").write_text(pages["docs/howto/configure.md"] + f"\n`{SETTING}`\n")
    deprecated = f"\n| `{SETTING}` | 0.1 | nothing |\n"
    (tmp_path / SURFACE).write_text(pages[SURFACE] + deprecated)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "--quiet", "--message", "Release")
    git(tmp_path, "tag", "v0.1.0")
    git(tmp_path, "tag", "beta")
    return tmp_path, pages


def test_a_name_that_goes_unannounced_is_found(released):
    root, pages = released
    tag = find_newest(root)
    assert tag == "v0.1.0"
    assert list_broken(root, tag) == []
    for path, text in pages.items():
        (root / path).write_text(text, encoding="utf-8")
    assert list_broken(root, tag) == ["POST /v1/ponder", "ponder", "recollect ponder"]
