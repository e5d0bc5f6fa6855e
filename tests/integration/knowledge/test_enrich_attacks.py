"""Enrichment under attack: what goes, comes back or breaks while a segment is made neither returns nor blocks."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from integration.knowledge.test_enrich import (
    ROWING,
    TAXES,
    extraction,
    fall_silent,
    plain,
    run,
    said,
    scripted,
    segments_of,
)
from recollect.errors import ChatModelError, UnavailableError
from recollect.jobs.enrich import close_silent
from recollect.jobs.worker import IDLE, Tasks
from recollect.models.conversations import ConversationState
from recollect.models.knowledge import SegmentEnd, SegmentState
from recollect.store.conversations import lifecycle
from recollect.store.conversations.lifecycle import StateChange
from recollect.store.knowledge import segments
from recollect.verbs.knowledge import enrich as verb
from recollect.verbs.knowledge.enrich import MAX_ATTEMPTS
from recollect.verbs.knowledge.steps import STEPS, choose_steps
from recollect.verbs.knowledge.steps.draft import Step

__all__ = ["plain"]
SECRET = "The boat on the lake is called Marigold"
WAITING = "select count(*) from procrastinate_jobs where task_name = 'enrich' and status = 'todo'"


async def close_all(mind, *conversations, texts=ROWING):
    for conversation in conversations:
        await mind.conversation(conversation).append(said(texts))
        await mind.conversation(conversation).update(close_segment=True)


def stepped(running, **steps):
    """A Recollect with steps of its own in place of the usual ones."""
    changed = {name: Step(name, STEPS[name].stage, step) for name, step in steps.items()}
    return replace(running, parts=replace(running.parts, steps={**running.parts.steps, **changed}))


def drop_jobs(owner):
    owner.execute("delete from procrastinate_jobs")


async def bring_back(mind, running, owner):
    """Restore a deleted conversation of which nothing is back yet."""
    [(scope_id,)] = owner.execute("select id from scopes").fetchall()
    change = StateChange(ConversationState.ACTIVE, "somebody")
    await lifecycle.change(running.parts.database, mind.access.scope, "c", change)
    return scope_id


async def test_what_is_running_in_a_restored_conversation_waits_until_it_is_back(plain, owner):
    mind = await plain.mind("ada", "li")
    await mind.conversation("c").append(said([*ROWING, *TAXES]))
    await mind.conversation("c").delete()
    scope_id = await bring_back(mind, plain, owner)
    fall_silent(owner)
    assert await run(plain, mind, owner) == 0
    await mind.conversation("c").update(close_segment=True)
    assert await mind.conversation("c").segments() == []
    drop_jobs(owner)
    await close_silent(plain.parts.database, 60)
    assert owner.execute(WAITING).fetchone() == (0,)
    assert owner.execute("select segmented_number from conversations").fetchone() == (0,)
    while await lifecycle.sync_chunk(plain.parts.database, scope_id):
        pass
    assert owner.execute(WAITING).fetchone() == (1,)
    assert await run(plain, mind, owner) == 2
    assert [each.last_number for each in await segments_of(mind)] == [3, 9]


async def test_a_closed_segment_of_a_restored_conversation_waits_until_it_is_back(plain, owner):
    mind = await plain.mind("ada", "li")
    await close_all(mind, "c")
    await mind.conversation("c").delete()
    scope_id = await bring_back(mind, plain, owner)
    assert await run(plain, mind, owner) == 0
    while await lifecycle.sync_chunk(plain.parts.database, scope_id):
        pass
    assert await run(plain, mind, owner) == 1
    [segment] = await segments_of(mind)
    assert len((await mind.get(segment.summary_id)).evidence) == 3


async def test_a_segment_that_is_brought_back_while_it_is_read_is_read_again(plain, owner):
    async def vanish(_, draft):
        if len(draft.messages) == 3:
            owner.execute("update conversations set synced = false")
        return draft

    running = stepped(plain, link=vanish)
    mind = await running.mind("ada", "li")
    await close_all(mind, "c")
    await run(running, mind, owner)
    assert [each.state for each in await segments_of(mind)] == [SegmentState.CLOSED]


async def test_an_extraction_of_what_is_being_forgotten_is_not_kept(recollect, owner):
    doomed = []

    def answer(prompt, _):
        if SECRET not in prompt:
            return extraction("They row.", "Rowing")
        # Somebody forgets it just now, and is done a moment later.
        owner.execute("begin")
        owner.execute("select id from scopes for no key update")
        owner.execute("delete from memories where id = %s", doomed)
        asyncio.get_running_loop().call_later(0.5, owner.execute, "commit")
        return extraction(f"{SECRET}.", "Marigold")

    running, chat = scripted(recollect, answer)
    mind = await running.mind("ada", "li")
    receipts = await mind.conversation("c").append(said([*ROWING, SECRET]))
    doomed.append(receipts[-1].id)
    await mind.conversation("c").update(close_segment=True)
    await run(running, mind, owner)
    assert chat.calls == 2
    [segment] = await segments_of(mind)
    assert (segment.state, segment.label) == (SegmentState.ENRICHED, "Rowing")
    assert owner.execute("select count(*) from extractions where content::text ~ 'Marigold'").fetchone() == (0,)
    assert owner.execute("select count(*) from memories where content ~ 'Marigold'").fetchone() == (0,)


async def test_a_label_of_what_was_forgotten_meanwhile_is_not_written(plain, owner, monkeypatch):
    mind = await plain.mind("ada", "li")
    receipts = await mind.conversation("c").append(said([SECRET, *ROWING]))
    drop_jobs(owner)
    fall_silent(owner)
    finding = verb.find_closings

    async def forget_meanwhile(*arguments):
        found = await finding(*arguments)
        await mind.forget([receipts[0].id])
        return found

    with monkeypatch.context() as patch:
        patch.setattr(verb, "find_closings", forget_meanwhile)
        assert await run(plain, mind, owner) == 0
    assert await segments_of(mind) == []
    assert owner.execute(WAITING).fetchone() == (1,)
    assert await run(plain, mind, owner) == 1
    [segment] = await segments_of(mind)
    assert "marigold" not in segment.label.lower()


async def test_a_segment_without_messages_goes_with_its_conversation(plain, owner):
    mind = await plain.mind("ada", "li")
    await close_all(mind, "gone", "kept")
    await mind.conversation("gone").append(said(TAXES))
    owner.execute(
        """insert into segments (scope_id, conversation_id, first_number, last_number, ending, label)
           select scope_id, id, 100, 200, 'asked', 'secret' from conversations"""
    )
    await mind.conversation("gone").purge()
    await plain.work(until_empty=True)
    assert owner.execute("select distinct conversation_id from segments").fetchall() == [("kept",)]


async def test_what_is_forgotten_while_a_segment_is_named_names_it_no_more(plain, owner):
    names, doomed = [], []

    async def name(_, draft):
        names.append(draft.messages[0].content)
        if doomed:
            await mind.forget([doomed.pop()])
        return replace(draft, label=draft.messages[0].content, summary="")

    running = stepped(plain, summarise=name)
    mind = await running.mind("ada", "li")
    receipts = await mind.conversation("c").append(said([SECRET, *ROWING]))
    await mind.conversation("c").update(close_segment=True)
    doomed.append(receipts[0].id)
    await run(running, mind, owner)
    assert names == [SECRET, ROWING[0]]
    [segment] = await segments_of(mind)
    assert (segment.state, segment.label) == (SegmentState.ENRICHED, ROWING[0])


async def test_a_conversation_that_cannot_be_cut_holds_no_other_back(plain, owner, caplog):
    async def broken(context, draft):
        if SECRET in draft.messages[0].content:
            raise KeyError(SECRET)
        return await STEPS["segment"].run(context, draft)

    running = stepped(plain, segment=broken)
    mind = await running.mind("ada", "li")
    await mind.conversation("one").append(said([SECRET, *ROWING]))
    await mind.conversation("two").append(said(TAXES))
    fall_silent(owner)
    assert await run(running, mind, owner) == 1
    assert [each.ending for each in await segments_of(mind, "two")] == [SegmentEnd.IDLE]
    assert "KeyError" in caplog.text and "Marigold" not in caplog.text


@pytest.mark.parametrize("limit", ["MAX_SEGMENTS_PER_JOB", "MAX_JOB_SECONDS"])
async def test_a_job_makes_room_after_some_segments_and_another_goes_on(plain, owner, monkeypatch, limit):
    mind = await plain.mind("ada", "li")
    await close_all(mind, *"abcde")
    drop_jobs(owner)
    if limit == "MAX_SEGMENTS_PER_JOB":
        monkeypatch.setattr(verb, limit, 2)
    else:
        ticks = iter(range(0, 1000, 25))
        monkeypatch.setattr(verb, "monotonic", lambda: next(ticks))
    assert await run(plain, mind, owner) == 2
    assert owner.execute(WAITING).fetchone() == (1,)
    await plain.work(until_empty=True)
    assert owner.execute("select count(*) from segments where state = 'enriched'").fetchone() == (5,)
    assert owner.execute(WAITING).fetchone() == (0,)


async def test_where_enrichment_failed_lately_it_rests_and_leaves_one_trace(plain, owner):
    mind = await plain.mind("ada", "li")
    await close_all(mind, "c")
    owner.execute("update procrastinate_jobs set status = 'failed' where task_name = 'enrich'")
    owner.execute("insert into job_failures (job_id, reason) select id, 'refused' from procrastinate_jobs")
    jobs = "select status::text from procrastinate_jobs where task_name = 'enrich'"
    await close_silent(plain.parts.database, 60)
    assert owner.execute(jobs).fetchall() == [("failed",)]
    owner.execute("update job_failures set failed_at = now() - interval '61 minutes'")
    await close_silent(plain.parts.database, 60)
    assert owner.execute(jobs).fetchall() == [("todo",)]


async def test_without_the_step_that_cuts_nothing_is_queued(plain, owner):
    running = replace(plain, parts=replace(plain.parts, steps=choose_steps("summarise")))
    mind = await running.mind("ada", "li")
    await mind.conversation("c").append(said(ROWING))
    await mind.conversation("c").update(close_segment=True)
    assert await mind.conversation("c").segments() == []
    fall_silent(owner)
    await Tasks(None, running.parts, IDLE).close_silent(None, 0)
    assert owner.execute(WAITING).fetchone() == (0,)
    assert await run(running, mind, owner) == 0


async def test_a_segment_that_the_database_gives_up_on_is_left_with_nothing(plain, owner, monkeypatch):
    applying = verb.apply

    async def time_out(*arguments):
        if arguments[3].summary:
            raise UnavailableError("The statement took too long.")
        await applying(*arguments)

    mind = await plain.mind("ada", "li")
    await close_all(mind, "c")
    monkeypatch.setattr(verb, "apply", time_out)
    for _ in range(MAX_ATTEMPTS - 1):
        with pytest.raises(UnavailableError):
            await run(plain, mind, owner)
    assert await run(plain, mind, owner) == 1
    [segment] = await segments_of(mind)
    assert (segment.state, segment.reason) == (SegmentState.FAILED, "The statement took too long.")
    assert segment.summary_id is None


async def test_an_attempt_that_cannot_be_taken_back_hides_no_error(recollect, owner, monkeypatch):
    running, chat = scripted(recollect, extraction())
    mind = await running.mind("ada", "li")
    await close_all(mind, "c")
    chat.fail()
    counting = segments.count_attempt

    async def away(database, scope_id, segment_id, change=1):
        if change < 0:
            raise UnavailableError("away")
        await counting(database, scope_id, segment_id, change)

    monkeypatch.setattr(segments, "count_attempt", away)
    with pytest.raises(ChatModelError):
        await run(running, mind, owner)
