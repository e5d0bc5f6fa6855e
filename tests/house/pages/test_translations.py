"""Every page has a Chinese translation of its current text, with the same code; and pages stay short."""

from __future__ import annotations

from pathlib import Path

import pytest

import pages
import translations
import words

PENDING: set[str] = set()
"""Pages that still lack a translation, or whose translation is old: exactly these."""
MOST_WORDS = 46_800
"""Of all English pages, generated reference apart; it goes down as pages get shorter, and never up."""
PYTHON = 'print("peanuts")  # what Li must not eat'


def test_exactly_the_pending_pages_lack_a_good_translation():
    faults = translations.find_faults()
    assert {name: fault for name, fault in faults.items() if name not in PENDING} == {}
    assert PENDING - {*faults} == set(), "these are done"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A page and its translation, stamped."""
    page = tmp_path / "page.md"
    page.write_text(f"# Peanuts\n\n```python\n{PYTHON}\n```\n\n```text\npeanuts\n```\n", encoding="utf-8")
    text = page.read_text(encoding="utf-8").replace("what Li must not eat", "不能吃").replace("peanuts", "花生")
    pages.chinese(page).write_text(text, encoding="utf-8")
    translations.stamp(pages.chinese(page))
    return page


def test_a_stamped_translation_is_good_and_a_second_stamp_changes_nothing(page):
    before = pages.chinese(page).read_text(encoding="utf-8")
    translations.stamp(pages.chinese(page))
    assert translations.check(page) == ""
    assert pages.chinese(page).read_text(encoding="utf-8") == before


def test_a_page_that_changed_has_an_old_translation(page):
    page.write_text(page.read_text(encoding="utf-8") + "More.\n", encoding="utf-8")
    assert translations.check(page) == "old"


def test_a_translation_without_a_stamp_or_none_at_all_is_found(page):
    pages.chinese(page).write_text("# 花生\n", encoding="utf-8")
    assert translations.check(page) == "not stamped"
    pages.chinese(page).unlink()
    assert translations.check(page) == "missing"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("print(", "show("), "code block 1 (python) differs"),
        (("```text", "```sh"), "2 and 2 code blocks, or in other languages"),
    ],
)
def test_other_code_is_found(page, change, fault):
    chinese = pages.chinese(page)
    chinese.write_text(chinese.read_text(encoding="utf-8").replace(*change), encoding="utf-8")
    assert translations.check(page) == fault


def test_the_english_pages_have_few_words():
    assert words.count_words(pages.english()) <= MOST_WORDS


def test_generated_pages_are_neither_counted_nor_translated():
    names = {page.name for page in pages.english()}
    assert "figures.md" in names
    assert "promises.md" not in names


def test_ease_falls_with_longer_words_and_sentences(tmp_path):
    texts = {"plain": "The cat sat. It was a hot day.\n", "hard": "Considerable meteorological variability persists.\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(f"# Title\n\n{text}\n| a | table |\n", encoding="utf-8")
    assert words.measure_ease([tmp_path / "plain"]) == pytest.approx(206.835 - 1.015 * 8 / 2 - 84.6 * 8 / 8)
    assert words.measure_ease([tmp_path / "hard"]) < 0
