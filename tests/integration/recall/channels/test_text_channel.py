"""Recall by words ranks the same memories the same, however and wherever they were stored."""

from __future__ import annotations

import random

import pytest

from recollect.models.memories import NewMemory
from recollect.models.recall import Cue

WORDS = [f"word{number}" for number in range(400)]
RECORD = "the gastroscopy shows a mild inflammation of the stomach"


def write_texts(count: int, words: int = 40) -> list[str]:
    chance = random.Random(11)
    # A few words are in most texts and most are in few, as in life.
    return [
        " ".join(WORDS[min(int(chance.expovariate(0.02)), len(WORDS) - 1)] for _ in range(words)) for _ in range(count)
    ]


async def test_a_load_weighs_its_first_memories_like_its_last(mind):
    texts = write_texts(2_600, words=120)
    texts[100], texts[2_401] = f"{RECORD} one", f"{RECORD} two"
    ids = await mind.load([NewMemory(text) for text in texts])
    found = await mind.recall(Cue("gastroscopy inflammation", channels=("text",), limit=5, touch=False))
    scores = {hit.memory.id: hit.channels["text"].score for hit in found.hits}
    assert scores[ids[100]] == pytest.approx(scores[ids[2_401]], rel=0.02)


async def test_a_write_counts_itself_in_the_length_it_is_weighed_by(recollect):
    texts = write_texts(50)
    orders = {"forth": texts, "back": texts[::-1]}
    scores = {}
    for agent, order in orders.items():
        mind = await recollect.mind(agent)
        await mind.remember([NewMemory(text) for text in order])
        found = await mind.recall(Cue(texts[7], channels=("text",), limit=50, touch=False))
        scores[agent] = {hit.memory.content: hit.channels["text"].score for hit in found.hits}
    assert scores["forth"] == pytest.approx(scores["back"])


@pytest.mark.parametrize("words", [3, 150], ids=["a short cue", "a piece of a conversation"])
async def test_the_same_memories_rank_the_same_in_every_scope(recollect, words):
    texts = write_texts(1_500)
    cue = Cue(" ".join(random.Random(3).sample(WORDS, words)), channels=("text",), limit=100, touch=False)
    rankings = []
    for agent in ("one", "two", "three"):
        mind = await recollect.mind(agent)
        await mind.load([NewMemory(text) for text in texts])
        found = await mind.recall(cue)
        rankings.append([(hit.memory.content, round(hit.channels["text"].score, 9)) for hit in found.hits])
    assert rankings[0] == rankings[1] == rankings[2]
