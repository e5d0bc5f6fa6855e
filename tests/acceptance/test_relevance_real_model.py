"""With the real embedder: a Chinese cue that has to do with nothing brings nothing into a prompt, and others do."""

from __future__ import annotations

import pytest

from recollect.llm.build import build_local, has_gloss, has_minilm
from recollect.llm.embedder import GLOSS
from recollect.models.recall import Status
from recollect.settings import Settings
from recollect.store.memories.spaces import switch_space
from recollect.wiring import connected, prepare

MEMORIES = (
    "小王对花生过敏，做菜时不能放。",
    "她上个月从北京搬到了上海，住在浦东。",
    "我们周五晚上一起去看了电影。",
    "他的女儿今年九月上小学。",
    "我每个星期二下班以后去游泳。",
    "爷爷的生日是三月八号。",
)
ANSWERED = {"他搬到哪里去了？": 1, "什么时候去游泳？": 4, "吃饭要注意什么过敏？": 0}
UNANSWERED = ("二加二等于几？", "用Python写一个快速排序。", "圆周率是多少？")


@pytest.mark.real_model
@pytest.mark.skipif(not (has_minilm() and has_gloss()), reason="the local model that reads Chinese is not installed")
async def test_an_unrelated_chinese_cue_brings_nothing(addresses):
    embedder = build_local(GLOSS)
    try:
        await prepare(addresses, embedder)
        async with connected(Settings(embedder="local", embed_wait_seconds=60), addresses, embedder) as recollect:
            [space] = [space for space, _ in await recollect.operator.spaces.list() if space.model == embedder.model]
            await switch_space(addresses.owner, space.id)
            mind = await recollect.mind("ada", "li")
            await mind.remember(list(MEMORIES))
            for cue, place in ANSWERED.items():
                shown = (await mind.blocks.show(cue, 1_000)).text
                assert MEMORIES[place] in shown, cue
            for cue in UNANSWERED:
                assert (await mind.blocks.show(cue, 1_000)).status is Status.NOTHING_RELEVANT, cue
    finally:
        await embedder.close()
