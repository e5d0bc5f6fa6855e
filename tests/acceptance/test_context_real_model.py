"""With the real embedder: what was said two hundred turns ago is in the prompt, beside the newest turns."""

from __future__ import annotations

import pytest

from recollect.llm.build import has_minilm
from recollect.llm.local.minilm import load_minilm
from recollect.models.conversations import NewMessage
from recollect.models.memories import Role
from recollect.store.memories.spaces import switch_space
from recollect.wiring import connected, prepare
from support.service.made_settings import make_settings

TURNS = 200
FACTS = {
    "We took in a stray tabby last winter.": "Which pet lives with me?",
    "I get sick whenever a dish has prawns in it.": "Is there a food allergy to mind tonight?",
    "Our daughter starts school in September.": "How many children do I have?",
    "My knees hurt, so I swim instead of jogging.": "Which sport would be healthy for me?",
}
THINGS = (
    "the printer",
    "the tram",
    "the contract",
    "the window",
    "the slides",
    "the invoice",
    "the router",
    "the desk",
)
WISHES = (
    "Please check {} again, case {}.",
    "What did they write about {} in mail {}?",
    "Move {} to slot {}, will you?",
)


@pytest.mark.real_model
@pytest.mark.slow
@pytest.mark.skipif(not has_minilm(), reason="the local model is not installed")
async def test_an_old_fact_comes_back_by_its_meaning_while_the_history_holds_the_newest_turns(addresses):
    embedder = load_minilm()
    await prepare(addresses, embedder)
    async with connected(
        make_settings(embedder="local", embedding__wait_timeout_seconds=60), addresses, embedder
    ) as recollect:
        [space] = [space for space, _ in await recollect.operator.spaces.list() if space.model == embedder.model]
        await switch_space(addresses.owner, space.id)
        conversation = (await recollect.mind("ada", "li")).conversation("c")
        for fact in FACTS:
            await conversation.append([NewMessage(Role.USER, fact), NewMessage(Role.ASSISTANT, "Good to know.")])
        for start in range(0, TURNS, 25):
            await conversation.append(
                [message for number in range(start, start + 25) for message in write_filler(number)]
            )
        for fact, question in FACTS.items():
            context = await conversation.context(question, 1_000)
            print(f"{question} {[hit.memory.content for hit in context.hits[:3]]} {context.spending}")
            assert f"user: {fact}\n" in context.block
            assert [hit.memory.content for hit in context.hits].index(fact) < 3
            assert [message.number for message in context.history.messages][-1] == 2 * (TURNS + len(FACTS))
            assert len(context.history.messages) >= 20
            assert fact not in context.history.text
            assert context.spending.total <= 1_000
    await embedder.close()


def write_filler(number: int) -> list[NewMessage]:
    wish = WISHES[number % len(WISHES)].format(THINGS[number % len(THINGS)], number)
    return [NewMessage(Role.USER, wish), NewMessage(Role.ASSISTANT, f"Done, it is noted as number {number}.")]
