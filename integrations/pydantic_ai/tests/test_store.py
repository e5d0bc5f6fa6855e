"""RecollectConversationStore against InMemoryConversationStore, operation by operation, and around runs of an agent."""

from __future__ import annotations

import asyncio
import os
from dataclasses import asdict, replace
from uuid import uuid4

import pytest
from anyio import fail_after
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import Agent, BinaryContent, DeferredToolRequests, UserError
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, ConversationEntry, InMemoryConversationStore
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset
from recollect_pydantic_ai import RecollectConversationStore
from recollect_pydantic_ai import store as module

from recollect.client import Client
from recollect.client.items import RemoteItems
from recollect.errors import ConflictError, InvalidInputError, UnavailableError
from recollect.models.items import PutItem

NAMES = ("dinner", "a/b \u8336", "x" * 600)
SCOPES = (None, "li", "")
names, scopes = st.sampled_from(NAMES), st.sampled_from(SCOPES)
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
said = st.lists(words, max_size=3)
few = st.integers(0, 4)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), names, scopes, said),
        st.tuples(st.just("rewrite"), names, few, said),
        st.tuples(st.just("stale"), names),
        st.tuples(st.just("branch"), names, few),
        st.tuples(st.just("back"), names),
        st.tuples(st.just("fork"), names, names, few),
        st.tuples(st.just("delete"), names, scopes),
        st.tuples(st.just("load"), names, st.none() | st.integers(-1, 3), scopes),
        st.tuples(st.just("list"), scopes, st.none() | st.integers(-1, 3)),
    ),
    max_size=10,
)


def ask(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(content=text)])


class Actor:
    """Does the same to either store, and tells what came of it in words that do not depend on ids."""

    def __init__(self, store) -> None:
        self.store = store

    async def act(self, name: str, *arguments):
        try:
            return await getattr(self, name)(*arguments)
        except (UserError, LookupError) as problem:
            return type(problem).__name__

    async def say(self, name, scope, texts):
        conversation = await self.store.load(name) or Conversation(conversation_id=name)
        conversation.messages += map(MESSAGES.__getitem__, texts)
        conversation.usage.requests += 1
        return len(await self.store.save(conversation, scope=scope))

    async def rewrite(self, name, keep, texts):
        stored = await self.store.load(name)
        if stored is None:
            return None
        messages = [*stored.messages[:keep], *map(MESSAGES.__getitem__, texts)]
        rewritten = Conversation(conversation_id=name, messages=messages, revision=stored.revision)
        return len(await self.store.save(rewritten))

    async def stale(self, name):
        one, two = await self.store.load(name), await self.store.load(name)
        if one is None:
            return None
        await self.store.save(one)
        return await self.store.save(two)

    async def branch(self, name, at):
        stored = await self.store.load(name)
        return await self.store.branch(name, at=at, expected_revision=stored.revision if stored else "r")

    async def back(self, name):
        record = await self.store.read_record(name)
        if record is None or not record.branches:
            return None
        made = await self.store.branch(name, from_entry=record.branches[-1], expected_revision=record.revision)
        return made.messages

    async def fork(self, name, new_name, at):
        made = await self.store.fork(name, at=at, new_conversation_id=new_name)
        return made.messages

    async def delete(self, name, scope):
        await self.store.delete(name, scope=scope)

    async def load(self, name, limit, scope):
        found = await self.store.load(name, limit=limit, scope=scope)
        return found and (found.messages, found.usage, found.conversation_id)

    async def list(self, scope, limit):
        return [describe(each) for each in await self.store.list_conversations(scope=scope, limit=limit)]

    async def look(self):
        """Read everything."""
        seen = []
        for name in NAMES:
            record, entries = await self.store.read_record(name), await self.store.load_entries(name)
            if record is not None:
                lines = [[entry.message for entry in await self.store.read_history(tip)] for tip in record.branches]
                assert [entry.parent_id for entry in entries] == [None, *(entry.id for entry in entries)][
                    : len(entries)
                ]
                seen.append((describe(record), [entry.message for entry in entries], lines))
        return seen


def describe(record):
    ids = {"head_id", "forked_at", "branches", "revision", "updated_at"}
    return {name: value for name, value in asdict(record).items() if name not in ids}


class MessageCache(dict):
    def __missing__(self, text):
        self[text] = ask(text) if len(text) % 2 else ModelResponse(parts=[TextPart(content=text)])
        return self[text]


MESSAGES = MessageCache()
"""The same message for the same text, because messages carry the time when they were made."""


@given(operations=OPERATIONS)
def test_the_same_operations_lead_to_the_same_conversations(operations) -> None:
    if "RECOLLECT_URL" not in os.environ:
        pytest.skip("RECOLLECT_URL names no server")

    async def compare() -> None:
        async with Client(os.environ["RECOLLECT_URL"], os.environ["RECOLLECT_KEY"], timeout_seconds=60) as client:
            mind = await client.mind("pydantic", f"o-{uuid4().hex}")
            ours, theirs = Actor(RecollectConversationStore(mind)), Actor(InMemoryConversationStore())
            for operation in operations:
                expected = await theirs.act(*operation)
                got = await ours.act(*operation)
                assert got == expected if operation[0] != "branch" else type(got) is type(expected), operation
                assert await ours.look() == await theirs.look()
            for kind in ("entries", "links"):
                kept = await mind.items.find(("pydantic_ai", kind), limit=1_000)
                assert {each.item.value["id"] for each in kept} == set(await reachable(ours.store))
            assert len(kept) == len(theirs.store._entries)
            marks = await mind.items.find(("pydantic_ai", "revisions"), limit=1_000)
            assert len(marks) == len(theirs.store._records)

    asyncio.run(compare())


async def reachable(store):
    for_each = [tip for record in await store.read_records() for tip in (record.head_id, *record.branches)]
    return [entry.id for tip in for_each for entry in await store.read_history(tip)]


async def test_a_run_goes_on_where_the_last_one_ended_and_is_recalled(mind) -> None:
    seen = []

    def answer(messages, info):
        seen.append(len(messages))
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("pantry", {})])
        return ModelResponse(parts=[TextPart(f"Coconut curry, {len(messages)}.")])

    agent = Agent(FunctionModel(answer))

    @agent.tool_plain
    def pantry() -> str:
        return "chickpeas \x00 and " + "spinach " * 4_000

    store = RecollectConversationStore(mind)
    first = await agent.run(
        "I am allergic to peanuts. What may I cook?", conversation=Conversation(conversation_id="dinner")
    )
    assert len(await store.save(first, scope="li")) == 4
    # Another store, as in another process.
    again = await RecollectConversationStore(mind).load("dinner")
    assert again.messages == first.all_messages()
    assert again.usage == first.usage
    second = await agent.run("And tomorrow?", conversation=again)
    assert len(await store.save(second)) == 2
    assert seen == [1, 3, 5]
    loaded = await store.load("dinner")
    assert loaded.messages == second.all_messages()
    assert loaded.usage.requests == 3
    assert [each.content for each in (await store.load("dinner", limit=1)).messages[0].parts] == ["Coconut curry, 5."]
    hit = (await mind.recall("Which allergies are there?", limit=1)).hits[0]
    assert hit.memory.content == "I am allergic to peanuts. What may I cook?"
    assert not any("spinach" in hit.memory.content for hit in (await mind.recall("spinach")).hits)


async def test_files_and_paused_runs_come_back(mind) -> None:
    photo = BinaryContent(b"\x89PNG\x00\xff", media_type="image/png")
    model = TestModel(call_tools=["pay"])
    pay = ToolDefinition(name="pay", kind="external", parameters_json_schema={"type": "object", "properties": {}})
    agent = Agent(model, output_type=[str, DeferredToolRequests], toolsets=[ExternalToolset([pay])])
    result = await agent.run(["What is this?", photo], conversation=Conversation(conversation_id="shop"))
    assert isinstance(result.output, DeferredToolRequests)
    store = RecollectConversationStore(mind)
    await store.save(result)
    loaded = await store.load("shop")
    # Pydantic AI itself reads an image back as a BinaryImage.
    assert loaded.messages == ModelMessagesTypeAdapter.validate_json(result.all_messages_json())
    assert loaded.deferred_tool_requests == result.output
    assert loaded.messages[0].parts[0].content[1].data == photo.data


async def test_of_many_writers_one_wins(mind) -> None:
    store = RecollectConversationStore(mind)
    await store.save(Conversation(conversation_id="c", messages=[ask("one")]))
    copies = [await store.load("c") for _ in range(6)]
    for number, copy in enumerate(copies):
        copy.messages.append(ask(f"two {number}"))
    done = await asyncio.gather(*(store.save(copy) for copy in copies), return_exceptions=True)
    assert [type(each) for each in done if not isinstance(each, list)] == [ConversationConflict] * 5
    assert len((await store.load("c")).messages) == 2
    assert len(await mind.items.find(("pydantic_ai", "entries"))) == 2


async def test_a_fork_and_a_delete_at_once_never_leave_half_a_history(mind) -> None:
    store = RecollectConversationStore(mind)
    for turn in range(4):
        source, forks = f"s{turn}", [f"f{turn}-{number}" for number in range(3)]
        await store.save(Conversation(conversation_id=source, messages=[ask("one"), ask("two")]))
        await asyncio.gather(
            store.delete(source),
            *(store.fork(source, new_conversation_id=fork) for fork in forks),
            return_exceptions=True,
        )
        assert await store.load(source) is None
        for fork in forks:
            if (forked := await store.load(fork)) is not None:
                assert [message.parts[0].content for message in forked.messages] == ["one", "two"]
    kept = {each.item.value["id"] for each in await mind.items.find(("pydantic_ai", "entries"), limit=100)}
    assert kept == set(await reachable(store))


async def test_a_conversation_deleted_and_made_again_is_not_written_over(mind) -> None:
    store = RecollectConversationStore(mind)
    await store.save(Conversation(conversation_id="c", messages=[ask("old")]))
    old = await store.load("c")
    await store.delete("c")
    await store.save(Conversation(conversation_id="c", messages=[ask("new")]))
    with pytest.raises(ConversationConflict):
        await store.save(old)
    with pytest.raises(ConversationConflict):
        await store.delete_record("c", expected_revision=old.revision)
    assert (await store.load("c")).messages[0].parts[0].content == "new"


async def test_what_is_forgotten_is_gone_from_the_history_and_what_is_deleted_from_recall(mind) -> None:
    store = RecollectConversationStore(mind)
    texts = ["I prefer green tea.", "My cat is called Mo.", "It rains."]
    await store.save(Conversation(conversation_id="c", messages=[ask(text) for text in texts]))
    hit = (await mind.recall("cat", limit=1)).hits[0]
    await mind.forget([hit.memory.id])
    loaded = await store.load("c")
    assert [message.parts[0].content for message in loaded.messages] == [texts[0], texts[2]]
    loaded.messages.append(ask("It still rains."))
    await store.save(loaded)
    assert len((await store.load("c")).messages) == 3
    with pytest.raises(LookupError):
        await store.read_entry((await store.read_entry((await store.load_entries("c"))[1].id)).parent_id)
    await store.delete("c")
    assert (await mind.recall("tea")).hits == ()
    assert await mind.items.find(("pydantic_ai", "links")) == ()


async def test_a_save_of_many_messages_is_divided_and_undone_where_it_conflicts(mind, monkeypatch) -> None:
    monkeypatch.setattr(module, "MAX_OPERATIONS", 4)
    monkeypatch.setattr(module, "PAGE", 3)
    monkeypatch.setattr(module, "ENTRIES_AT_ONCE", 2)
    store = RecollectConversationStore(mind)
    many = Conversation(conversation_id="c", messages=[ask(f"word {number}") for number in range(9)])
    await store.save(many)
    assert (await store.load("c")).messages == many.messages
    assert (await store.load("c", limit=5)).messages == many.messages[-5:]
    record = replace(await store.read_record("c"), revision="of nobody yet")
    new = [ConversationEntry(parent_id=record.head_id, message=message) for message in many.messages]
    with pytest.raises(ConversationConflict):
        await store.write_record(record, new_entries=new, expected_revision="another")
    assert (await store.load("c")).messages == many.messages
    assert len(await mind.items.find(("pydantic_ai", "entries"), limit=100)) == 9
    await store.fork("c", at=2, new_conversation_id="f")
    await store.delete("c")
    assert len((await store.load("f")).messages) == 2
    assert len(await mind.items.find(("pydantic_ai", "entries"), limit=100)) == 2


async def test_a_message_that_is_too_large_is_refused_before_anything_is_written(mind) -> None:
    store = RecollectConversationStore(mind)
    texts = ["The secret drink is green tea.", "y" * 880_000, "z" * 1_200_000]
    with pytest.raises(InvalidInputError, match="over 1000000 bytes of JSON"):
        await store.save(Conversation(conversation_id="c", messages=[ask(text) for text in texts]))
    assert await mind.items.find(("pydantic_ai",)) == ()
    assert (await mind.recall("drink")).hits == ()


class Broken(RemoteItems):
    """Items whose service fails at the third write, before or after it is done."""

    written = 0
    done = False

    async def batch(self, operations, **options):
        if not any(isinstance(each, PutItem) for each in operations):
            return await super().batch(operations, **options)
        Broken.written += 1
        if Broken.written != 3:
            return await super().batch(operations, **options)
        if Broken.done:
            await super().batch(operations, **options)
        raise UnavailableError("away")


@pytest.mark.parametrize(("messages", "done", "left"), [(9, False, 0), (9, True, 0), (6, False, 0), (6, True, 6)])
async def test_a_save_that_fails_is_undone_or_was_saved_after_all(mind, monkeypatch, messages, done, left) -> None:
    monkeypatch.setattr(module, "MAX_OPERATIONS", 4)
    monkeypatch.setattr(Broken, "written", 0)
    monkeypatch.setattr(Broken, "done", done)
    store = RecollectConversationStore(mind)
    store._items = Broken(mind.client, mind.agent, mind.user)
    said = Conversation(conversation_id="c", messages=[ask(f"tea {number}") for number in range(messages)])
    with pytest.raises(UnavailableError, match="away"):
        await store.save(said)
    stored = await RecollectConversationStore(mind).load("c")
    assert len(stored.messages if stored else ()) == left
    assert len(await mind.items.find(("pydantic_ai", "entries"))) == left
    assert len((await mind.recall("tea")).hits) == left


async def test_a_save_that_is_cancelled_is_undone_though_a_write_comes_late(mind, monkeypatch) -> None:
    monkeypatch.setattr(module, "MAX_OPERATIONS", 4)
    store = RecollectConversationStore(mind)
    items, late = mind.items, []

    class Slow(RemoteItems):
        async def batch(self, operations, **options):
            if sum(isinstance(each, PutItem) for each in operations) > 1 and (
                late or await items.find(("pydantic_ai",))
            ):
                late.append(operations)
                await asyncio.sleep(60)
            return await items.batch(operations, **options)

    store._items = Slow(mind.client, mind.agent, mind.user)
    said = Conversation(conversation_id="c", messages=[ask(f"tea {number}") for number in range(9)])
    with pytest.raises(TimeoutError), fail_after(1):
        await store.save(said)
    assert await items.find(("pydantic_ai", "entries")) == ()
    [operations] = late
    with pytest.raises(ConflictError):
        await items.batch(operations)
    assert (await mind.recall("tea")).hits == ()


async def test_tools_are_stored_with_their_arguments_as_they_were(mind) -> None:
    arguments = {"big": 1e300, "small": -0.0, "whole": 10.0, "text": "a\x00b", "none": None}
    messages = [
        ModelResponse(parts=[ToolCallPart("t", arguments, "c1")]),
        ModelRequest(parts=[ToolReturnPart("t", [arguments], "c1")]),
    ]
    store = RecollectConversationStore(mind)
    await store.save(Conversation(conversation_id="c", messages=messages))
    loaded = (await store.load("c")).messages
    assert loaded == messages
    assert repr([loaded[0].parts[0].args, *loaded[1].parts[0].content]) == repr([arguments, arguments])
