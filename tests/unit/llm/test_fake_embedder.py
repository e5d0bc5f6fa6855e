"""The fake embedder is stable and can be switched off; the check of vectors refuses bad rows."""

import asyncio

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import EmbedderError
from recollect.llm.embedder import Embedder, check_vectors
from recollect.llm.fake import FakeEmbedder


async def test_vectors_are_stable_and_of_unit_length():
    embedder: Embedder = FakeEmbedder()
    texts = ["Ann likes tea", "安喜欢喝茶", "", "?!", "x"]
    first, second = await embedder.embed(texts), await FakeEmbedder().embed(texts)
    assert first.shape == (5, embedder.dimensions)
    assert first.dtype == np.float32
    assert np.array_equal(first, second)
    assert np.allclose(np.linalg.norm(first, axis=1), 1, atol=1e-6)
    assert embedder.reads("安喜欢喝茶")


async def test_it_is_stable_across_processes():
    vector = (await FakeEmbedder(8).embed(["tea"]))[0]
    assert vector.tolist() == pytest.approx([0.948664, 0, 0.316221, 0, 0, 0, -0.006324, 0], abs=1e-5)


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("Ann likes green tea", "Does Ann drink green tea?", "The server ran out of disk space"),
        ("安喜欢喝绿茶", "安常喝绿茶吗", "服务器磁盘满了"),
    ],
)
async def test_texts_that_share_words_are_nearer(text, near, far):
    vectors = await FakeEmbedder().embed([text, near, far])
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2


async def test_no_texts_give_no_rows():
    assert (await FakeEmbedder(32).embed([])).shape == (0, 32)


async def test_an_outage_can_be_switched_on_and_off():
    embedder = FakeEmbedder()
    embedder.fail()
    with pytest.raises(EmbedderError) as caught:
        await embedder.embed(["a"])
    assert not caught.value.lasting
    embedder.fail(lasting=True)
    with pytest.raises(EmbedderError) as caught:
        await embedder.embed(["a"])
    assert caught.value.lasting
    embedder.recover()
    assert (await embedder.embed(["a"])).shape == (1, 64)
    assert embedder.calls == 3


async def test_a_delay_can_be_switched_on():
    embedder = FakeEmbedder()
    embedder.delay_seconds = 5.0
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(embedder.embed(["a"]), 0.02)


@given(st.lists(st.text(), max_size=4))
def test_any_text_gets_a_unit_vector(texts):
    vectors = asyncio.run(FakeEmbedder(16).embed(texts))
    assert vectors.shape == (len(texts), 16)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_rows_are_brought_to_unit_length():
    assert check_vectors([[3.0, 4.0]], 1, 2).tolist() == [[pytest.approx(0.6), pytest.approx(0.8)]]
    assert check_vectors([[1e17, 0.0]], 1, 2).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(
    "rows",
    [
        [[1.0, float("nan")]],
        [[1.0, float("inf")]],
        [[0.0, 0.0]],
        [[1e-7, 0.0]],
        [[1e18, 0.0]],
        [[1.0]],
        [[1.0, 0.0], [1.0, 0.0]],
        [],
        [[1.0, 0.0], [1.0]],
        [["a", "b"]],
        [[None, 1.0]],
        [None],
        [[10**400, 1]],
    ],
)
def test_unusable_rows_are_refused(rows):
    with pytest.raises(EmbedderError) as caught:
        check_vectors(rows, 1, 2)
    assert caught.value.lasting
