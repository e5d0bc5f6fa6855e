"""Texts that were embedded lately are not embedded again."""

from __future__ import annotations

import numpy as np

from recollect.llm.embedder import RecentVectors
from recollect.llm.fake import FakeEmbedder


class Counting(FakeEmbedder):
    """Counts what it embeds."""

    def __init__(self, dimensions=64):
        super().__init__(dimensions)
        self.asked = []

    async def embed(self, texts):
        self.asked.append(list(texts))
        return await super().embed(texts)


async def test_only_new_texts_are_embedded_in_batches():
    recent, embedder = RecentVectors(), Counting()
    first = await recent.embed(embedder, ["tea", "yoga", "swim"], 2)
    assert embedder.asked == [["tea", "yoga"], ["swim"]]
    again = await recent.embed(embedder, ["swim", "tea", "index"], 2)
    assert embedder.asked[2:] == [["index"]]
    assert np.array_equal(again["tea"], first["tea"]) and set(again) == {"swim", "tea", "index"}


async def test_the_oldest_go_first_and_models_are_kept_apart():
    recent, embedder = RecentVectors(2), Counting()
    await recent.embed(embedder, ["tea", "yoga"], 9)
    await recent.embed(embedder, ["tea"], 9)
    await recent.embed(embedder, ["swim"], 9)
    await recent.embed(embedder, ["tea", "yoga"], 9)
    assert embedder.asked == [["tea", "yoga"], ["swim"], ["yoga"]]
    other = Counting(32)
    assert other.model != embedder.model
    await recent.embed(other, ["yoga"], 9)
    assert other.asked == [["yoga"]]
