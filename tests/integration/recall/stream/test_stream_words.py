"""The stream answers a cue that the embedder cannot read, by words: never with an error alone."""

from __future__ import annotations

import pytest

from recollect.core.text.terms import script_of
from recollect.llm.fake import FakeEmbedder
from recollect.models.agents import Profile
from recollect.models.memories import Kind, NewMemory
from recollect.models.recall import Cue, Script, Status


class LatinEmbedder(FakeEmbedder):
    """An embedder that reads no Chinese, as the small local model."""

    def reads(self, text):
        return script_of(text) is Script.WORDS


@pytest.fixture
def embedder():
    return LatinEmbedder()


UNREAD = "skipped: the embedding model does not support this script"


async def test_a_cue_that_the_embedder_cannot_read_falls_back_to_words(mind):
    await mind.remember(["张伟对花生过敏。", "小李喜欢下棋。", NewMemory("花生很贵。", Kind.CHAT)])
    found = await mind.recall(Cue("谁对花生过敏？", channels=("stream",)))
    assert [hit.memory.content for hit in found.hits][:1] == ["张伟对花生过敏。"]
    assert {hit.memory.kind for hit in found.hits} == {Kind.EVENT}
    assert (found.status, found.methods) == (Status.OK, {"stream": UNREAD, "text": "exact"})
    both = await mind.recall_each([Cue("花生", channels=("stream",)), Cue("peanuts", channels=("stream",))])
    assert [dict(each.methods).keys() for each in both] == [{"stream", "text"}, {"stream"}]


async def test_the_words_are_searched_in_the_kinds_that_the_caller_or_the_agent_wants(mind):
    await mind.remember(["张伟对花生过敏。", NewMemory("花生很贵。", Kind.MESSAGE)])
    asked = Cue("花生", channels=("stream",), kinds=(Kind.MESSAGE,))
    assert [hit.memory.kind for hit in (await mind.recall(asked)).hits] == [Kind.MESSAGE]
    await mind.set_profile(Profile(kinds=(Kind.MESSAGE,)))
    found = await mind.recall(Cue("花生", channels=("stream",)))
    assert [hit.memory.kind for hit in found.hits] == [Kind.MESSAGE]


async def test_other_reasons_and_other_channels_are_as_before(mind, embedder):
    await mind.remember("张伟对花生过敏。")
    vector = await mind.recall(Cue("花生", channels=("vector",)))
    assert (vector.status, vector.methods) == (Status.ERROR, {"vector": UNREAD})
    embedder.fail()
    away = await mind.recall(Cue("peanuts", channels=("stream",)))
    assert (away.status, away.methods.keys()) == (Status.ERROR, {"stream"})
