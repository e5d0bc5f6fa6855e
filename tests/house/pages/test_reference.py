"""The generated reference is what the program says of itself."""

from __future__ import annotations

import pytest

import pages
import reference_pages
from recollect.doors.cli.main import HELP

WRITTEN = reference_pages.write_pages()


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_a_page_is_what_the_program_says(name):
    page = reference_pages.PAGES[name]
    assert page.read_text(encoding="utf-8") == WRITTEN[name], "run `python tools/reference_pages.py`"
    assert pages.is_generated(page)


def test_nothing_of_a_run_is_on_a_page():
    assert [name for name, text in WRITTEN.items() if " at 0x" in text or "<function" in text] == []


def test_every_command_has_its_place():
    assert [name for name in HELP if f"\n### recollect {name}" not in WRITTEN["cli.md"]] == []


def test_an_introduction_without_its_mark_is_refused(tmp_path, monkeypatch):
    (tmp_path / "cli.md").write_text("# Command line\n", encoding="utf-8")
    monkeypatch.setattr(reference_pages, "INTRODUCTIONS", tmp_path)
    with pytest.raises(SystemExit, match="must have the line"):
        reference_pages.fill("cli.md", "")
