"""What is pinned stands in every context: first, the newest first, in a tenth of the budget, and never twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recollect.models.blocks import DetailLevel
from recollect.models.conversations import BudgetShares, NewMessage
from recollect.models.memories import Kind, NewMemory, Role
from recollect.models.recall import Cue
from support.service.accesses import with_access

CUE = "What is the cat of Li called?"
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def rule(number, **more):
    return NewMemory(f"Rule {number}: answer in verse.", occurred_at=NOW - number * HOUR, pinned=True, **more)


def pinned(context):
    return [line for line in context.lines if line.pinned]


async def test_the_pinned_come_before_all_that_is_recalled_the_newest_first(mind):
    await mind.remember([NewMemory("The cat of Li is called Pascal.", Kind.FACT, occurred_at=NOW)])
    stored = [receipt.id for receipt in await mind.remember([rule(2, kind=Kind.THOUGHT), rule(0), rule(1)])]
    context = await mind.conversation("c").context(CUE, 1_000)
    assert [line.memory_id for line in context.lines[:3]] == [stored[1], stored[2], stored[0]]
    assert [line.pinned for line in context.lines] == [True, True, True, False]
    headings = [line for line in context.block.splitlines() if line.endswith(":")]
    assert headings == ["Always keep in mind:", "Facts:"]
    assert context.pinned_left_out == ()


async def test_the_pinned_are_there_whatever_the_cue_and_where_nothing_is_recalled(mind):
    [stored] = await mind.remember(rule(0))
    context = await mind.conversation("c").context(Cue("zzz qqq", channels=("text",)), 1_000)
    assert [line.memory_id for line in context.lines] == [stored.id]
    assert context.hits == () and "Rule 0" in context.block


async def test_they_take_at_most_a_tenth_and_the_rest_is_named(mind):
    receipts = await mind.remember([rule(number) for number in range(30)])
    context = await mind.conversation("c").context(Cue("zzz", channels=("text",)), 1_000)
    shown = pinned(context)
    assert 1 < len(shown) < 30
    assert sum(line.tokens for line in shown) <= 100
    assert context.spending.total <= 1_000
    order = [receipt.id for receipt in receipts]
    assert [line.memory_id for line in shown] == [each for each in order if each in {line.memory_id for line in shown}]
    assert {*context.pinned_left_out} == {*order} - {line.memory_id for line in shown}
    assert [*context.pinned_left_out] == [each for each in order if each in {*context.pinned_left_out}]


async def test_one_that_is_recalled_as_well_is_shown_once(mind):
    [stored] = await mind.remember(NewMemory("The cat of Li is called Pascal.", pinned=True))
    await mind.remember("The cat of Li is called Pascal.")
    context = await mind.conversation("c").context(CUE, 1_000)
    assert context.block.count("Pascal") == 1
    assert [(line.memory_id, line.pinned) for line in context.lines] == [(stored.id, True)]


async def test_what_says_the_same_as_another_is_not_left_out_for_room(mind):
    first, second = await mind.remember([NewMemory("Answer in verse.", pinned=True, occurred_at=NOW)] * 2)
    context = await mind.conversation("c").context(Cue("zzz", channels=("text",)), 1_000)
    assert [line.memory_id for line in pinned(context)] == [second.id]
    assert context.pinned_left_out == () and first.id != second.id


async def test_one_that_did_not_fit_may_still_be_recalled(mind):
    long = "The cat of Li is called Pascal. " * 30
    [stored] = await mind.remember(NewMemory(long, occurred_at=NOW - HOUR, pinned=True))
    await mind.remember([rule(0), *(NewMemory(f"Rule {n}. " * 40, pinned=True, occurred_at=NOW) for n in range(2))])
    context = await mind.conversation("c").context(CUE, 800)
    [line] = [line for line in context.lines if line.memory_id == stored.id]
    assert not line.pinned
    assert stored.id not in context.pinned_left_out


async def test_what_the_thread_shows_is_not_shown_again(mind):
    conversation = mind.conversation("c")
    said = await conversation.append(
        [NewMessage(Role.USER, "Speak in verse."), NewMessage(Role.ASSISTANT, "I will, in verse.")]
    )
    await mind.update(said[0].id, pinned=True)
    context = await conversation.context(CUE, 1_000)
    assert context.block.count("Speak in verse.") == 0
    assert context.pinned_left_out == ()


async def test_the_pinned_obey_the_filter_of_the_cue(mind):
    wary = with_access(mind, caller=replace(mind.access.caller, trust=20))
    [event], [thought], [doubtful] = [
        await mind.remember(rule(0)),
        await mind.remember(rule(1, kind=Kind.THOUGHT)),
        await wary.remember(rule(2)),
    ]
    conversation = mind.conversation("c")

    async def shown(**only):
        return [line.memory_id for line in pinned(await conversation.context(Cue(CUE, **only), 2_000))]

    assert await shown() == [event.id, thought.id, doubtful.id]
    assert await shown(kinds=(Kind.THOUGHT,)) == [thought.id]
    assert await shown(min_trust=50) == [event.id, thought.id]
    assert await shown(at=NOW - HOUR) == [thought.id, doubtful.id]
    assert await shown(as_of=NOW - timedelta(days=99)) == []
    assert await shown(pinned=True) == [event.id, thought.id, doubtful.id]
    assert await shown(pinned=False) == []


async def test_what_takes_no_part_in_recall_is_not_shown(mind, owner):
    conversation = mind.conversation("other")
    [said] = await conversation.append([NewMessage(Role.USER, "Speak in verse.")])
    await mind.update(said.id, pinned=True)
    assert len(pinned(await mind.conversation("c").context(CUE, 1_000))) == 1
    await conversation.update(state="archived")
    assert pinned(await mind.conversation("c").context(CUE, 1_000)) == []


@pytest.mark.parametrize("budget", [40, 60, 100, 200, 400])
async def test_a_small_budget_holds(mind, budget):
    await mind.remember([rule(number) for number in range(5)])
    context = await mind.conversation("c").context(Cue("zzz", channels=("text",)), budget)
    assert context.spending.total <= budget
    assert len(pinned(context)) + len(context.pinned_left_out) == 5


async def test_without_a_share_of_memories_nothing_is_pinned(mind):
    await mind.remember(rule(0))
    context = await mind.conversation("c").context(CUE, 1_000, shares=BudgetShares(1, 0, 0))
    assert context.block == "" and context.lines == ()


async def test_to_be_shown_for_a_pin_is_no_access(mind):
    [stored] = await mind.remember(rule(0))
    before = (await mind.get(stored.id)).last_accessed_at
    await mind.conversation("c").context(Cue("zzz", channels=("text",)), 1_000)
    assert (await mind.get(stored.id)).last_accessed_at == before


async def test_a_block_alone_shows_the_pinned_first(mind):
    await mind.remember([NewMemory("The cat of Li is called Pascal.", Kind.FACT, occurred_at=NOW)])
    stored = [receipt.id for receipt in await mind.remember([rule(1), rule(0)])]
    block = await mind.blocks.show(CUE, 1_000)
    assert [line.memory_id for line in block.lines[:2]] == stored[::-1]
    assert [line.pinned for line in block.lines] == [True, True, False]
    assert block.text.index("Always keep in mind:") < block.text.index("Facts:")
    assert (block.left_out, block.pinned_left_out) == (0, ())


async def test_a_block_alone_gives_the_pinned_a_tenth_and_names_the_rest(mind):
    order = [receipt.id for receipt in await mind.remember([rule(number) for number in range(30)])]
    block = await mind.blocks.show(Cue("zzz", channels=("text",)), 1_000)
    shown = [line.memory_id for line in block.lines]
    assert 1 < len(shown) < 30 and sum(line.tokens for line in block.lines) <= 100
    assert [*block.pinned_left_out] == [each for each in order if each not in shown]
    assert (await mind.blocks.show(Cue("zzz", channels=("text",), pinned=False), 1_000)).lines == ()


async def test_in_a_conversation_the_pinned_are_carried_in_full_or_not_repeated(mind):
    [stored] = await mind.remember(rule(0))
    asked = Cue("zzz", channels=("text",), now=NOW)
    first = await mind.blocks.show(asked, 1_000, conversation="c")
    assert [(line.memory_id, line.again) for line in first.lines] == [(stored.id, False)]
    assert (await mind.blocks.show(asked, 1_000, conversation="c")).lines == ()
    later = replace(asked, now=NOW + timedelta(minutes=5))
    [line] = (await mind.blocks.show(later, 1_000, conversation="c", repeat=True)).lines
    assert (line.memory_id, line.again, line.pinned, line.level) == (stored.id, True, True, DetailLevel.FULL)
    assert line.short_id == first.lines[0].short_id
