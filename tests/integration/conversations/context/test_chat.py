"""Chatting in a terminal and answering by a chat model: scripted lines, a scripted endpoint, and what is appended."""

from __future__ import annotations

import json
import re

import pytest

from recollect.errors import ChatModelError, ForbiddenError, InvalidInputError, NotFoundError
from recollect.models.conversations import HistoryOptions, NewMessage
from recollect.models.memories import Role
from recollect.models.service import Right
from recollect.settings import Settings
from recollect.verbs.conversations.chat import AssistantReply
from recollect.wiring import connected
from support.models import scripted_chat
from support.models.fake_chat import FakeChatModel
from support.programs import command_line
from support.programs.command_line import settings_of
from support.service.accesses import with_access


@pytest.fixture
def chat(addresses):
    """Chat with this test's own database, line by line, with a chat endpoint if a URL is given."""

    def run_chat(*lines, options=(), url="", status=0):
        endpoint = {"chat_url": url, "chat_model": "scripted"} if url else {}
        settings = settings_of(addresses, **endpoint) | {"COLUMNS": "160"}
        typed = "".join(f"{line}\n" for line in lines)
        ended = command_line.call("chat", "--agent", "ada", *options, settings=settings, typed=typed)
        assert ended.code == status, ended.said
        return ended.said

    return run_chat


def test_a_chat_without_a_model_is_answered_by_hand(chat):
    first = chat("My cat is called Pascal.", "A fine name.", "/quit", "never read")
    assert "RECOLLECT_CHAT_URL" in first
    assert "no history; 0 memories; no summary" in first
    assert "never read" not in first
    second = chat("What is my cat called?", "", "/history", options=("--budget", "500"))
    assert re.search(r"history +│ 1\d +│ █+ ", second)
    assert re.search(r"of 500 tokens, o200k_base", second)
    assert "1 turn of history, all of the thread; 0 memories" in second
    shown = second[second.index("you> /history") :]
    assert "you: My cat is called Pascal.\nassistant: A fine name.\nyou: What is my cat called?" in shown
    # The line that was left without an answer is the same question still.
    third = chat("What is my cat called?", "Pascal.", "/history", "/leaves")
    assert third.count("you: What is my cat called?") == 1
    assert "you: What is my cat called?\nassistant: Pascal." in third
    assert re.search(r"4 +│ assistant +│ .+ │ Pascal\.", third)


def test_what_was_said_in_one_conversation_is_recalled_in_another(chat):
    chat("My cat is called Pascal.", "A fine name.", options=("--conversation", "first", "--user", "li"))
    other = chat("What is my cat called?", "", options=("--conversation", "second", "--user", "li"))
    assert re.search(r"│ 1\.000 │ .+ │ My cat is called Pascal\. +│\n.+│ (text|vector) \d\.\d+ ", other)
    assert "no history; 2 memories; no summary" in other
    assert "0 memories" in chat("What is my cat called?", "", options=("--conversation", "second"))


def test_an_error_ends_a_chat_that_comes_from_a_pipe(chat):
    lines = ("/leaves", "/history", "/nonsense", "Too long for that", "an answer, not a question")
    said = chat(*lines, options=("--budget", "5"), status=1)
    assert "not a question" not in said
    assert said.count("nothing was said yet") == 2
    assert said.count("/quit: exit") == 2
    assert "invalid_input: budget too small: the system prompt and the message need" in said
    assert "Traceback" not in said


def test_a_conversation_that_cannot_be_is_refused_before_the_first_word(chat):
    assert "invalid_input: conversation must be" in chat("Hello", options=("--conversation", "旅行"), status=1)


def test_a_chat_model_answers_and_the_turn_is_appended(chat, monkeypatch):
    monkeypatch.setitem(scripted_chat.ANSWERS, "AssistantReply", {"text": "It is [bold] Pascal."})
    with scripted_chat.chatting() as url:
        said = chat("What is my cat called?", "/history", url=url)
    assert "assistant> It is [bold] Pascal." in said
    assert "you: What is my cat called?\nassistant: It is [bold] Pascal." in said


@pytest.fixture
async def model():
    return FakeChatModel({AssistantReply: AssistantReply(text="\x00 Pascal. ")})


@pytest.fixture
async def conversation(addresses, embedder, model):
    async with connected(Settings(embedder="fake"), addresses, embedder, model) as running:
        yield (await running.mind("ada", "li")).conversation("c")


async def test_the_model_reads_the_prompt_and_both_messages_are_appended(conversation, model):
    await conversation.append([NewMessage(Role.USER, 'My "cat"\nis Pascal.'), NewMessage(Role.ASSISTANT, "Hello.")])
    shown = []
    reply = await conversation.chat("Its name?", 500, system="Be kind.", report=shown.append)
    assert shown == [reply.context]
    assert reply.answer == "Pascal."
    [prompt] = model.prompts
    sent = json.loads(prompt[prompt.index("[") : prompt.rindex("]") + 1])
    assert sent == [dict(message) for message in reply.context.messages]
    history = await conversation.history(500)
    assert [message.content for message in history.messages][2:] == ["Its name?", "Pascal."]
    assert [message.id for message in history.messages][2:] == [each.id for each in reply.appended]


async def test_a_question_that_waits_gets_its_answer(conversation):
    [asked] = await conversation.append(NewMessage(Role.USER, "Its name?"))
    [answered] = (await conversation.chat("Its name?")).appended
    assert answered.parent == asked.id
    await conversation.append([NewMessage(Role.USER, "Thanks"), NewMessage(Role.ASSISTANT, "Gladly.")])
    branched = (await conversation.chat("Its name, again?", window=HistoryOptions(leaf=answered.id))).appended
    assert [each.parent for each in branched] == [answered.id, branched[0].id]


async def test_question_and_answer_are_appended_together_or_not_at_all(conversation, model):
    model.fail()
    with pytest.raises(ChatModelError):
        await conversation.chat("Its name?")
    model.recover()
    model.script = {AssistantReply: AssistantReply(text=" ")}
    with pytest.raises(ChatModelError, match="returned an empty answer"):
        await conversation.chat("Its name?")
    with pytest.raises(NotFoundError):
        await conversation.history()


async def test_it_takes_a_model_and_the_right_to_write(mind):
    with pytest.raises(InvalidInputError, match="RECOLLECT_CHAT_URL"):
        await mind.conversation("c").chat("hello")
    reader = type(mind.access.caller)(mind.access.caller.tenant_id, frozenset({Right.READ}), "test", 50)
    with pytest.raises(ForbiddenError):
        await with_access(mind, caller=reader).conversation("c").chat("hello")
