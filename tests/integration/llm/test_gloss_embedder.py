"""The local embedder that reads Chinese: both languages in one space, English as MiniLM has it."""

import time

import numpy as np
import pytest

from recollect.llm.build import has_minilm
from recollect.llm.embedder import GLOSS, Embedder
from recollect.llm.local.encoder import Encoder
from recollect.llm.local.gloss.embedder import load_gloss
from recollect.llm.local.minilm import load_minilm
from support.programs.waiting import heartbeat

pytestmark = [
    pytest.mark.real_model,
    pytest.mark.skipif(not has_minilm(), reason="the local model is not installed"),
]

PAIRS = [
    ("去年冬天我们收养了一只流浪猫。", "家里养了什么宠物？", "Which pet lives with them?"),
    ("我膝盖疼，所以改游泳，不跑步了。", "什么运动适合他的健康？", "What sport suits the user's health?"),
    ("房租每月三号从我的账户扣。", "公寓的钱什么时候付？", "How is the flat paid for?"),
    ("女儿九月份开始上小学。", "他们有孩子吗？", "Do they have children?"),
    ("菜里有虾我就会不舒服。", "有没有食物过敏？", "Is there a food allergy?"),
    ("她指挥市里的交响乐团。", "她做哪种音乐工作？", "Which job in music does she have?"),
    ("暴雨之后地下室被淹了。", "天气造成了什么损失？", "What damage did the weather do?"),
    ("他写固件都用 C 语言。", "他用哪种编程语言？", "Which programming language does he use?"),
]
OTHERS = ["图书馆九点开门。", "今天电车罢工。", "打印机没有墨粉了。", "有人把雨伞忘在这里了。"]


@pytest.fixture(scope="module")
def local() -> Encoder:
    return load_gloss()


async def test_chinese_and_english_questions_find_a_chinese_memory_that_shares_no_word_with_them(local):
    memories = await local.embed([memory for memory, _, _ in PAIRS] + OTHERS)
    for language in (1, 2):
        questions = await local.embed([pair[language] for pair in PAIRS])
        best = (questions @ memories.T).argmax(axis=1)
        assert (best == np.arange(len(PAIRS))).sum() >= len(PAIRS) - 2


async def test_a_text_without_chinese_has_the_vector_of_minilm(local):
    texts = ["Which pet lives with them?", "", "tea " * 400, "안녕하세요", "Ёлка"]
    assert np.array_equal(await local.embed(texts), await load_minilm().embed(texts))


async def test_it_keeps_the_protocol_and_says_what_it_reads(local):
    embedder: Embedder = local
    assert (embedder.model, embedder.dimensions) == (GLOSS, 384)
    vectors = await embedder.embed(["茶", "张伟", "", "\ud800茶", "猫喜欢睡觉。" * 5_000])
    assert vectors.shape == (5, 384)
    assert [embedder.reads(text) for text in ("tea", "安喜欢喝茶", "iPhone 坏了", "")] == [True] * 4
    assert [embedder.reads(text) for text in ("张伟", "안녕하세요", "今日はいい天気ですね")] == [False] * 3


async def test_long_texts_are_glossed_apart_from_the_event_loop(local):
    worked = time.process_time()
    async with heartbeat() as gaps:
        await local.embed([f"{'她指挥市里的交响乐团。' * 30}{number}" for number in range(64)])
    assert max(gaps) < (time.process_time() - worked) / 4
