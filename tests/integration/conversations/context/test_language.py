"""The words around memories are in the language of the agent, or of the question."""

from __future__ import annotations

import pytest

from recollect.core.conversations.prompt_texts import CHINESE, ENGLISH
from recollect.errors import InvalidInputError
from recollect.models.agents import Profile
from recollect.models.memories import Kind, NewMemory


@pytest.fixture
async def conversation(mind):
    await mind.remember(["张伟对花生过敏。 Li eats no peanuts.", NewMemory("花生很贵。", Kind.THOUGHT)])
    [kept] = await mind.remember("Peanuts 花生 are not allowed here.")
    await mind.update(kept.id, pinned=True)
    conversation = mind.conversation("dinner")
    await conversation.append("今晚一起做饭吧？")
    await conversation.update(close_segment=True)
    return conversation


async def test_a_prompt_speaks_the_language_of_its_question(recollect, mind, conversation):
    await recollect.work(until_empty=True)
    made = await conversation.context("能放花生吗？")
    assert made.block.startswith(f"{CHINESE.heading}\n<memories>\n{CHINESE.summary}")
    assert "始终牢记：\n" in made.block
    assert "推断：\n" in made.block
    assert not [word for word in ("Relevant", "Summary", "Always", "Insights:", "Events:") if word in made.block]
    assert made.spending.total <= made.spending.budget
    english = await conversation.context("May peanuts go in?")
    assert english.block.startswith(f"{ENGLISH.heading}\n<memories>\n{ENGLISH.summary}")
    assert "始终牢记" not in english.block
    block = await mind.blocks.show("能放花生吗？")
    assert block.text.startswith(f"{CHINESE.heading}\n<memories>\n始终牢记：\n")


@pytest.mark.parametrize(("language", "wording"), [("zh", CHINESE), ("en", ENGLISH)])
async def test_a_prompt_speaks_the_language_of_its_agent(mind, conversation, language, wording):
    await mind.set_profile(Profile(language=language))
    for question in ("能放花生吗？", "May peanuts go in?"):
        assert (await conversation.context(question)).block.startswith(wording.heading)
        assert (await mind.blocks.show(question)).text.startswith(wording.heading)


async def test_no_budget_is_exceeded_in_chinese(mind, conversation):
    for budget in range(60, 200, 7):
        made = await conversation.context("能放花生吗？", budget)
        assert made.spending.total <= budget
        assert (await mind.blocks.show("花生", budget)).tokens <= budget


async def test_other_languages_are_refused(mind, http):
    with pytest.raises(InvalidInputError, match="language"):
        await mind.set_profile(Profile(language="fr"))
    body = {"agent": "ada", "language": "zh"}
    assert (await http.put("/v1/profile", json=body)).json()["language"] == "zh"
    assert (await http.put("/v1/profile", json=body | {"language": "fr"})).status_code == 422
    assert (await mind.profile()).language == "zh"
