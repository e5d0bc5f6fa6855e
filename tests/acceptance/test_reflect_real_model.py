"""Reflection with a real, very small model: what it says is of no worth, but every part must fit the next."""

from __future__ import annotations

import pytest

from recollect.errors import ChatModelError
from recollect.llm.openai.chat import ChatEndpoint, OpenAIChatModel
from recollect.models.memories import Kind
from recollect.wiring import connected
from support.models.chat_server import MODEL, find_weights, serving_chat
from support.service.made_settings import make_settings

EVENTS = ("Ann waters the plants in the kitchen", "Ann buys seeds at the market", "Bob repairs the garden fence")
MORE = ("Ann reads a book about gardens", "Bob paints the fence", "Ann plants beans")
ANSWER_TOKENS = 400


@pytest.mark.real_model
@pytest.mark.slow
@pytest.mark.skipif(find_weights() is None, reason="the weights of the small chat model are not installed")
async def test_a_real_model_reflects_and_leaves_thoughts_with_evidence_or_nothing(addresses, embedder):
    with serving_chat() as server:
        endpoint = ChatEndpoint(server.url, MODEL, seconds=240, characters=600, answer_tokens=ANSWER_TOKENS)
        chat = OpenAIChatModel(endpoint)
        async with connected(
            make_settings(embedder="fake", embedding__wait_timeout_seconds=10), addresses, embedder, chat
        ) as recollect:
            mind = await recollect.mind("ada", "ann")
            await mind.remember(EVENTS)
            reflection = await reflect_patiently(mind, chat)
            memories = {memory.id: memory for memory in (await mind.list(limit=200)).memories}
        await chat.close()
    thoughts = [memory for memory in memories.values() if memory.kind is Kind.THOUGHT]
    assert [thought.id for thought in thoughts] == [receipt.id for receipt in reflection.thoughts]
    assert 1 <= len(reflection.questions) <= 3
    assert 1 <= len(thoughts) <= 5 * len(reflection.questions)
    for thought in thoughts:
        assert thought.content.strip()
        assert 1 <= thought.importance <= 10
        assert 1 <= len(thought.evidence) == len(set(thought.evidence))
        assert all(memories[source].kind is Kind.EVENT for source in thought.evidence)
        assert thought.depth == 1
    assert chat.total.requests >= 1 + len(reflection.questions)
    assert chat.total.prompt_tokens > 100 * chat.total.requests
    assert 0 < chat.total.completion_tokens <= ANSWER_TOKENS * chat.total.requests


async def reflect_patiently(mind, chat):
    """Let so small a model have another try, with one event more; whatever it said before must have left no trace."""
    for number, event in enumerate(MORE, start=len(EVENTS)):
        try:
            return await mind.reflect()
        except ChatModelError as problem:
            print(problem, chat.total)
            assert problem.answered, problem
            assert len((await mind.list()).memories) == number
            assert (await mind.overview()).unreflected_memories == number
        await mind.remember(event)
    return await mind.reflect()
