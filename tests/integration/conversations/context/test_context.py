"""One call for a prompt: within its budget by another count, nothing twice, the newest turns and what lies behind."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from recollect.core.conversations.prompt_texts import ENGLISH
from recollect.errors import ForbiddenError, InvalidInputError, NotFoundError
from recollect.models.agents import Profile
from recollect.models.blocks import DetailLevel
from recollect.models.conversations import (
    Attachment,
    BudgetShares,
    HistoryOptions,
    MessageStatus,
    NewMessage,
    OversizedTurn,
    Part,
    PartType,
)
from recollect.models.memories import Kind, NewMemory, Role
from recollect.models.recall import Cue
from recollect.models.service import Right
from support.programs.waiting import WAIT_SECONDS
from support.service.accesses import with_access

CUE = "What is the cat of Li called?"
WORDS = ("train", "river", "猫", "cloud", "今天", "window", "11:45", "—", "apples!", "<b>", "\n", "</memories>")


def turn(question, answer, **more):
    return [NewMessage(Role.USER, question, **more), NewMessage(Role.ASSISTANT, answer)]


async def add_turns(conversation, turns, words=6):
    for number in range(turns):
        await conversation.append(
            turn(f"question {number} " + "of trains " * words, f"answer {number} " + "to Ghent " * words)
        )


def recount(recollect, context, window=HistoryOptions()):  # noqa: B008 - a frozen value
    """Count a prompt as OpenAI's cookbook does, from nothing but its messages."""
    tokenizer = next(each for each in recollect.parts.tokenizers if each.name == context.history.tokenizer)
    total = tokenizer.priming
    for message in context.messages:
        content, text, images = message["content"], "", 0
        if isinstance(content, list):
            images = sum(part["type"] == "image_url" for part in content)
            content = "".join(part.get("text", "") for part in content)
        text = content or ""
        total += tokenizer.frame + tokenizer.count(text) + images * window.image_tokens
        if "name" in message:
            total += tokenizer.naming + tokenizer.count(message["name"])
    return total


def said_by(context, role):
    return [message["content"] for message in context.messages if message["role"] == role]


async def test_a_prompt_holds_the_newest_turns_and_what_the_cue_reminds_of(recollect, mind):
    conversation = mind.conversation("c")
    await conversation.append(turn("My cat is called Pascal.", "A fine name for a cat."))
    await add_turns(conversation, 40)
    context = await conversation.context(CUE, 600, system="You are kind.")
    assert context.messages[0] == {"role": "system", "content": "You are kind."}
    assert context.messages[1] == {"role": "system", "content": context.block}
    assert context.messages[2:-1] == context.history.prompt
    assert context.messages[-1] == {"role": "user", "content": CUE}
    assert "user: My cat is called Pascal.\n" in context.block
    assert context.history.messages[-1].content.startswith("answer 39")
    assert context.history.messages[0].role is Role.USER
    assert len(context.history.messages) >= 8
    assert context.methods["text"] == context.methods["vector"] == "exact"
    assert recount(recollect, context) == context.spending.total <= 600
    parts = asdict(context.spending)
    assert parts.pop("budget") == 600
    assert parts.pop("total") == sum(parts.values())


@pytest.mark.parametrize("tokenizer", ["o200k_base", "cl100k_base", "estimate"])
async def test_no_budget_is_exceeded_whatever_is_in_it(recollect, mind, tokenizer):
    chance = random.Random(tokenizer)

    def text(most):
        return "so " + " ".join(chance.choices(WORDS, k=chance.randint(1, most)))

    picture = Attachment("image", url="https://example.org/a.png")
    conversation = mind.conversation("c")
    for _ in range(30):
        attachments = (picture,) if chance.random() < 0.2 else ()
        await conversation.append(turn(text(60), text(200), name=chance.choice(["", "Li"]), attachments=attachments))
    receipts = await mind.remember([text(chance.choice([5, 50, 500])) for _ in range(60)])
    await mind.remember(NewMemory(text(300), Kind.SUMMARY, evidence=((await conversation.history(1)).messages[0].id,)))
    assert len(receipts) == 60
    for budget in [40, 60, 80, 100, 150, 250, 400, 700, 1_500, 4_000, 20_000]:
        first, second = sorted((chance.random(), chance.random()))
        shares = chance.choice([BudgetShares(), BudgetShares(first, second - first, 1 - second)])
        oversized, images = chance.choice(list(OversizedTurn)), chance.random() < 0.5
        window = HistoryOptions(tokenizer=tokenizer, images=images, image_tokens=85, oversized=oversized)
        context = await conversation.context(
            text(5), budget, shares=shares, window=window, system=chance.choice(["", "Hi"])
        )
        counted = recount(recollect, context, window)
        # What is handed on as an image is counted as the text that stands for it, too; an estimate adds up from above.
        assert counted <= context.spending.total <= budget
        if tokenizer != "estimate" and not images:
            assert counted == context.spending.total
        parts = asdict(context.spending)
        assert parts["total"] == sum(parts.values()) - parts["total"] - parts["budget"]
        assert min(parts.values()) >= 0
        check_nothing_twice(context)


def check_nothing_twice(context):
    ids = [hit.memory.id for hit in context.hits] + [message.id for message in context.history.messages]
    ids += [context.summary.id] if context.summary else []
    assert len(ids) == len(set(ids))
    contents = [" ".join(hit.memory.content.split()) for hit in context.hits]
    assert len(contents) == len(set(contents))
    assert not set(contents) & {" ".join(message.content.split()) for message in context.history.messages}
    assert context.block.count("\n[m") == len(context.hits)


async def test_every_image_and_name_is_paid_for(recollect, mind):
    conversation = mind.conversation("c")
    picture = Attachment("image", url="https://example.org/a.png")
    await conversation.append(turn("Look at my cat.", "How fine.", name="Li", attachments=(picture, picture)))
    window = HistoryOptions(images=True, image_tokens=200)
    context = await conversation.context("And now?", 1_000, window=window, shares=BudgetShares(1, 0, 0))
    assert context.spending.history > 400
    assert (
        await conversation.context("And now?", 300, window=window, shares=BudgetShares(1, 0, 0))
    ).history.messages == ()


async def test_what_is_in_the_prompt_is_not_recalled(mind):
    conversation = mind.conversation("c")
    await mind.remember(["Li has a cat", "Li  has a\ncat", "The cat of Li is called Pascal", "Li met a cat in Ghent"])
    await conversation.append(turn("Li has a cat", "The cat of Li is called Pascal"))
    context = await conversation.context("Which cat has Li?", 2_000)
    assert [hit.memory.content for hit in context.hits] == ["Li met a cat in Ghent"]
    # Where the history has no room, the same memories come back by themselves, each content once.
    without = await conversation.context("Which cat has Li?", 2_000, shares=BudgetShares(0, 1, 0))
    assert without.history.messages == ()
    assert len(without.hits) == 3
    check_nothing_twice(without)


async def test_a_question_that_waits_for_its_answer_is_the_cue(recollect, mind):
    conversation = mind.conversation("c")
    await conversation.append(turn("My cat is called Pascal.", "Hello Pascal."))
    picture = Attachment("image", url="https://example.org/a.png")
    [asked] = await conversation.append(NewMessage(Role.USER, CUE, name="Li", attachments=(picture,)))
    for unanswered in (False, True):
        context = await conversation.context(f" {CUE}\n", 500, window=HistoryOptions(unanswered=unanswered))
        assert context.messages[-1] == {"role": "user", "content": f"[image]\n{CUE}", "name": "Li"}
        assert [message.content for message in context.history.messages] == [
            "My cat is called Pascal.",
            "Hello Pascal.",
        ]
        assert asked.id not in {hit.memory.id for hit in context.hits}
        assert recount(recollect, context) == context.spending.total
        assert context.spending.cue == asked.tokens
    other = await conversation.context("Something else", 500)
    assert other.asked is None
    assert said_by(other, "user") == ["My cat is called Pascal.", "Something else"]
    answered = await conversation.append(NewMessage(Role.ASSISTANT, "Pascal."))
    again = await conversation.context(CUE, 500)
    assert said_by(again, "user")[1:] == [f"[image]\n{CUE}", CUE]
    assert again.history.messages[-1].id == answered[0].id


async def test_an_answer_that_is_under_way_is_not_shown_unless_it_is_asked_for(mind):
    conversation = mind.conversation("c")
    call = Part(PartType.TOOL_CALL, name="find", text="{}", call_id="c-1")
    await conversation.append(turn("one", "two"))
    await conversation.append(
        [
            NewMessage(Role.USER, CUE),
            NewMessage(Role.ASSISTANT, parts=(call,)),
            NewMessage(Role.TOOL, parts=(Part(PartType.TOOL_RESULT, "Pascal", call_id="c-1"),)),
        ]
    )
    bare = await conversation.context(CUE, 500)
    assert [message["role"] for message in bare.messages][-3:] == ["user", "assistant", "user"]
    whole = await conversation.context(CUE, 500, window=HistoryOptions(unanswered=True))
    assert [message["role"] for message in whole.messages][-3:] == ["user", "assistant", "tool"]
    await conversation.append([NewMessage(Role.USER, "next"), NewMessage(Role.ASSISTANT, status=MessageStatus.PENDING)])
    assert said_by(await conversation.context("next", 500), "user")[-1] == "next"


async def test_the_first_message_of_a_new_conversation(recollect, mind):
    assert (await mind.conversation("new").context("hello", 100)).messages == ({"role": "user", "content": "hello"},)
    await mind.remember("The cat of Li is called Pascal")
    context = await mind.conversation("new").context(CUE, 300)
    assert context.history.messages == ()
    assert [message["role"] for message in context.messages] == ["system", "user"]
    assert recount(recollect, context) == context.spending.total
    with pytest.raises(NotFoundError):
        await mind.conversation("new").context(CUE, window=HistoryOptions(leaf=uuid4()))


async def test_a_branch_is_chosen_by_its_leaf(mind):
    conversation = mind.conversation("c")
    first = await conversation.append(turn("one", "two"))
    old = await conversation.append(turn("three", "four"))
    await conversation.append(turn("other three", "other four", parent=first[1].id))
    context = await conversation.context("five", window=HistoryOptions(leaf=old[1].id))
    assert [message.content for message in context.history.messages] == ["one", "two", "three", "four"]
    with pytest.raises(NotFoundError, match="leaf"):
        await conversation.context("five", window=HistoryOptions(leaf=uuid4()))


async def test_the_summary_comes_first_and_only_while_it_may_be_seen(mind, owner):
    conversation = mind.conversation("c")
    said = await conversation.append(turn("My cat is called Pascal.", "Hello Pascal."))

    async def summarise(content):
        [receipt] = await mind.remember(NewMemory(content, Kind.SUMMARY, evidence=(said[0].id,)))
        return receipt.id

    summary = await summarise("Li told\nof the cat Pascal </memories>")
    context = await conversation.context("Which cat?", 500)
    assert context.summary.id == summary
    lines = context.block.splitlines()
    assert lines[:3] == [
        ENGLISH.heading,
        "<memories>",
        "Summary of the conversation so far: Li told of the cat Pascal ‹/memories>",
    ]
    assert context.spending.summary > 0
    assert summary not in {hit.memory.id for hit in context.hits}
    assert (await conversation.context(Cue("Which cat?", min_trust=100), 500)).summary is not None
    owner.execute("update memories set trust = 60 where id = %s", (summary,))
    assert (await conversation.context(Cue("Which cat?", min_trust=61), 500)).summary is None
    assert (await conversation.context("Which cat?", 500, shares=BudgetShares(0.5, 0.5, 0))).summary is None
    newer = await summarise("Li has a cat, Pascal")
    assert (await conversation.context("Which cat?", 500)).summary.id == newer
    owner.execute("update memories set withheld = 'to_rederive' where id = %s", (newer,))
    context = await conversation.context("Which cat?", 500)
    assert context.summary is None
    assert "Summary" not in context.block
    third = await summarise("The cat is Pascal")
    assert await mind.forget([third])
    assert (await conversation.context("Which cat?", 500)).summary is None


async def test_a_long_summary_is_cut_to_its_share(recollect, mind):
    conversation = mind.conversation("c")
    await add_turns(conversation, 30)
    [first, *_] = (await conversation.history(10_000)).messages
    await mind.remember(NewMemory("They spoke of trains. " * 100, Kind.SUMMARY, evidence=(first.id,)))
    context = await conversation.context("trains of questions", 1_000)
    room = 1_000 - context.spending.cue - context.spending.framing
    assert room * 0.1 < context.spending.summary <= room * 0.15
    assert "…\nEarlier messages:\n[m" in context.block
    assert room * 0.4 < context.spending.history
    assert room * 0.3 < context.spending.memories
    assert recount(recollect, context) == context.spending.total


async def test_what_a_part_leaves_over_falls_to_the_others(mind):
    conversation = mind.conversation("c")
    await add_turns(conversation, 60)
    hungry = await conversation.context("question of trains", 1_500)
    assert 0.4 < hungry.spending.history / 1_500 < 0.68
    assert hungry.spending.total > 1_450
    few = await conversation.context(Cue("question of trains", limit=1), 1_500)
    assert len(few.hits) == 1
    assert few.spending.history > hungry.spending.history + 300
    short = mind.conversation("short")
    await short.append(turn("one", "two"))
    wide = await short.context("question of trains", 1_500)
    assert wide.history.complete
    assert wide.spending.memories > hungry.spending.memories + 300
    none = await conversation.context("question of trains", 1_500, shares=BudgetShares(1, 0, 0))
    assert (none.block, none.hits, none.methods) == ("", (), {})
    assert none.spending.history > 1_300


async def test_the_limit_of_the_cue_or_the_profile_bounds_what_is_shown(mind):
    await mind.remember([f"The cat number {number}" for number in range(20)])
    conversation = mind.conversation("c")
    assert len((await conversation.context("cat")).hits) == 20
    await mind.set_profile(Profile(limit=7))
    assert len((await conversation.context("cat")).hits) == 7
    assert len((await conversation.context(Cue("cat", limit=3))).hits) == 3


async def test_the_history_does_not_starve_the_block(mind):
    conversation = mind.conversation("c")
    await mind.remember([f"The cat was seen near house {number}" for number in range(30)])
    for number in range(60):
        await conversation.append(turn(f"cat {number}", f"the cat? {number}"))
    context = await conversation.context(Cue("cat", limit=10), 3_000)
    assert len(context.history.messages) >= 100
    assert len(context.hits) == 10


@pytest.mark.parametrize("oversized", list(OversizedTurn))
async def test_an_oversized_last_turn_never_breaks_the_budget(recollect, mind, oversized):
    conversation = mind.conversation("c")
    await mind.remember([f"They wrote {number} pages" for number in range(30)])
    await conversation.append(turn("Tell me more. ", "So it was written. " * 80))
    window = HistoryOptions(oversized=oversized)
    tight = await conversation.context("pages", 250, window=window)
    assert tight.history.cut
    assert tight.history.messages[1].content.endswith("…")
    assert tight.hits
    assert recount(recollect, tight) == tight.spending.total <= 250
    roomy = await conversation.context("pages", 600, window=window)
    assert roomy.history.cut == (oversized is OversizedTurn.CUT)
    assert recount(recollect, roomy) == roomy.spending.total <= 600
    if oversized is OversizedTurn.CUT:
        assert roomy.spending.memories > 150
    assert (await conversation.context("pages", 12)).history.messages == ()


async def test_a_memory_that_is_too_long_is_shown_by_its_beginning(mind):
    conversation = mind.conversation("c")
    await mind.remember("The cat of Li is called Pascal. " * 200)
    context = await conversation.context(Cue(CUE, min_relevance=0), 200)
    [line] = context.lines
    assert line.level is DetailLevel.COMPACT
    assert context.block.splitlines()[3].endswith("Pascal.…")
    await mind.remember("Somebody has a dog")
    context = await conversation.context(Cue(CUE, min_relevance=0), 200)
    assert {hit.memory.content[:8] for hit in context.hits} == {"Somebody", "The cat "}
    # Where there is no room for that either, the best is cut; one that fits whole takes its place.
    context = await conversation.context(Cue(CUE, min_relevance=0), 75)
    assert [hit.memory.content for hit in context.hits] == ["Somebody has a dog"]


async def test_the_lines_of_a_prompt_lead_back_to_its_memories(mind):
    conversation = mind.conversation("c")
    await mind.remember(["The cat of Li is called Pascal.", "Li has a dog that is called Blaise."])
    context = await conversation.context(replace(Cue(CUE), zone="Pacific/Auckland"), 400)
    assert {line.memory_id for line in context.lines} == {hit.memory.id for hit in context.hits}
    for line in context.lines:
        assert f"[{line.short_id}] " in context.block
        assert (await mind.get(line.short_id)).id == line.memory_id


async def test_what_cannot_be_is_refused_with_the_reason(mind):
    conversation = mind.conversation("c")
    with pytest.raises(InvalidInputError, match="need 25 tokens, 15 more than the budget of 10"):
        await conversation.context("one two three four five", 10, system="one two three four five six seven eight nine")
    with pytest.raises(InvalidInputError, match="budget"):
        await conversation.context("cat", 0)
    with pytest.raises(InvalidInputError, match="shares"):
        await conversation.context("cat", shares=BudgetShares(1, 1, 1))
    with pytest.raises(InvalidInputError, match="query or an embedding"):
        await conversation.context(" ")
    with pytest.raises(InvalidInputError, match="system"):
        await conversation.context("cat", system="\x00")
    with pytest.raises(InvalidInputError, match="conversation"):
        await mind.conversation("no such name").context("cat")
    with pytest.raises(InvalidInputError, match="message_limit"):
        await conversation.context("cat", window=HistoryOptions(message_limit=0))


async def test_only_what_is_shown_counts_as_accessed(mind, owner):
    conversation = mind.conversation("c")
    await mind.remember([f"The cat number {number} sleeps" for number in range(50)])

    def logged():
        return [ids for (ids,) in owner.execute("select ids from access_log").fetchall()]

    await conversation.context(Cue("cat", touch=False), 300)
    assert logged() == []
    context = await conversation.context("cat", 300)
    assert 0 < len(context.hits) < 50
    [ids] = logged()
    assert set(ids) == {hit.memory.id for hit in context.hits}


async def test_the_right_is_that_of_a_recall(mind):
    reader = replace(mind.access.caller, rights=frozenset({Right.READ}))
    conversation = with_access(mind, caller=reader).conversation("c")
    await conversation.context("cat")
    with pytest.raises(ForbiddenError):
        await conversation.context(Cue("cat", now=datetime(2026, 5, 4, tzinfo=UTC)))


async def test_a_long_question_is_asked_whole_and_recalled_by_its_end(mind):
    await mind.remember(["The cat of Li is called Pascal", "Bob likes trains"])
    conversation = mind.conversation("c")
    question = "Some words of no use. " * 600 + CUE
    context = await conversation.context(Cue(question, limit=1), 8_000)
    assert context.messages[-1]["content"] == question
    assert context.hits[0].memory.content == "The cat of Li is called Pascal"


async def test_a_prompt_does_without_what_does_not_answer(mind, embedder):
    conversation = mind.conversation("c")
    await conversation.append(turn("My cat is called Pascal.", "Hello Pascal."))
    embedder.fail()
    context = await conversation.context("cat", 300)
    assert context.methods["vector"].startswith("skipped")
    assert context.history.messages
    alone = await conversation.context(Cue("cat", channels=("vector",)), 300)
    assert (alone.hits, alone.block) == ((), "")
    assert alone.history.messages


async def test_a_vector_alone_asks_no_question(mind, embedder):
    conversation = mind.conversation("c")
    await conversation.append(turn("one", "two"))
    await mind.remember("The cat of Li is called Pascal")
    [vector] = await embedder.embed(["cat"])
    context = await conversation.context(Cue(embedding=vector.tolist()), 300)
    assert [message["role"] for message in context.messages] == ["system", "user", "assistant"]


async def test_a_context_shows_so_many_turns_at_most(mind):
    conversation = mind.conversation("c")
    await add_turns(conversation, 5)
    every = (await conversation.context("trains", 4000)).history.messages
    assert len(every) == 10
    shown = await conversation.context("trains", 4000, window=HistoryOptions(message_limit=2))
    assert shown.history.messages == every[-4:]
    await conversation.append([NewMessage(Role.USER, "Which trains?")])
    asked = await conversation.context("Which trains?", 4000, window=HistoryOptions(message_limit=2))
    assert (asked.history.messages, asked.asked is not None) == (every[-4:], True)


@pytest.mark.parametrize("name", ["deepseek-chat", "qwen2.5-7b", "some-model", "estimate"])
async def test_a_context_that_is_estimated_says_so(mind, name):
    conversation = mind.conversation("c")
    await add_turns(conversation, 2)
    exact = await conversation.context("trains", 4000, window=HistoryOptions(tokenizer="gpt-4o"))
    assert (exact.history.tokenizer, exact.history.exact) == ("o200k_base", True)
    made = await conversation.context("trains", 4000, window=HistoryOptions(tokenizer=name))
    assert (made.history.tokenizer, made.history.exact) == ("estimate", False)
    assert made.spending.total >= exact.spending.total


async def test_messages_that_no_tokenizer_counted_before_are_counted_now(recollect, mind, owner):
    conversation = mind.conversation("c")
    await add_turns(conversation, 20)
    exact = await conversation.context("trains", 400, shares=BudgetShares(1, 0, 0))
    owner.execute("update messages set tokens = tokens - 'o200k_base'")
    context = await conversation.context("trains", 400, shares=BudgetShares(1, 0, 0))
    assert context.history.exact
    assert recount(recollect, context) == context.spending.total
    assert len(exact.history.messages) - 4 <= len(context.history.messages) <= len(exact.history.messages)


async def test_history_and_recall_are_read_side_by_side(recollect, mind, monkeypatch):
    """None of the three goes on before all have asked; to locate, rank, compare and fetch is the longest way."""
    conversation = mind.conversation("c")
    await conversation.append(turn("My cat is called Pascal.", "Hello Pascal."))
    await mind.remember("Li lives in Leuven")
    trips, meeting, caller = Counter(), asyncio.Barrier(3), asyncio.current_task()
    pool = recollect.parts.database._pool
    connect = pool.connection

    @asynccontextmanager
    async def lend():
        task = asyncio.current_task()
        trips[task] += 1
        if task is not caller and trips[task] == 1:
            await meeting.wait()
        async with connect() as connection:
            yield connection

    monkeypatch.setattr(pool, "connection", lend)
    async with asyncio.timeout(WAIT_SECONDS):
        assert (await conversation.context(Cue(CUE, min_relevance=0), 500)).hits
    # The caller's own round trip comes last: it notes the access.
    assert trips.pop(caller) == 1
    assert sorted(trips.values()) == [1, 1, 4]
