"""Pages say how to install what we publish, by its names, and which address and key a program is given."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
NAMES = {
    tomllib.loads(path.read_text(encoding="utf-8"))["project"]["name"]: path.parent
    for path in [
        ROOT / "pyproject.toml",
        *ROOT.glob("integrations/*/pyproject.toml"),
        *ROOT.glob("packages/*/pyproject.toml"),
    ]
}
INSTALLING = sorted(
    path
    for path in [ROOT / "README.md", *ROOT.glob("docs/*/*.md"), *ROOT.glob("integrations/*/README.md")]
    if any(line.startswith("pip install ") for line in path.read_text(encoding="utf-8").splitlines())
)
ASKING = sorted(
    path for path in ROOT.glob("docs/howto/*.md") if '["RECOLLECT_KEY"]' in path.read_text(encoding="utf-8")
)


def test_there_are_pages_to_look_at():
    assert len(INSTALLING) >= 4
    assert len(ASKING) >= 4


@pytest.mark.parametrize("page", INSTALLING, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_installs_packages_of_ours_by_their_names(page):
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("pip install ")]
    words = [word for line in lines for word in shlex.split(line, comments=True)[2:]]
    assert words
    assert [word for word in words if word.partition("[")[0] not in NAMES] == []


def test_the_extras_that_pages_name_are_there():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = {
        extra
        for page in INSTALLING
        for group in re.findall(r"recollect-memory\[([\w,-]+)\]", page.read_text(encoding="utf-8"))
        for extra in group.split(",")
    }
    assert {"all", "server", "cold"} <= named <= {*extras}


@pytest.mark.parametrize("page", ASKING, ids=lambda page: page.name)
def test_a_page_whose_program_needs_a_key_says_how_to_set_it(page):
    text = page.read_text(encoding="utf-8")
    assert "export RECOLLECT_URL=http://127.0.0.1:7077\nexport RECOLLECT_KEY=rec_...\n" in text
    assert "recollect admin keys create NAME" in text
