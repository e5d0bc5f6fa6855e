"""What is imported from a Dify database reads as the golden cases say: strictly, and as Dify itself would read it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recollect.core.imports.dify import SILENT
from recollect.errors import NotFoundError
from recollect.models.conversations import HistoryOptions
from recollect.models.imports import DifyImport
from support.dify.dify_database import NIL, identify, made_dify
from support.imports.generative_agents import read_golden

PLENTY = 1_000_000


class Characters:
    """Count a token for each character, and none for the form of a message."""

    name = "characters"
    frame = naming = priming = 0

    def count(self, text: str) -> int:
        return len(text)

    def cut(self, text: str, most: int) -> str:
        return text[:most]


@pytest.fixture
def golden(shared):
    return read_golden(shared, "golden_thread_cases")


@pytest.fixture
def dify(cluster):
    with made_dify(cluster) as made:
        yield made


@pytest.fixture
def counting(recollect):
    """A Recollect that counts characters."""
    return replace(recollect, parts=replace(recollect.parts, tokenizers=(Characters(),)))


async def bring(recollect, dify):
    wanted = DifyImport(dify.dsn, "assistant")
    return await recollect.operator.imports.dify(wanted, "default", lambda *_: None)


async def read(recollect, conversation, window):
    """Read a history; a conversation in which nothing was said is not there."""
    mind = await recollect.mind("assistant", "li")
    try:
        return await mind.conversation(identify(conversation)).history(window)
    except NotFoundError:
        return None


async def find_leaf(recollect, conversation, name):
    """Find the message that ends a turn."""
    everything = await recollect.mind("assistant", "li")
    wanted = f"{identify(f'{conversation}/{name}')}:assistant"
    leaves = (await everything.conversation(identify(conversation)).get()).threads
    for leaf in leaves:
        path = (await read(recollect, conversation, HistoryOptions(PLENTY, leaf=leaf.id))).messages
        if found := [message.id for message in path if message.external_id == wanted]:
            return found[0]
    raise AssertionError(wanted)


def turns_of(history):
    """Name the turns of a history, newest first."""
    contents = [message.content for message in history.messages] if history else []
    assert [content[0] for content in contents] == ["q", "a"] * (len(contents) // 2)
    return [content[2:] for content in contents[::-2]]


async def test_every_thread_reads_strictly_and_as_in_dify(golden, dify, recollect):
    cases = golden["thread_cases"]
    # No Dify on PostgreSQL has an empty parent; a column of texts can hold what the case asks for.
    dify.execute("alter table messages alter parent_message_id type varchar(36)")
    for case in cases:
        dify.conversation(case["name"])
        for each in reversed(case["messages_newest_first"]):
            dify.turn(case["name"], each["id"], each["parent_message_id"])
    arrival = await bring(recollect, dify)
    assert arrival.brought[0].imported == len(cases) - 1 == 24
    assert arrival.remarks[SILENT] == 1
    for case in cases:
        leaf = await find_leaf(recollect, case["name"], case["leaf"]) if case["leaf"] else None
        strict = await read(recollect, case["name"], HistoryOptions(PLENTY, leaf=leaf))
        assert turns_of(strict) == case["strict"], case["name"]
        upstream = await read(recollect, case["name"], HistoryOptions(PLENTY, leaf=leaf, upstream=True))
        assert turns_of(upstream) == case["upstream"], case["name"]


async def test_every_budget_is_kept_in_whole_turns_and_as_in_dify(golden, dify, counting):
    cases = golden["token_buffer_cases"]
    assert len(cases) == 8
    for case in cases:
        dify.conversation(case["name"])
        for number, turn in enumerate(case["turns_oldest_first"]):
            parent = str(number - 1) if number else None
            dify.turn(case["name"], str(number), parent, **turn)
    await bring(counting, dify)
    for case in cases:
        limit = case["max_token_limit"]
        ours = await read(counting, case["name"], HistoryOptions(limit))
        assert list(ours.prompt) == case["pair_safe"], case["name"]
        theirs = await read(counting, case["name"], HistoryOptions(limit, upstream=True))
        assert list(theirs.prompt) == case["upstream"], case["name"]


async def test_an_older_turn_that_failed_is_replayed_only_as_in_dify(dify, counting):
    """Dify's buffer does not look at the status: it shows an empty answer; only the newest turn is dropped."""
    dify.conversation("t")
    dify.turn("t", "1", None)
    dify.turn("t", "2", "1", answer="", answer_tokens=0, status="error", error="boom")
    dify.turn("t", "3", "2")
    await bring(counting, dify)
    ours = await read(counting, "t", HistoryOptions(PLENTY))
    assert [(m["role"], m["content"]) for m in ours.prompt] == [
        ("user", "q 1"), ("assistant", "a 1"), ("user", "q 2"), ("user", "q 3"), ("assistant", "a 3")
    ]  # fmt: skip
    theirs = await read(counting, "t", HistoryOptions(PLENTY, upstream=True))
    assert [(m["role"], m["content"]) for m in theirs.prompt] == [
        ("user", "q 1"), ("assistant", "a 1"), ("user", "q 2"), ("assistant", ""), ("user", "q 3"), ("assistant", "a 3")
    ]  # fmt: skip
    assert theirs.tokens == sum(len(m["content"]) for m in theirs.prompt)


async def test_turns_of_the_same_second_keep_their_ancestors(dify, recollect):
    dify.conversation("t")
    moment = "2025-03-01 09:00:00"
    for name, parent in (("3", "2"), ("1", NIL), ("2", "1")):
        dify.turn("t", name, parent, created_at=moment)
    await bring(recollect, dify)
    assert turns_of(await read(recollect, "t", HistoryOptions(PLENTY))) == ["3", "2", "1"]
