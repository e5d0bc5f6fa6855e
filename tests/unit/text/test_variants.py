"""Traditional, simplified and Japanese forms of a character are one, and so are widths."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.dates.find import find_periods
from recollect.core.recall.cues import find_asked, find_keywords, find_terms
from recollect.core.recall.features import detect_traits
from recollect.core.text import variants
from recollect.core.text.keywords import normalise_keyword
from recollect.core.text.names import normalize_name
from recollect.core.text.terms import analyse, analyse_cue
from recollect.core.text.variants import SHINJITAI, fold_characters, fold_variants, load_table
from recollect.errors import SetupError
from recollect.loading import read_data

NOW = datetime(2026, 5, 13, tzinfo=UTC)
TEXTS = st.text(st.characters(codec=None), max_size=40)
HAN = st.text(st.sampled_from([*map(chr, load_table()), *"我们在家ｶﾞＡ，…\uf9d8\u3000"]), max_size=40)


@pytest.mark.parametrize(
    ("written", "folded"),
    [
        ("圖書館", "图书馆"),
        ("図書館", "图书馆"),
        ("戰線", "战线"),
        ("什麼時候", "什么时候"),
        ("頭髮後面", "头发后面"),
        ("桜の気", "樱の气"),
        ("産戸", "产户"),
        ("plain English", "plain English"),
    ],
)
def test_variants_of_a_character_are_one(written, folded):
    assert fold_variants(written) == folded


@pytest.mark.parametrize("character", ["乾", "像", "芸", "欠", "浜", "予", "沈"])
def test_a_character_that_is_also_another_one_stays(character):
    assert fold_variants(character) == character


@given(TEXTS | HAN)
def test_folding_variants_keeps_every_position_and_ends(text):
    folded = fold_variants(text)
    assert len(folded) == len(text)
    assert fold_variants(folded) == folded


@given(TEXTS | HAN)
def test_folding_is_normalising_and_then_folding_variants(text):
    folded = fold_characters(text)
    assert folded == fold_variants(unicodedata.normalize("NFKC", text))
    assert fold_characters(folded) == folded


def test_no_target_of_the_table_is_folded_again():
    table = load_table()
    assert len(table) > 4_000
    assert not {ord(target) for target in table.values()} & table.keys()
    assert all(len(target) == 1 for target in table.values())


@pytest.mark.parametrize("form", [analyse, analyse_cue, normalise_keyword, normalize_name, find_keywords, find_terms])
def test_all_that_is_compared_is_folded(form):
    assert form("李雷在圖書館讀書") == form("李雷在图书馆读书")
    assert form("ＯＫ圖書館") == form("OK图书馆")


def test_what_a_text_asks_and_tells_does_not_depend_on_its_script():
    assert find_asked("什麼時候開會？") == find_asked("什么时候开会？") != frozenset()
    assert detect_traits("後天兩個人來") == detect_traits("后天两个人来") != 0
    traditional, simplified = (find_periods(text, NOW, UTC) for text in ("上週三", "上周三"))
    assert [(each.start, each.end) for each in traditional] == [(each.start, each.end) for each in simplified] != []


def test_a_name_of_ones_own_is_left_out_in_either_script():
    assert find_terms("馮浩然去了圖書館", ["冯浩然"]) == find_terms("去了图书馆")


def test_another_table_is_refused():
    with pytest.raises(SetupError, match="is not the one that Recollect pins"):
        read_data(variants.PACKAGE, SHINJITAI[0], "0" * 64, variants.EXTRA)


@pytest.mark.parametrize(("package", "file"), [("no_such_package", "a.txt"), (variants.PACKAGE, "dicts/none.txt")])
def test_a_missing_table_says_what_to_install(package, file):
    with pytest.raises(SetupError, match=r"pip install 'recollect-memory\[engine\]'"):
        read_data(package, file, "", variants.EXTRA)
