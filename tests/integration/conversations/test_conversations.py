"""Conversations on the real store: appending, branching, reading back within a budget."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from recollect.errors import ConflictError, InvalidInputError, NotFoundError
from recollect.models.conversations import LEGACY, HistoryOptions, NewMessage, Part, PartType
from recollect.models.memories import Kind, Role


def user(content, **more):
    return NewMessage(Role.USER, content, **more)


def assistant(content, **more):
    return NewMessage(Role.ASSISTANT, content, **more)


async def test_a_turn_is_appended_and_read_back(mind):
    conversation = mind.conversation("first")
    question, answer = await conversation.append([user("Where does Ada live?"), assistant("In Leuven.")])
    assert (question.number, answer.number, answer.parent) == (1, 2, question.id)
    assert question.tokens == 4 + 5
    history = await conversation.history(100)
    assert [message.content for message in history.messages] == ["Where does Ada live?", "In Leuven."]
    assert history.prompt == (
        {"role": "user", "content": "Where does Ada live?"},
        {"role": "assistant", "content": "In Leuven."},
    )
    assert history.text == "Human: Where does Ada live?\nAssistant: In Leuven."
    assert history.complete
    assert history.exact
    assert history.tokens == question.tokens + answer.tokens


async def test_messages_are_memories(mind):
    conversation = mind.conversation("first")
    await conversation.append([user("My cat is called Pascal.", name="Ada"), assistant("What a fine name.")])
    found = await mind.recall("Pascal the cat", limit=1)
    memory = found.hits[0].memory
    assert (memory.kind, memory.role, memory.conversation, memory.speaker) == (Kind.MESSAGE, Role.USER, "first", "Ada")


async def test_only_whole_turns_that_fit_are_shown(mind):
    conversation = mind.conversation("c")
    for turn in range(5):
        await conversation.append([user(f"question {turn}"), assistant(f"answer {turn}")])
    one_turn = sum(message.tokens for message in (await conversation.history(10_000)).messages[:2])
    history = await conversation.history(2 * one_turn)
    assert [message.content for message in history.messages] == ["question 3", "answer 3", "question 4", "answer 4"]
    assert not history.complete
    assert len((await conversation.history(2 * one_turn - 1)).messages) == 2
    assert len((await conversation.history(0)).messages) == 2


async def test_a_branch_is_chosen_by_its_leaf(mind):
    conversation = mind.conversation("c")
    first = await conversation.append([user("one"), assistant("two")])
    old = await conversation.append([user("three"), assistant("four")])
    new = await conversation.append([user("other three", parent=first[1].id), assistant("other four")])
    newest = await conversation.history(1000)
    assert [message.content for message in newest.messages] == ["one", "two", "other three", "other four"]
    older = await conversation.history(HistoryOptions(1000, leaf=old[1].id))
    assert [message.content for message in older.messages] == ["one", "two", "three", "four"]
    assert [leaf.id for leaf in (await conversation.get()).threads] == [new[1].id, old[1].id]


async def test_a_question_without_an_answer_is_left_out_unless_asked_for(mind):
    conversation = mind.conversation("c")
    await conversation.append([user("one"), assistant("two")])
    await conversation.append(user("three"))
    assert [message.content for message in (await conversation.history(1000)).messages] == ["one", "two"]
    shown = await conversation.history(HistoryOptions(1000, unanswered=True))
    assert [message.content for message in shown.messages] == ["one", "two", "three"]


async def test_messages_from_before_branches_form_a_chain(mind):
    conversation = mind.conversation("c")
    first = await conversation.append([user("one", parent=LEGACY), assistant("two")])
    await conversation.append([user("aside", parent=first[1].id), assistant("said aside")])
    await conversation.append([user("three", parent=LEGACY), assistant("four")])
    history = await conversation.history(1000)
    assert [message.content for message in history.messages] == ["one", "two", "three", "four"]


async def test_the_same_key_appends_once(mind):
    conversation = mind.conversation("c")
    messages = [user("one"), assistant("two")]
    first = await conversation.append(messages, idempotency_key="k")
    assert await conversation.append(messages, idempotency_key="k") == first
    with pytest.raises(ConflictError):
        await conversation.append([user("other")], idempotency_key="k")
    assert (await conversation.get()).message_count == 2


async def test_an_external_id_is_taken_once(mind):
    conversation = mind.conversation("c")
    await conversation.append(user("one", external_id="x"))
    with pytest.raises(ConflictError, match="external_id"):
        await conversation.append(user("two", external_id="x"))
    await mind.conversation("d").append(user("one", external_id="x"))


async def test_what_is_not_there_is_said_so(mind):
    conversation = mind.conversation("c")
    with pytest.raises(NotFoundError):
        await conversation.history(100)
    await conversation.append(user("one"))
    with pytest.raises(NotFoundError, match="leaf"):
        await conversation.history(HistoryOptions(100, leaf=uuid4()))
    with pytest.raises(InvalidInputError, match="parent"):
        await conversation.append(user("two", parent=UUID(int=7)))
    with pytest.raises(InvalidInputError, match="same conversation"):
        other = (await mind.conversation("d").append(user("elsewhere")))[0]
        await conversation.append(user("two", parent=other.id))


async def test_an_answer_may_be_empty_and_parts_are_kept(mind):
    conversation = mind.conversation("c")
    call = Part(PartType.TOOL_CALL, '{"city": "Leuven"}', "weather", call_id="c1")
    result = Part(PartType.TOOL_RESULT, "12 degrees", call_id="c1")
    await conversation.append(
        [
            user("How warm is it?", parts=(Part(PartType.IMAGE, url="https://example.org/a.png"),)),
            NewMessage(Role.ASSISTANT, parts=(call,)),
            NewMessage(Role.TOOL, parts=(result,)),
            assistant("Twelve degrees."),
            user("And tomorrow?"),
            assistant(""),
        ]
    )
    history = await conversation.history(HistoryOptions(1000, images=True))
    assert [prompt["role"] for prompt in history.prompt] == [
        "user", "assistant", "tool", "assistant", "user", "assistant"
    ]  # fmt: skip
    assert history.prompt[1]["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Leuven"}'}}
    ]
    assert len({message.turn for message in history.messages}) == 2


async def test_a_forgotten_message_leaves_no_gap(mind):
    conversation = mind.conversation("c")
    turns = (("one", "two"), ("three", "four"), ("5", "6"))
    said = await conversation.append([message for turn in turns for message in (user(turn[0]), assistant(turn[1]))])
    await mind.forget([said[2].id, said[3].id])
    assert [message.content for message in (await conversation.history(1000)).messages] == ["one", "two", "5", "6"]


async def test_what_is_said_in_short_is_understood(mind):
    conversation = mind.conversation("c")
    await conversation.append("Where does Ada live?")
    await conversation.append({"role": "assistant", "content": "In Leuven."})
    await conversation.append(
        [NewMessage("user", "Since when?"), {"role": "assistant", "content": "1836.", "name": "guide"}]
    )
    assert [
        (message.role, message.content, message.name) for message in (await conversation.history(1000)).messages
    ] == [
        (Role.USER, "Where does Ada live?", ""),
        (Role.ASSISTANT, "In Leuven.", ""),
        (Role.USER, "Since when?", ""),
        (Role.ASSISTANT, "1836.", "guide"),
    ]
    for nonsense in ({"content": "hi"}, {"role": "human", "content": "hi"}, NewMessage("human", "hi"), 7):
        with pytest.raises(InvalidInputError, match="NewMessage"):
            await conversation.append(nonsense)


async def test_a_deleted_conversation_makes_no_prompt(mind):
    conversation = mind.conversation("c")
    await conversation.append([user("one"), assistant("two")])
    await conversation.delete()
    with pytest.raises(ConflictError, match="Restore it first"):
        await conversation.context("three")
