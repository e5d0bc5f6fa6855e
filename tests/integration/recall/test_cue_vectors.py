"""Memories and cues are embedded in two ways, for models that were trained with a prefix for each."""

from recollect.llm.embedder import TracedEmbedder
from recollect.llm.fake import FakeEmbedder
from recollect.wiring import connected
from support.service.made_settings import make_settings


class NotingEmbedder(FakeEmbedder):
    """Note what is embedded as a cue, and what as a memory."""

    def __init__(self):
        super().__init__()
        self.cues, self.memories = [], []

    async def embed(self, texts):
        self.memories += texts
        return await super().embed(texts)

    async def embed_cues(self, texts):
        self.cues += texts
        return await FakeEmbedder().embed(texts)


async def test_a_recall_embeds_its_cue_as_a_cue(addresses):
    embedder = NotingEmbedder()
    async with connected(
        make_settings(embedding__wait_timeout_seconds=30), addresses, TracedEmbedder(embedder)
    ) as recollect:
        mind = await recollect.mind("ada", "li")
        await mind.remember("Li grows tomatoes.")
        found = await mind.recall("What does Li grow?")
    assert found.methods["vector"] == "exact"
    assert embedder.cues == ["What does Li grow?"]
    assert embedder.memories == ["Li grows tomatoes."]
