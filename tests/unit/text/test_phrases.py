"""Labels, keywords and summaries without a model: the text's own words, in its own language."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.text.checks import check_line, check_text
from recollect.core.text.phrases import (
    MAX_LABEL_LENGTH,
    distinctive_terms,
    find_keywords,
    label,
    split_sentences,
    summarize,
)
from support.imports.generative_agents import read_json

ENGLISH = [
    "Hi! My dog Rex is sick. The vet, Dr. Lee, said that it is an ear infection.",
    "I'm sorry to hear that. Did Dr. Lee give you medicine for the ear infection?",
    "Yes, ear drops twice a day for ten days. The weather is nice by the way.",
]
CHINESE = [
    "下班后报名了一个数据库架构的在线课程。",
    "课程讲到了数据库的索引优化，终于理解了为什么有些查询那么慢。",
    "天气不错。数据库的索引优化让查询时间从2秒变成了0.1秒！",
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Klaus Mueller is writing a paper at Oak Hill College.", "Oak Hill College"),
        ("Yesterday I met John Smith at the Museum of Modern Art.", "Museum of Modern Art"),
        ("She works for Goldman Sachs.", "Goldman Sachs"),
        ("Did you know? New York never sleeps, and Tom loves New York.", "New York"),
        ("We chose PostgreSQL over MongoDB for the orders service.", "PostgreSQL MongoDB"),
        ("I love playing chess with my grandfather.", "chess grandfather"),
        ("I'm thinking about learning to bake sourdough bread, any tips?", "bake sourdough bread"),
        ("Remember to call Maria's brother on Friday.", "Maria brother"),
        ("中午吃了附近一家餐厅的红烧肉，味道不错，想起小时候妈妈做的红烧肉了。", "红烧肉"),
        ("今晚打算玩《赛博王权》放松一下，这游戏真的太好玩了。", "赛博王权"),
        ("去了一家韩式烤肉店，五花肉和牛肉都很香，吃得有点撑。", "韩式烤肉店"),
        ("我们决定用 PostgreSQL 替换它。", "PostgreSQL"),
        ("東京タワーに行きました。とても楽しかったです。", "東京タワー"),
        ("ok", "ok"),
        ("嗯嗯。", "嗯嗯"),
        ("???", ""),
        ("", ""),
    ],
)
def test_a_label_is_the_most_telling_phrase(text, expected):
    assert label([text]) == expected


def test_a_segment_is_labelled_by_what_comes_back_in_it():
    assert "ear infection" in {phrase.casefold() for phrase in find_keywords(ENGLISH)}
    assert label(CHINESE) in {"数据库", "索引优化"}
    assert {"数据库", "索引优化"} <= set(find_keywords(CHINESE))
    assert not {"数据", "据库", "索引"} & set(find_keywords(CHINESE, 99))


def test_a_summary_is_made_of_whole_sentences_in_their_order():
    summary = summarize(ENGLISH, 150)
    sentences = split_sentences("\n".join(ENGLISH))
    assert "Dr. Lee" in summary
    assert "ear infection" in summary
    assert "Hi!" not in summary
    places = [sentences.index(sentence) for sentence in split_sentences(summary)]
    assert places == sorted(places)
    assert len(summary) <= 150


def test_a_summary_speaks_the_language_of_the_text():
    summary = summarize(CHINESE, 60)
    assert "数据库" in summary
    assert "天气" not in summary
    assert " " not in summary
    assert all(sentence in "".join(CHINESE) for sentence in split_sentences(summary))


def test_a_sentence_that_is_too_long_is_cut():
    assert summarize(["word " * 100], 20) == "word word word word…"
    assert summarize(["红烧肉" * 100], 10) == "红烧肉红烧肉红烧肉…"
    assert summarize(["!?"]) == ""
    assert summarize([]) == ""


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Dr. Lee pays 3.50 euros. Really? Yes!", ["Dr. Lee pays 3.50 euros.", "Really?", "Yes!"]),
        ("今天很累。真的吗？是的！", ["今天很累。", "真的吗？", "是的！"]),
        ("one\ntwo", ["one", "two"]),
        ("He said “no.” Then he left...", ["He said “no.”", "Then he left..."]),
        ("... !!! 。", []),
    ],
)
def test_sentences_end_where_they_end(text, sentences):
    assert split_sentences(text) == sentences


def test_terms_that_tell_a_topic_are_no_fillers():
    assert distinctive_terms("I think that the database is very slow today, don't you?") == ("databas", "slow")
    assert set(distinctive_terms("我今天觉得数据库很慢")) >= {"数据", "据库"}
    assert distinctive_terms("我 也 很 好的 !!!") == ()


@given(st.lists(st.text(max_size=200) | st.sampled_from(ENGLISH + CHINESE), max_size=5), st.integers(1, 300))
def test_whatever_is_said_label_summary_and_keywords_are_within_bounds(texts, longest):
    name = label(texts)
    assert len(name) <= MAX_LABEL_LENGTH
    assert name == name.strip()
    check_text("summary", summarize([text.replace("\0", "") for text in texts], longest), longest)
    assert len(find_keywords(texts)) <= 8
    for keyword in find_keywords([text.replace("\0", "") for text in texts]):
        check_line("keyword", " ".join(keyword.split()), 100)
    assert label(texts) == name


def test_the_chinese_diary_gets_labels_of_its_own_words(shared):
    diary = read_json(shared / "data" / "zereker_memory" / "test_data_complete.json")
    said = [batch["messages"][0]["content"] for batch in diary["conversations"]]
    assert len(said) == 33
    labels = [label([text]) for text in said]
    assert all(2 <= len(name) <= 8 and name in text for name, text in zip(labels, said, strict=True))
    keywords = set().union(*(find_keywords([text]) for text in said))
    named = {"赛博王权", "mark", "红烧肉", "健身房", "凤凰项目", "数据库重构方案", "瑜伽", "茶具", "小雅", "素食主义者"}
    assert named <= keywords
    assert find_keywords(said)[0] in {"mark", "小雅", "赛博王权", "数据库"}
    summary = summarize(said, 200)
    assert 0 < len(summary) <= 200
    assert all(sentence in "".join(said) for sentence in split_sentences(summary))
