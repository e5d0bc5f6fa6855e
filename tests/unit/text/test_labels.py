"""Which phrases and sentences of a text are chosen, in which order, and where they end."""

from __future__ import annotations

import pytest

from recollect.core.text.phrases import distinctive_terms, find_keywords, label, summarize

RANKED = [
    ("Sam Lee, Ann.", "Sam Lee", "sam lee, ann"),
    ("I like X Games.", "X Games", "x games"),
    ("Old songs of Green Day Band play.", "Green Day Band", "green day band, songs"),
    ("Acme sells paint, and Bob likes Acme.", "Acme sells paint", "acme, sells paint, bob"),
    ("Marie Curie won prizes. Radium glows; Marie Curie found radium.", "Marie Curie", None),
    ("Tom paints. We saw Tom.", "Tom paints", "tom, paints"),
    ("A Tale of Two Cities was read by Ann.", "Tale of Two Cities", "tale of two cities, ann, read"),
    ("I gave Plan B Corporation the keys.", "Plan B Corporation", "plan b corporation, keys"),
    ("The doctor's advice: don't skip breakfast.", "doctor advice", "doctor advice, skip breakfast"),
    ("Paris. Berlin. Paris again, Berlin again, Paris.", "Paris Berlin", "paris, berlin"),
    ("Swimming, swimming, swimming! Cycling now.", "Swimming Cycling", "swimming, cycling"),
    ("Chess club, chess tournament, grandmaster.", "Chess club", "chess club, chess tournament, grandmaster"),
    ("Violin lessons with Old Town Music School start Monday.", "Old Town Music School", None),
    (
        "quick brown foxes jumped over lazy sleeping dogs while bright yellow parrots sang",
        "quick brown foxes",
        "quick brown foxes, lazy sleeping dogs, bright yellow parrots",
    ),
    ("数据库很慢，数据库重构方案还没写。", "数据库", "数据库, 数据库重构方案"),
    ("我在北京大学学习，北京大学很好。", "北京大学", "北京大学, 北京大学学习"),
    ("周末去爬山，山上的风景很美，爬山很累。", "爬山", "爬山, 山上, 风景"),
    ("他用 Go 写代码，我用 C 写代码，他喜欢 Python。", "Python", "python, 代码"),
    ("《三体》很好看。《流浪地球》也不错，我喜欢流浪地球。", "流浪地球", "流浪地球, 三体"),
    ("小猫在睡觉，小猫咪很可爱，小猫咪爱吃鱼。", "小猫", "小猫, 小猫咪, 小猫咪爱吃鱼, 睡觉, 可爱"),
    ("学习Python和Python框架，用the框架。", "Python", "python, 框架, 学习"),
    ("我的新手机的摄像头很清楚，摄像头的像素很高。", "摄像头", "摄像头, 新手机, 清楚, 像素"),
    ("GPT 模型很强，GPT 训练很贵。", "GPT", "gpt, 模型, 训练"),
]


@pytest.mark.parametrize(("text", "name", "keywords"), RANKED)
def test_the_most_telling_phrases_come_first(text, name, keywords):
    assert label([text]) == name
    if keywords is not None:
        assert find_keywords([text], 99) == tuple(keywords.split(", "))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("It is. I am.", "It is"),
        ("what is it, then!", "what is it, then"),
        ("So, is it me or is it you?", "So, is it me"),
        ("好的，知道了。", "好的知道了"),
        ("茶", "茶"),
    ],
)
def test_a_text_without_telling_words_is_labelled_by_its_beginning(text, name):
    assert label([text]) == name
    assert find_keywords([text]) == ()


def test_texts_are_read_as_lines():
    assert label(["alpha", "beta alpha"]) == "beta alpha"
    assert find_keywords(["alpha", "beta alpha"]) == ("beta alpha", "alpha")
    assert find_keywords(["alpha", "beta alpha"], 1) == ("beta alpha",)


def test_a_single_letter_tells_a_topic_and_a_single_character_does_not():
    assert distinctive_terms("C 茶") == ("c",)


SHORT = "Cats sleep. Dogs bark. Birds sing."


@pytest.mark.parametrize(
    ("longest", "summary"),
    [
        (34, SHORT),
        (33, "Cats sleep. Dogs bark."),
        (22, "Cats sleep. Dogs bark."),
        (21, "Dogs bark."),
        (10, "Dogs bark."),
        (9, "Cats sle…"),
        (1, "…"),
    ],
)
def test_a_summary_holds_what_fits(longest, summary):
    assert summarize([SHORT], longest) == summary


def test_a_summary_has_at_most_five_sentences():
    summary = summarize(["Cats sleep. Dogs bark. Birds sing. Fish swim. Cows moo. Pigs grunt. Bees buzz."])
    assert summary.count(".") == 5


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("Cats sleep. Cats sleep. Dogs bark.", "Cats sleep. Dogs bark."),
        ("It is. I am. Cats sleep.", "Cats sleep."),
    ],
)
def test_a_sentence_that_adds_nothing_is_left_out(text, summary):
    assert summarize([text]) == summary


def test_sentences_are_joined_as_their_language_joins_them():
    assert summarize(["小猫睡觉。小狗叫唤。小鸟唱歌。"], 10) == "小猫睡觉。小狗叫唤。"
    assert summarize(["小猫睡觉。小狗叫唤。小鸟唱歌。"], 9) == "小猫睡觉。"
    assert summarize(["Cats sleep", "Dogs bark"]) == "Cats sleep Dogs bark"
    assert summarize(["?!"]) == ""


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        (
            "The garden has roses and tulips. The garden has tulips. Our neighbour plays trumpet.",
            "The garden has roses and tulips. Our neighbour plays trumpet.",
        ),
        (
            "Apples, pears, plums, cherries and grapes grow here. Well, I think that there is perhaps also some corn.",
            "Apples, pears, plums, cherries and grapes grow here.",
        ),
    ],
)
def test_a_sentence_that_adds_little_is_left_out(text, summary):
    assert summarize([text]) == summary
