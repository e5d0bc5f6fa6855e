"""What is empty: lists without an item and texts without a word are refused at every door, but for answers."""

from __future__ import annotations

import pytest

from recollect.errors import InvalidInputError
from recollect.models.conversations import NewMessage
from recollect.models.memories import Role
from support.programs import command_line

SCOPE = {"agent": "ada", "user": "li"}
BLANK = ["", " ", "\n\t", "\u3000"]


async def test_an_empty_list_is_refused_by_the_library(mind):
    with pytest.raises(InvalidInputError, match="memories must have 1 to 1000 items"):
        await mind.remember([])
    with pytest.raises(InvalidInputError, match="messages must have 1 to 1000 items"):
        await mind.conversation("c").append([])


@pytest.mark.parametrize("blank", BLANK)
async def test_a_blank_text_is_refused_by_the_library(mind, blank):
    with pytest.raises(InvalidInputError, match="content must not be blank"):
        await mind.remember(blank)
    for role in ("user", "system"):
        with pytest.raises(InvalidInputError, match=r"messages\.1 is empty"):
            await mind.conversation("c").append(["fine", {"role": role, "content": blank}])


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/v1/memories", {"memories": []}, "Nothing to remember"),
        ("/v1/memories", {}, "Nothing to remember"),
        ("/v1/memories", {"content": " "}, "content must not be blank"),
        ("/v1/memories", {"memories": [{"content": ""}]}, "This must not be empty"),
        ("/v1/memories", {"memories": [{"content": " "}]}, "content must not be blank"),
        ("/v1/messages", {"messages": []}, "Nothing to append"),
        ("/v1/messages", {"question": "", "answer": ""}, "Nothing to append"),
        ("/v1/messages", {"question": " "}, "messages.0 is empty"),
        ("/v1/messages", {"messages": [{"role": "user", "content": ""}]}, "messages.0 is empty"),
        ("/v1/messages", {"messages": [{"role": "user", "content": " "}]}, "messages.0 is empty"),
    ],
)
async def test_what_is_empty_is_refused_over_http(http, path, body, said):
    conversation = {"conversation": "c"} if "messages" in path else {}
    answer = await http.post(path, json=SCOPE | conversation | body)
    assert answer.status_code == 422
    assert said in answer.text


@pytest.mark.parametrize("blank", BLANK)
async def test_what_is_empty_is_refused_by_the_command_line(addresses, blank):
    settings = command_line.settings_of(addresses)
    assert "content must not be blank" in command_line.run(
        "remember", "--agent", "a", blank, settings=settings, fails=True
    )


async def test_an_answer_without_a_word_stays_an_answer(mind, http):
    """Dify's history tells an answer that is being made, or that failed, by its being empty."""
    await mind.conversation("c").append([NewMessage(Role.USER, "hello"), NewMessage(Role.ASSISTANT, "")])
    messages = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": ""}]
    answer = await http.post("/v1/messages", json=SCOPE | {"conversation": "d", "messages": messages})
    assert answer.status_code == 201
