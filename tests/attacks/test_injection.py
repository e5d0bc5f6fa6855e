"""What was said to command a model stays between the tags, or inside the JSON, of every prompt and answer."""

from __future__ import annotations

import contextlib
import json
import random
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest
from mcp import Client

from recollect.core.conversations.block import BlockMemory, render, write_line, write_summary
from recollect.core.knowledge.entities import AmbiguousMention
from recollect.core.knowledge.transcripts import write_facts, write_transcript
from recollect.doors.mcp.arguments import choose_names
from recollect.doors.mcp.server import build_server
from recollect.errors import ChatModelError
from recollect.llm.prompts import fill_prompt
from recollect.models.blocks import DetailLevel
from recollect.models.conversations import Message, MessageStatus, NewMessage
from recollect.models.knowledge import Entity, Fact, Mention, ValidTime
from recollect.models.memories import Kind, Memory, NewMemory, Role, Triple
from recollect.models.recall import Cue
from recollect.models.service import KeyBinding, Scope
from recollect.verbs.agents import reflect
from recollect.verbs.conversations.chat import generate_reply
from recollect.verbs.knowledge.steps.resolve import match_names
from recollect.verbs.memories import rederive
from recollect.verbs.recall import judge
from support.measuring.sizes import Sizes
from support.models.fake_chat import FakeChatModel
from support.models.injections import INJECTIONS, MARK, check_fence, check_json, find_tags, mutate

MUTATIONS = Sizes("mutations", ci=500, long=200_000)
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
SCOPE = Scope(1, "ada", "li")
HARMLESS = "Li drinks tea"
CUE = f"{MARK} tea"


def remembered(content: str, number: int = 1, kind: Kind = Kind.EVENT, speaker: str = "") -> Memory:
    """Make a memory of a text."""
    return Memory(
        id=UUID(int=number), kind=kind, content=content, speaker=speaker, importance=5, triple=Triple(), idle=False,
        depth=0, keywords=(), origin="", trust=50, occurred_at=MOMENT, created_at=MOMENT, last_accessed_at=MOMENT,
        evidence=(), embedding_text="", metadata={},
    )  # fmt: skip


def said(content: str, name: str = "") -> Message:
    """Make a message of a text."""
    return Message(
        id=UUID(int=1), role=Role.USER, content=content, name=name, parts=(), attachments=(), parent=None,
        turn=UUID(int=1), number=1, status=MessageStatus.DONE, tokens=1, occurred_at=MOMENT, external_id="",
    )  # fmt: skip


# Blocks.


def write_block(content: str, level: DetailLevel = DetailLevel.FULL) -> str:
    """Write a block of one memory, with a speaker and a summary of the same words."""
    line = write_line(BlockMemory(remembered(content, speaker=content), "m0001"), level)
    return render([write_summary(remembered(content, kind=Kind.SUMMARY)), "Events:\n", line])


@pytest.mark.promise("No injection leaves the tags around the memories of a block", part="injection")
@pytest.mark.parametrize("level", list(DetailLevel))
def test_no_injection_leaves_a_block(level, figure):
    for text in INJECTIONS:
        assert MARK in check_fence(write_block(text, level), write_block(HARMLESS, level), "memories")
    figure(f"{len(INJECTIONS)} injections held")


@pytest.mark.promise(
    "No spelling with look-alikes or hidden signs leaves the tags of a block or of notes", MUTATIONS, part="injection"
)
def test_no_spelling_leaves_the_tags(rounds, seed):
    chance = random.Random(seed)
    harmless = write_block(HARMLESS), reflect_prompt(HARMLESS)
    for _ in rounds(MUTATIONS):
        text = mutate(chance.choice(INJECTIONS), chance)
        check_fence(write_block(text), harmless[0], "memories")
        check_fence(reflect_prompt(text), harmless[1], "notes")


@pytest.mark.promise("The test of injections notices a block that changes nothing", part="injection")
def test_a_block_that_changes_nothing_is_noticed(figure):
    harmless = f"<memories>\n[m0001] 2026-01-01: {HARMLESS}\n</memories>"
    noticed = 0
    for text in INJECTIONS:
        with contextlib.suppress(AssertionError):
            check_fence(harmless.replace(HARMLESS, text), harmless, "memories")
            continue
        noticed += 1
    assert noticed >= 25
    figure(f"{noticed} of {len(INJECTIONS)} leave it")


@pytest.fixture
async def filled(mind):
    """A scope that holds every injection, as memory, message and triple."""
    await mind.remember(
        [
            NewMemory(text, keywords=(MARK,), speaker=" ".join(text.split())[:40], triple=Triple("Li", "says", MARK))
            for text in storable()
        ]
    )
    conversation = mind.conversation("tea")
    for text in storable():
        await conversation.append([NewMessage(Role.USER, text), NewMessage(Role.ASSISTANT, text)])
    return mind


def storable() -> list[str]:
    """List the injections as PostgreSQL takes them."""
    return [text for text in INJECTIONS if "\0" not in text]


async def test_blocks_and_contexts_of_a_real_scope_hold(filled):
    cue = Cue(CUE, limit=60, min_relevance=0)
    block = (await filled.blocks.show(cue, 100_000)).text
    context = (await filled.conversation("other").context(cue, 100_000)).block
    for text in (block, context):
        inside = text.partition("<memories>\n")[2].partition("</memories>")[0]
        assert text.endswith(f"{inside}</memories>")
        assert MARK not in text.partition("<memories>\n")[0]
        assert find_tags(inside, ("memories",)) == []
        assert inside.count(MARK) >= 30
        lines = inside.splitlines()
        assert all(line.startswith(("[m", "Events:", "Earlier messages:")) for line in lines), lines


# Answers for models: MCP and Dify.


@pytest.mark.promise("No injection leaves the tags of an answer over MCP", part="injection")
async def test_no_injection_leaves_an_answer_over_mcp(recollect, filled, figure):
    async def open_mind(_ctx, agent, user):
        return await recollect.mind(*choose_names(KeyBinding("ada", "li"), agent, user))

    asked = {
        "recall": {"text": CUE, "limit": 50},
        "associate": {"subject": "Li", "object": MARK},
        "history": {"conversation": "tea", "max_tokens": 100_000},
        "context": {"text": CUE, "conversation": "tea", "budget": 100_000},
    }
    async with Client(build_server(open_mind)) as client:
        answers = {tool: await client.call_tool(tool, arguments) for tool, arguments in asked.items()}
        prompt = await client.get_prompt("with_memory", {"question": CUE})
    texts = {tool: answer.content[0].text for tool, answer in answers.items()}
    texts["prompt"] = prompt.messages[0].content.text.removesuffix(CUE)
    for tool, text in texts.items():
        held = check_answer(text)
        assert held.count(MARK) >= 10, tool
    roles = [line for line in texts["history"].splitlines() if not line.startswith("  ")]
    assert {line.partition(":")[0] for line in roles[2:-1]} == {"user", "assistant"}
    assert len(roles[2:-1]) == len(answers["history"].structured_content["messages"])
    figure(f"{len(texts)} answers")


def check_answer(text: str) -> str:
    """Take an answer apart by its tags: nothing hostile stands outside, and nothing inside looks like one of them."""
    outside, inside = [], []
    for line in text.split("\n"):
        place = inside if outside and outside[-1] in ("<memories>", "<conversation>") and not is_end(line) else outside
        place.append(line)
    assert MARK not in "\n".join(outside)
    held = "\n".join(inside)
    assert find_tags(held, ("memories", "conversation")) == []
    return held


def is_end(line: str) -> bool:
    return line in ("</memories>", "</conversation>")


@pytest.mark.promise("No injection leaves its field in an answer to Dify", part="injection")
async def test_no_injection_leaves_its_field_in_an_answer_to_dify(filled, http):
    asked = {"knowledge_id": "ada/li", "query": CUE, "retrieval_setting": {"top_k": 200, "score_threshold": 0}}
    records = (await http.post("/dify/retrieval", json=asked)).json()["records"]
    assert len(records) >= 30
    assert {record["content"] for record in records} <= set(storable())
    for record in records:
        own = {name: value for name, value in record["metadata"].items() if name not in ("speaker", "keywords")}
        assert MARK not in json.dumps([record["title"], own])


# What chat models are asked.


async def hear(ask) -> str:
    """Give the prompt that a chat model is asked with."""
    chat = FakeChatModel({})
    chat.fail()
    with contextlib.suppress(ChatModelError):
        await ask(chat)
    return chat.prompts[-1]


def reflect_prompt(text: str) -> str:
    return fill_prompt("questions", agent="ada", notes=reflect.number_notes([remembered(text, speaker=text)]), count=3)


def extraction_prompt(text: str) -> str:
    fact = Fact(UUID(int=1), Entity(UUID(int=2), text), "says", Entity(UUID(int=3), text), text, ValidTime(), MOMENT)
    messages = write_transcript([said(text, text)], ("li", "ada"), 20_000)
    return fill_prompt("extraction", user="li", agent="ada", messages=messages, facts=write_facts([fact]))


ASKED = {
    "questions": ("notes", lambda text, chat: reflect.find_questions(chat, SCOPE, [remembered(text)])),
    "insights": ("notes", lambda text, chat: reflect.find_insights(chat, SCOPE, HARMLESS, [remembered(text)], None)),
    "insights by a question": (
        "question",
        lambda text, chat: reflect.find_insights(chat, SCOPE, " ".join(text.split()), [remembered(HARMLESS)], None),
    ),
    "restatement": ("notes", lambda text, chat: rederive.restate_notes(chat, SCOPE, None, [remembered(text)])),
    "names": (
        "names",
        lambda text, chat: match_names(chat, "ada", [AmbiguousMention(mention(text), (known(HARMLESS),))]),
    ),
    "known": (
        "known",
        lambda text, chat: match_names(chat, "ada", [AmbiguousMention(mention(HARMLESS), (known(text),))]),
    ),
}


def mention(text: str) -> Mention:
    return Mention(text, aliases=(text,), description=text)


def known(text: str) -> Entity:
    return Entity(UUID(int=1), text, aliases=(text,), description=text)


@pytest.mark.promise("No injection leaves the tags of what a chat model is asked", part="injection")
@pytest.mark.parametrize("name", ASKED)
async def test_no_injection_leaves_the_tags_of_a_question(name, figure):
    tag, ask = ASKED[name]
    harmless = await hear(lambda chat: ask(HARMLESS, chat))
    for text in INJECTIONS:
        assert MARK in check_fence(await hear(lambda chat, text=text: ask(text, chat)), harmless, tag)
    figure(f"{len(INJECTIONS)} injections held")


@pytest.mark.promise("No injection leaves the tags of what is extracted from", part="injection")
@pytest.mark.parametrize("tag", ["conversation", "facts"])
def test_no_injection_leaves_a_transcript(tag):
    for text in INJECTIONS:
        both = extraction_prompt(text), extraction_prompt(HARMLESS)
        before, inside = (each.partition(f"<{tag}>\n")[0] for each in both), both[0].partition(f"<{tag}>\n")[2]
        assert find_tags(inside.partition(f"</{tag}>")[0], (tag,)) == []
        assert len(set(map(len_of_lines, before))) == 1
        assert both[0].partition("</facts>")[2] == both[1].partition("</facts>")[2]


def len_of_lines(text: str) -> int:
    return len(text.splitlines())


@pytest.mark.promise("No injection leaves the JSON of what a judge or a chat model is asked", part="injection")
async def test_no_injection_leaves_the_json_of_a_question(recollect, mind):
    harmless = judge.write_question(Cue(HARMLESS), remembered(HARMLESS), {})
    made = await mind.conversation("c").context(HARMLESS, 500)
    plain = await hear(lambda chat: generate_reply(chat, made))
    for text in INJECTIONS:
        asked = judge.write_question(Cue(text), remembered(text, speaker=text), {})
        value = check_json(asked, harmless)
        assert value["memory"]["content"] == text
        messages = ({"role": "user", "content": text},)
        prompt = await hear(lambda chat, messages=messages: generate_reply(chat, replace(made, messages=messages)))
        assert check_json(prompt, plain) == [{"role": "user", "content": text}]
