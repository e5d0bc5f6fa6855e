"""The analyser finds what a reader would find, in every script, and weighs it as BM25 does."""

from __future__ import annotations

import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
import Stemmer
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.core.text.keywords import normalise_keyword
from recollect.core.text.terms import (
    MAX_CUE_TERMS,
    MAX_WORD_LENGTH,
    SLOTS,
    analyse,
    analyse_cue,
    average_length,
    hash_term,
    indexed_text,
    inverse_frequency,
    script_of,
    slot_of,
    term_position,
    term_weights,
)
from recollect.models.recall import Script


def finds(cue: str, text: str) -> bool:
    return not set(analyse_cue(cue)).isdisjoint(analyse(text))


def test_english_words_are_folded_stemmed_and_freed_of_stop_words():
    assert analyse("The Dogs were RUNNING, and a dog ran.") == ["dog", "were", "run", "dog", "ran"]


def test_repetition_is_kept_for_the_weight():
    assert analyse("tea, tea and tea").count("tea") == 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Caroline's", ["carolin"]),
        ("Caroline’s", ["carolin"]),
        ("I don't", ["i"]),
        ("it's", []),
        ("O'Brien", ["obrien"]),
        ("'quoted'", ["quot"]),
        ("snake_case", ["snake", "case"]),
        ("10:30 on 2024-05-07", ["10", "30", "2024", "05", "07"]),
    ],
)
def test_apostrophes_and_joints(text, expected):
    assert analyse(text) == expected


def test_chinese_becomes_characters_and_pairs_without_lone_stop_characters():
    assert analyse("我的家") == ["我", "家", "我的", "的家"]


def test_script_change_splits_words():
    assert analyse("用Python写代码3天") == ["用", "python", "写", "代", "码", "写代", "代码", "3", "天"]


@pytest.mark.parametrize(
    ("cue", "text"),
    [
        ("张伟", "张伟是一位资深软件工程师，在腾讯工作了五年"),
        ("张伟在哪里工作？", "张伟是一位资深软件工程师，在腾讯工作了五年"),
        ("ＰＹＴＨＯＮ", "she writes python"),
        ("running shoes", "He bought a shoe"),
        ("cafe", "Café de Flore"),
        ("CAFÉ", "a cafe"),
        ("Cafe\u0301", "café"),
        ("naïve Zoë", "zoe called"),
        ("ｶﾀｶﾅ", "カタカナを書く"),
        ("東京", "私は東京に住んでいます"),
        ("서울", "그는 서울에 산다"),
        ("Москва", "МОСКВА зимой"),
        ("Αθήνα", "ΑΘΉΝΑ"),
        ("straße", "STRASSE 5"),
        ("हिन्दी", "वह हिन्दी बोलता है"),
        ("กรุงเทพ", "เขาอยู่กรุงเทพมหานคร"),
        ("𠮷野家", "昨天在𠮷野家吃饭"),
        ("Who", "The Who played in Leeds"),
        ("谁", "谁来了"),
    ],
)
def test_cue_finds_text(cue, text):
    assert finds(cue, text)


@pytest.mark.parametrize(("cue", "text"), [("hindi", "हिन्दी"), ("什么是茶", "为什么"), ("what is tea", "what a day")])
def test_cue_does_not_find_text(cue, text):
    assert not finds(cue, text)


def test_marks_do_not_tear_words_apart():
    assert analyse("हिन्दी") == ["हिन्दी"]
    assert len(analyse("وَلَد")) == 1


@pytest.mark.parametrize("text", ["", "   ", "😀 🎉!!! …", "——。，、「」", "_ _", "\x00\ufffd\u200b", "\ud800"])
def test_nothing_to_find_gives_no_terms(text):
    assert analyse(text) == []
    assert analyse_cue(text) == []


def test_overlong_words_are_cut():
    assert {len(term) for term in analyse("x" * 5000 + " " + "ж" * 5000)} == {MAX_WORD_LENGTH}


def test_question_words_leave_only_the_cue():
    assert analyse_cue("What did Caroline do when she was in Paris?") == ["carolin", "pari"]
    assert "what" in analyse("what")
    assert analyse_cue("张伟什么时候去了北京？") == [
        "张",
        "伟",
        "张伟",
        "去",
        "北",
        "京",
        "去了",
        "了北",
        "北京",
    ]
    assert "几乎" in analyse_cue("几乎")


@pytest.mark.parametrize("cue", ["when", "什么", "为什么呢", "who what"])
def test_cue_of_question_words_alone_keeps_them(cue):
    assert analyse_cue(cue)
    assert set(analyse_cue(cue)) == set(analyse(cue))


def test_cue_terms_are_distinct_in_order_of_appearance():
    assert analyse_cue("tea milk tea sugar milk") == ["tea", "milk", "sugar"]


def test_long_cue_keeps_its_end():
    words = [f"word{number}" for number in range(MAX_CUE_TERMS + 5)]
    assert analyse_cue(" ".join(words)) == words[5:]


@given(st.text())
@example("İstanbul ǰ ŉ ﬁ")
def test_any_text_gives_storable_terms(text):
    for term in analyse(text):
        assert term
        assert 1 <= slot_of(term) <= SLOTS
        assert len(term) <= MAX_WORD_LENGTH


@given(st.text())
def test_cue_looks_for_nothing_that_its_own_text_lacks_but_pairs(text):
    looked_for = analyse_cue(text)
    assert len(looked_for) == len(set(looked_for)) <= MAX_CUE_TERMS
    assert set(looked_for) <= set(analyse(text))


def test_threads_do_not_disturb_each_other_in_the_stemmer():
    words = [f"{root}{number:x}{ending}" for number in range(300) for root in "pq" for ending in ("nesses", "fully")]
    stemmer = Stemmer.Stemmer("english")
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(analyse, words, chunksize=1)) == [[stemmer.stemWord(word)] for word in words]


def test_weigh_is_bm25():
    weights = term_weights(Counter(["tea", "tea", "milk"]), 3.0)
    assert weights == pytest.approx({"tea": 2 * 2.2 / 3.2, "milk": 1.0})


def test_weight_falls_with_length_and_rises_with_count():
    assert term_weights({"tea": 1, "x": 20}, 10.0)["tea"] < term_weights({"tea": 1, "x": 1}, 10.0)["tea"]
    assert term_weights({"tea": 1, "x": 1}, 10.0)["tea"] < term_weights({"tea": 2}, 10.0)["tea"] < 2.2
    assert term_weights({}, 10.0) == {}


def test_average_length_starts_at_the_prior_and_follows_the_scope():
    assert average_length(0, 0) == 24
    assert average_length(100, 1) == pytest.approx(340 / 11)
    assert average_length(10_000_000, 100_000) == pytest.approx(100, rel=0.01)


def test_inverse_frequency_is_the_textbook_formula():
    assert inverse_frequency(100, 3) == pytest.approx(math.log(1 + 97.5 / 3.5))


@given(st.integers(0, 10**9), st.floats(0, 1e9), st.floats(0, 1e9))
def test_inverse_frequency_never_rises_nor_sinks_below_zero(count, few, many):
    few, many = sorted((few, many))
    assert inverse_frequency(count, few) >= inverse_frequency(count, many) > 0


def test_hash_is_stable_signed_and_bound_to_the_scope():
    assert hash_term(1, "tea") == 5879945544314700944
    assert hash_term(1, "tea") != hash_term(2, "tea")
    assert {hash_term(number, "tea") > 0 for number in range(9)} == {True, False}
    assert all(-(2**63) <= hash_term(2**63 - 1, str(number)) < 2**63 for number in range(99))


def test_the_terms_of_a_scope_lie_together_in_an_index():
    hashed = sorted(
        (hash_term(scope_id, word), scope_id) for scope_id in range(1, 51) for word in ("tea", "cup", "pot")
    )
    assert [scope_id for _, scope_id in hashed[::3]] == [scope_id for _, scope_id in hashed[2::3]]


def test_terms_of_one_scope_rarely_share_a_hash():
    """36 bits: of 100,000 terms 0.07 pairs are to be expected."""
    assert len({hash_term(7, str(number)) for number in range(100_000)}) >= 99_999


@given(st.integers(-(2**63), 2**63 - 1))
@example(-1)
@example(999_999_998)
def test_slot_fits_a_sparse_vector(term_hash):
    assert 1 <= term_position(term_hash) <= SLOTS < 1_000_000_000


def test_speaker_is_indexed_with_the_content():
    assert indexed_text("Ann", "hello") == "Ann: hello"
    assert indexed_text("", "hello") == "hello"


@pytest.mark.parametrize(
    ("raw", "filed"),
    [
        ("Coffee", "coffee"),
        ("  Green \t tea\n", "green tea"),
        ("maze:Hobbs Cafe:Counter", "counter"),
        ("地点：咖啡馆", "咖啡馆"),
        ("ＴＥＡ", "tea"),
        ("tea:", "tea"),
        (" : ", ""),
        ("", ""),
    ],
)
def test_keywords_have_one_form(raw, filed):
    assert normalise_keyword(raw) == filed


@given(st.text())
def test_filing_a_filed_keyword_changes_no_space_or_colon(text):
    filed = normalise_keyword(text)
    assert ":" not in filed
    assert filed == " ".join(filed.split())


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("", Script.WORDS),
        ("123 😀", Script.WORDS),
        ("hello", Script.WORDS),
        ("Привет, мир", Script.WORDS),
        ("你好", Script.CJK),
        ("用Python写代码", Script.CJK),
        ("こんにちは", Script.CJK),
        ("안녕하세요", Script.CJK),
        ("ｶﾀｶﾅ", Script.CJK),
        ("She wrote 你好 on the whiteboard this morning", Script.WORDS),
        ("𠮷𠮷", Script.CJK),
    ],
)
def test_script_of(text, script):
    assert script_of(text) is script
