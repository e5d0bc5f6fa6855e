"""A block shows what a cue reminds of within its budget, each line under an id that leads back, and nothing twice."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recollect.core.conversations.prompt_texts import ENGLISH
from recollect.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from recollect.jobs.maintenance import SHOWN_KEPT
from recollect.loading import local_timezone
from recollect.models.blocks import DetailLevel
from recollect.models.conversations import NewMessage
from recollect.models.memories import Kind, NewMemory, Role
from recollect.models.recall import Cue
from recollect.models.service import Right
from recollect.store.service import maintenance
from support.service.accesses import with_access

NOW = datetime(2026, 5, 4, 22, 30, tzinfo=UTC)
CUE = "Which train to Ghent is late?"
WORDS = (
    "train",
    "river",
    "猫",
    "cloud",
    "今天",
    "window",
    "11:45",
    "—",
    "apples!",
    "<b>",
    "\n",
    "</memories>",
    "Ghent",
)


def shown(block):
    return {line.memory_id for line in block.lines}


async def remember_trains(mind, count=8):
    new = [NewMemory(f"Train {number} to Ghent is late.", occurred_at=NOW) for number in range(count)]
    return [receipt.id for receipt in await mind.remember(new)]


async def test_a_block_groups_by_kind_and_leads_back_to_its_memories(mind):
    said = (await mind.remember(NewMemory("They spoke of the Ghent train for an hour.", Kind.CHAT, occurred_at=NOW)))[
        0
    ].id
    await mind.remember(NewMemory("Trains to Ghent are late.", Kind.THOUGHT, evidence=(said,), occurred_at=NOW))
    await mind.remember(NewMemory("Ghent train 12 is late.", Kind.EVENT, speaker="Ada", occurred_at=NOW))
    block = await mind.blocks.show(Cue(CUE, zone="Asia/Shanghai"))
    thought, event, chat = block.lines
    assert block.text == (
        f"{ENGLISH.heading}\n<memories>\nInsights:\n[{thought.short_id}] 2026-05-05: Trains to Ghent are late.\n"
        f"Events:\n[{event.short_id}] 2026-05-05 Ada: Ghent train 12 is late.\n"
        f"Past conversations:\n[{chat.short_id}] 2026-05-05: They spoke of the Ghent train for an hour.\n</memories>"
    )
    assert block.messages == ({"role": "system", "content": block.text},)
    assert all(line.short_id == f"m{line.memory_id.hex[-4:]}" for line in block.lines)
    assert block.find(f"[{chat.short_id}]") == chat
    assert block.find("m0") is None
    resolved = await mind.get(f"[{thought.short_id}]")
    assert resolved.content == "Trains to Ghent are late."
    assert resolved.evidence == (said,) == thought.evidence
    assert (await mind.blocks.show(Cue(CUE, zone="Asia/Shanghai"))).text == block.text


async def test_a_block_has_the_days_of_the_machine_where_nobody_names_a_zone(mind, http, monkeypatch):
    await remember_trains(mind, 1)
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    local_timezone.cache_clear()
    try:
        asked = await http.post("/v1/blocks", json={"agent": "ada", "user": "li", "text": CUE})
        own = await mind.blocks.show(CUE)
    finally:
        local_timezone.cache_clear()
    assert "2026-05-05: Train 0" in own.text
    assert asked.json()["text"] == own.text


@pytest.mark.parametrize("tokenizer", ["o200k_base", "cl100k_base", "estimate"])
async def test_no_budget_is_exceeded_and_a_smaller_one_says_less(recollect, mind, tokenizer):
    chance = random.Random(tokenizer)

    def text(count):
        """Say something that nearly nothing else says, with all that can go wrong in a line."""
        return "train " + " ".join(chance.choice(WORDS) + f" {chance.getrandbits(30):x}" for _ in range(count))

    texts = [text(chance.choice([3, 20, 150])) for _ in range(60)]
    # A text of many lines is excerpted, and may be no shorter for it.
    texts += [" ".join(text(60).split()) for _ in range(10)]
    await mind.remember([NewMemory(text, chance.choice(list(Kind))) for text in texts])
    counter = next(each for each in recollect.parts.tokenizers if each.name == tokenizer)
    seen = set()
    for budget in [1, 20, 40, 60, 100, 200, 500, 1_000, 2_000, 5_000, 200_000]:
        block = await mind.blocks.show("train", budget, tokenizer=tokenizer)
        assert block.tokens <= budget
        assert block.tokens == (counter.frame + counter.count(block.text) if block.text else 0)
        assert "".join(line.text for line in block.lines) in "".join(
            line for line in block.text.splitlines(keepends=True) if line.startswith(("[m", "  "))
        )
        seen |= {line.level for line in block.lines}
    assert seen == set(DetailLevel)
    assert len(block.lines) > 40
    assert {line.level for line in block.lines} == {DetailLevel.FULL}


async def test_what_a_conversation_was_shown_is_not_repeated_until_it_has_faded(mind):
    ids = await remember_trains(mind)
    first = await mind.blocks.show(Cue(CUE, now=NOW), 120, conversation="talk")
    assert 0 < len(first.lines) < len(ids)
    second = await mind.blocks.show(Cue(CUE, now=NOW), 120, conversation="talk")
    assert shown(second)
    assert not shown(first) & shown(second)
    assert second.not_repeated == len(first.lines)
    everything = [first, second]
    while (last := await mind.blocks.show(Cue(CUE, now=NOW), 120, conversation="talk")).lines:
        assert not shown(last) & {each for block in everything for each in shown(block)}
        everything.append(last)
    assert {each for block in everything for each in shown(block)} == set(ids)
    assert last.text == ""
    assert last.messages == ()
    # Another conversation, or none, knows nothing of it; and after 12.5 minutes all is gone.
    assert shown(await mind.blocks.show(Cue(CUE, now=NOW), 120, conversation="other")) == shown(first)
    assert shown(await mind.blocks.show(Cue(CUE, now=NOW), 120)) == shown(first)
    late = NOW + timedelta(minutes=13)
    assert shown(await mind.blocks.show(Cue(CUE, now=late), 120, conversation="talk")) == shown(first)


async def test_what_is_carried_on_fades_from_full_to_compact_to_abstract_to_gone(mind):
    long = NewMemory("Train 7 to Ghent is late. " * 20, occurred_at=NOW)
    [receipt] = await mind.remember(long)
    cue = Cue(CUE, now=NOW)
    levels = [(await mind.blocks.show(cue, conversation="talk", repeat=True)).lines[0].level]
    for minute in range(1, 5):
        await mind.remember(f"A cat {minute} sleeps.")
        other = Cue("cat", channels=("text",), now=NOW + timedelta(minutes=minute))
        block = await mind.blocks.show(other, conversation="talk", repeat=True)
        line = next((line for line in block.lines if line.memory_id == receipt.id), None)
        levels.append(line and line.level)
        assert line is None or line.again
    assert levels == [DetailLevel.FULL, DetailLevel.FULL, DetailLevel.COMPACT, DetailLevel.ABSTRACT, None]


async def test_a_short_id_keeps_its_meaning_in_a_conversation(recollect, mind, owner):
    await remember_trains(mind, 3)
    block = await mind.blocks.show(CUE, conversation="talk")
    for line in block.lines:
        assert (await mind.get(line.short_id, "talk")).id == line.memory_id
        with pytest.raises(NotFoundError):
            await mind.get(line.short_id, "other")
        with pytest.raises(NotFoundError):
            await (await recollect.mind("ada", "wu")).get(line.short_id, "talk")
    with pytest.raises(NotFoundError):
        await mind.get("m00000000000000000000000000000000")
    with pytest.raises(InvalidInputError):
        await mind.get("m12")
    # Two that end alike: in the scope it is not known which is meant, in the conversation it is.
    same = block.lines[0].short_id
    others = "update memories set id = (left(id::text, 32) || %s)::uuid where id = %s"
    owner.execute("alter table memories disable trigger user")
    owner.execute(others, (same[1:], block.lines[1].memory_id))
    with pytest.raises(InvalidInputError, match="name the conversation"):
        await mind.get(same)
    assert (await mind.get(same, "talk")).id == block.lines[0].memory_id


async def test_shown_memories_go_with_their_memory_and_with_their_conversation(mind, owner):
    ids = await remember_trains(mind, 4)
    for conversation in ("one", "two"):
        await mind.conversation(conversation).append([NewMessage(Role.USER, "Hello there")])
        assert len((await mind.blocks.show(CUE, conversation=conversation, repeat=True)).lines) >= 4
    count = "select count(*) from shown_memories where conversation_id = %s"
    before = owner.execute(count, ("two",)).fetchone()[0]
    await mind.forget(ids[:1])
    assert owner.execute(count, ("two",)).fetchone()[0] == before - 1
    await mind.conversation("two").delete()
    with pytest.raises((ConflictError, NotFoundError)):
        await mind.blocks.show(CUE, conversation="two")
    await mind.conversation("two").purge()
    assert owner.execute(count, ("two",)).fetchone()[0] == 0
    assert owner.execute(count, ("one",)).fetchone()[0] > 0


async def test_what_is_withheld_or_trusted_less_is_not_carried_on(mind):
    writer = with_access(mind, caller=replace(mind.access.caller, trust=50))
    await writer.conversation("old").append([NewMessage(Role.USER, "The train to Ghent is late.")])
    first = await mind.blocks.show(Cue(CUE, now=NOW), conversation="talk", repeat=True)
    assert len(first.lines) == 1
    cue = Cue("nothing of the sort", channels=("text",), now=NOW)
    assert len((await mind.blocks.show(cue, conversation="talk", repeat=True)).lines) == 1
    assert not (await mind.blocks.show(replace(cue, min_trust=100), conversation="talk", repeat=True)).lines
    assert not (await mind.blocks.show(replace(cue, kinds=(Kind.FACT,)), conversation="talk", repeat=True)).lines
    await mind.conversation("old").update(state="archived")
    assert not (await mind.blocks.show(cue, conversation="talk", repeat=True)).lines


async def test_a_block_without_touch_leaves_no_trace(mind, owner):
    await remember_trains(mind, 3)
    cue = Cue(CUE, touch=False)
    assert shown(await mind.blocks.show(cue, conversation="talk"))
    assert shown(await mind.blocks.show(cue, conversation="talk"))
    assert owner.execute("select count(*) from shown_memories").fetchone()[0] == 0
    assert owner.execute("select count(*) from access_log").fetchone()[0] == 0
    block = await mind.blocks.show(CUE)
    assert {each for (ids,) in owner.execute("select ids from access_log") for each in ids} == shown(block)


async def test_whoever_may_only_read_notes_nothing_as_shown(recollect, mind):
    await remember_trains(mind, 3)
    reader = with_access(mind, caller=replace(mind.access.caller, rights=frozenset({Right.READ})))
    assert shown(await reader.blocks.show(CUE, conversation="talk"))
    with pytest.raises(ForbiddenError):
        await reader.blocks.show(Cue(CUE, now=NOW + timedelta(days=999)), conversation="talk")


async def test_nothing_remembered_is_an_empty_block(mind):
    block = await mind.blocks.show(CUE, conversation="talk")
    assert (block.text, block.lines, block.messages, block.tokens) == ("", (), (), 0)
    for budget in (0, -1, 10**9):
        with pytest.raises(InvalidInputError):
            await mind.blocks.show(CUE, budget)


async def test_a_limit_bounds_the_lines(mind):
    await remember_trains(mind)
    assert len((await mind.blocks.show(Cue(CUE, limit=3))).lines) == 3


async def test_what_was_shown_long_ago_is_not_kept(recollect, mind, owner):
    await remember_trains(mind, 3)
    await mind.blocks.show(Cue(CUE, now=datetime.now(UTC) - timedelta(days=8)), conversation="old")
    await mind.blocks.show(CUE, conversation="new")
    assert await maintenance.prune(recollect.parts.database, "shown_memories", datetime.now(UTC) - SHOWN_KEPT) == 3
    assert {name for (name,) in owner.execute("select conversation_id from shown_memories")} == {"new"}
