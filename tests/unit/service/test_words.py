"""The command line speaks the language of the locale, and every text of the table is one that it says."""

from __future__ import annotations

import string
from pathlib import Path

import pytest

from recollect import wiring
from recollect.doors import greeting
from recollect.doors.greeting import CHINESE, GREETING, translate
from recollect.models.agents import NOTHING_NEW, NOTHING_THERE

SOURCES = "".join(page.read_text(encoding="utf-8") for page in Path(greeting.__file__).with_name("cli").rglob("*.py"))
SOURCES += Path(wiring.__file__).read_text(encoding="utf-8")
ELSEWHERE = {GREETING, NOTHING_THERE, NOTHING_NEW}
"""What the command line says in the words of others."""


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("text", CHINESE, ids=lambda text: text[:40])
def test_every_text_is_said_and_keeps_its_values(text):
    assert text in ELSEWHERE or text in SOURCES
    assert places(CHINESE[text]) == places(text)


@pytest.mark.parametrize(
    ("locale", "said"),
    [
        ({}, "nothing found"),
        ({"LANG": "en_GB.UTF-8"}, "nothing found"),
        ({"LANG": "zh_CN.UTF-8"}, "没有找到"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "nothing found"),
        ({"LANG": "C", "LC_ALL": "zh_TW"}, "没有找到"),
        ({"LANG": "C", "LC_MESSAGES": "zh_CN"}, "没有找到"),
        ({"LANG": "zh_CN", "LC_ALL": ""}, "没有找到"),
    ],
)
def test_the_locale_chooses_the_language(monkeypatch, locale, said):
    for name in greeting.LOCALE:
        monkeypatch.delenv(name, raising=False)
    for name, value in locale.items():
        monkeypatch.setenv(name, value)
    assert translate("nothing found") == said
    assert translate("what is in no table: {what}", what="{x}") == "what is in no table: {x}"
