"""Names of any script are compared in one form, and their likeness is computed as the database does."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.text.names import MAX_KEY_LENGTH, normalise_predicate, normalize_name, similarity, trigrams
from recollect.core.text.variants import fold_variants

TEXTS = st.text(st.characters(codec=None), max_size=40)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Maria Lopez", "maria lopez"),
        ("  Maria \t LOPEZ ", "maria lopez"),
        ("Maria's", "maria"),
        ("Maria’s.", "maria"),
        ("James'", "james"),
        ("Ann's brother", "ann's brother"),
        ("“Oak Hill College”,", "oak hill college"),
        ("Ｊａｎｅ", "jane"),
        ("Straße", "strasse"),
        ("李雷", "李雷"),
        ("《赛博王权》", "赛博王权"),
        ("「小雅」", "小雅"),
        ("小 雅", "小 雅"),
        ("Zoë", "zoë"),
        ("Zoe\u0308", "zoë"),
        ("김철수", "김철수"),
        ("C++", "c++"),
        ("C#", "c#"),
        (".NET", ".net"),
        ("AT&T", "at&t"),
        ("Yahoo!", "yahoo"),
        ("\u202eBob\u200b", "bob"),
        ("!!!", "!!!"),
        ("", ""),
        (" \n", ""),
    ],
)
def test_a_name_has_one_form(written, name):
    assert normalize_name(written) == name


@given(st.text(st.characters(codec="ascii"), max_size=40))
def test_a_plain_name_is_normalised_as_any_other(text):
    # With a sign that is not shown, a name takes the long way.
    assert normalize_name(text) == normalize_name("\u200b" + text)


@given(TEXTS)
def test_the_form_of_a_form_is_itself(text):
    assert normalize_name(normalize_name(text)) == normalize_name(text)
    assert normalise_predicate(normalise_predicate(text)) == normalise_predicate(text)


@given(TEXTS)
def test_a_name_never_loses_all_its_letters(text):
    assert bool(normalize_name(text)) >= any(map(str.isalnum, text))


@given(st.text(st.characters(categories=["Lo"]), min_size=1, max_size=12))
def test_letters_without_case_are_all_kept(name):
    kept = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    assert normalize_name(name) == fold_variants(kept)


def test_a_form_is_bounded():
    assert len(normalize_name("ab " * 10_000)) <= MAX_KEY_LENGTH


@pytest.mark.parametrize("written", ["works at", "WORKS_AT", "works-at", "worksAt", " Works  at. ", "Works__At"])
def test_a_predicate_has_one_form_however_it_is_joined(written):
    assert normalise_predicate(written) == "works at"


def test_predicates_of_any_script_stay_apart():
    assert normalise_predicate("喜欢") == "喜欢"
    assert normalise_predicate("喜欢") != normalise_predicate("讨厌")


def test_trigrams_are_padded_word_by_word():
    assert trigrams("word") == {"  w", " wo", "wor", "ord", "rd "}
    assert trigrams("A b") == {"  a", " a ", "  b", " b "}
    assert trigrams("李雷") == {"  李", " 李雷", "李雷 "}
    assert trigrams("- !") == frozenset()


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        # Read from PostgreSQL 18.6 with pg_trgm, encoding UTF8, locale C.UTF-8.
        ("李雷", "李雷", 1.0),
        ("李雷", "李磊", 0.2),
        ("陈晓明", "陈晓红", 0.33333334),
        ("清华", "清华大学", 0.33333334),
        ("word", "two words", 0.36363637),
        ("c++", "c", 1.0),
        ("maria lopez", "maria lopes", 0.71428573),
        ("ñandú", "nandu", 0.09090909),
        ("", "a", 0.0),
        ("हिन्दी", "हिन्दी", 1.0),
        ("a²", "a2", 0.25),
    ],
)
def test_likeness_is_what_postgresql_says(one, other, expected):
    assert similarity(one, other) == pytest.approx(expected, abs=1e-7)


@given(TEXTS, TEXTS)
def test_likeness_is_symmetric_and_bounded(one, other):
    assert similarity(one, other) == similarity(other, one)
    assert 0 <= similarity(one, other) <= 1
    assert similarity(one, one) == (1.0 if trigrams(one) else 0.0)
