"""A revised message stands where the old one stood, and what was derived from the old one is derived again."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from integration.conversations.test_purge import restating
from integration.knowledge.test_purge_knowledge import learn, names, texts, work
from recollect.models.conversations import HistoryOptions, NewMessage, Part, PartType
from recollect.models.filters import Filter
from recollect.models.memories import Kind, NewMemory, RecallState, Role
from recollect.models.recall import Cue
from recollect.settings import Settings
from recollect.wiring import connected
from support.models.fake_chat import FakeChatModel
from support.models.scripted_extractions import entity, fact
from support.service.accesses import with_access
from support.service.known_numbers import VECTORS
from support.service.purge_receipts import receipts_of


@pytest.fixture
async def learning(running):
    return await running.mind("ada", "li")


async def wait():
    await asyncio.sleep(0.005)
    moment = datetime.now(UTC)
    await asyncio.sleep(0.005)
    return moment


async def talk(mind, *said, conversation="c"):
    view = mind.conversation(conversation)
    roles = (Role.USER, Role.ASSISTANT)
    given = [NewMessage(roles[place % 2], text) for place, text in enumerate(said)]
    return view, [each.id for each in await view.append(given)]


async def shown(view, **window):
    history = await view.history(HistoryOptions(max_tokens=1_000, **window))
    return [(each.id, each.content) for each in history.messages]


def rows(owner, source):
    return owner.execute(f"select count(*) from {source}").fetchone()[0]


async def test_history_shows_the_new_version_in_place_of_the_old_one(mind):
    view, [one, two, three, four] = await talk(mind, "At four?", "Yes.", "Bring Ann.", "Fine.")
    before = await wait()
    first = (await mind.update(one, content="At five?")).id
    last = (await mind.update(four, content="Gladly, and with pleasure.")).id
    assert await shown(view) == [
        (first, "At five?"), (two, "Yes."), (three, "Bring Ann."), (last, "Gladly, and with pleasure.")
    ]  # fmt: skip
    then = [(one, "At four?"), (two, "Yes."), (three, "Bring Ann."), (four, "Fine.")]
    assert await shown(view, as_of=before) == then
    history = await view.history(HistoryOptions(max_tokens=1_000))
    past = await view.history(HistoryOptions(max_tokens=1_000, as_of=before))
    assert [each.number for each in history.messages] == [1, 2, 3, 4] == [each.number for each in past.messages]
    assert history.complete and past.complete
    assert [each.parent for each in history.messages] == [None, first, two, three]
    assert [each.parent for each in past.messages] == [None, one, two, three]
    assert [each.turn for each in history.messages] == [first, first, three, three]
    assert [each.turn for each in past.messages] == [one, one, three, three]
    assert history.messages[3].tokens > past.messages[3].tokens
    assert await shown(view, upstream=True) == await shown(view)
    assert await shown(view, upstream=True, as_of=before) == then


async def test_an_earlier_version_still_names_its_message(mind):
    view, [one, two] = await talk(mind, "At four?", "Yes.")
    before = await wait()
    first = (await mind.update(one, content="At five?")).id
    answer = (await mind.update(two, content="No.")).id
    [branch] = await view.append([NewMessage(Role.ASSISTANT, "Perhaps.", parent=one)])
    assert branch.parent == first
    assert await shown(view) == [(first, "At five?"), (branch.id, "Perhaps.")]
    assert await shown(view, leaf=two) == [(first, "At five?"), (answer, "No.")]
    assert await shown(view, leaf=answer, as_of=before) == [(one, "At four?"), (two, "Yes.")]
    assert {each.id for each in (await view.get()).threads} == {answer, branch.id}


async def test_what_is_no_text_stays_with_a_message(mind):
    parts = (Part(PartType.TEXT, "Look!"), Part(PartType.IMAGE, url="https://example.org/a.png"))
    view = mind.conversation("c")
    [said] = await view.append([NewMessage(Role.USER, parts=parts)])
    await mind.update(said.id, content="Look here!")
    [message] = (await view.history(HistoryOptions(max_tokens=1_000, unanswered=True))).messages
    assert (message.content, message.parts) == ("Look here!", parts[1:])


async def test_forgetting_a_version_of_a_message_gives_back_the_one_before(mind, owner):
    view, [one, two, three] = await talk(mind, "At four?", "Yes.", "Bring Ann.")
    first = (await mind.update(one, content="At five?")).id
    assert await mind.forget([first]) == [first]
    assert await shown(view, unanswered=True) == [(one, "At four?"), (two, "Yes."), (three, "Bring Ann.")]
    assert rows(owner, "past_messages") == 0
    first = (await mind.update(one, content="At six?")).id
    assert {*await mind.forget([one])} == {one, first}
    left = owner.execute("select id, parent_id from messages order by number").fetchall()
    assert left == [(two, None), (three, two)]
    assert rows(owner, "past_messages") == rows(owner, "beliefs") == 0


async def test_no_version_keeps_a_vector_that_knows_a_forgotten_message(recollect, mind, owner):
    view = mind.conversation("c")
    [secret] = await view.append([NewMessage(Role.USER, "The code is 1234.")])
    [answer] = await view.append([NewMessage(Role.ASSISTANT, "Noted.")])
    await recollect.work(until_empty=True)
    knowing = "context_vectors where id = %s"
    revised = (await mind.update(answer.id, importance=9)).id
    for each in (answer.id, revised):
        assert owner.execute(f"select count(*) from {knowing}", [each]).fetchone() == (1,)
    await mind.forget([secret.id])
    assert rows(owner, "context_vectors") == rows(owner, "withheld_vectors") == rows(owner, VECTORS) == 0
    await recollect.work(until_empty=True)
    assert [hit.memory.id for hit in (await mind.recall(Cue("Noted.", channels=("vector",)))).hits] == [revised]


async def test_what_follows_a_revised_message_is_embedded_with_its_new_words(recollect, mind, owner):
    _, [one, two] = await talk(mind, "At four?", "Yes.")
    await recollect.work(until_empty=True)
    vector = f"select embedding::text from {VECTORS} where id = %s"
    before = owner.execute(vector, [two]).fetchone()
    await mind.update(one, content="At nine?")
    await recollect.work(until_empty=True)
    assert owner.execute(vector, [two]).fetchone() != before


async def test_versions_go_with_their_conversation(recollect, mind, owner):
    view, [one, _] = await talk(mind, "At four?", "Yes.")
    before = await wait()
    first = (await mind.update(one, content="At five?")).id
    await view.update(state="archived")
    await recollect.work(until_empty=True)
    assert (await mind.recall(Cue("five", channels=("text",)))).hits == ()
    second = (await mind.update(first, content="At six?")).id
    assert (await mind.recall(Cue("six", channels=("text",)))).hits == ()
    assert (await shown(view))[0][0] == second
    assert await mind.forget([second]) == [second]
    states = {row[0]: row[1] for row in owner.execute("select id, withheld from memories").fetchall()}
    assert (states[one], states[first]) == ("past", "archived")
    await view.delete()
    then = Cue("four", channels=("text",), as_of=before)
    assert (await mind.recall(then)).hits == ()
    await recollect.work(until_empty=True)
    assert (await mind.recall(then)).hits == () and (
        await mind.list(filter=Filter(state=RecallState.PAST))
    ).memories == ()
    await view.update(state="active")
    await recollect.work(until_empty=True)
    assert [hit.memory.id for hit in (await mind.recall(then)).hits] == [one]
    assert [hit.memory.id for hit in (await mind.recall(Cue("five", channels=("text",)))).hits] == [first]
    await view.purge()
    await recollect.work(until_empty=True)
    for table in ("memories", "messages", "past_messages", "beliefs", "withheld_memories", "memory_features"):
        assert rows(owner, table) == 0, table
    [receipt] = await receipts_of(view)
    assert (receipt.removed["messages"], receipt.removed["derived"]) == (3, 0)


async def test_a_message_whose_writer_is_trusted_less_is_kept_aside(recollect, mind, owner):
    view, [one, two] = await talk(mind, "At four?", "Yes.")
    stranger = with_access(mind, caller=replace(mind.access.caller, trust=20))
    assert (await stranger.update(one, content="Never!")).contested
    assert await shown(view) == [(one, "At four?"), (two, "Yes.")] == await shown(view, as_of=await wait())
    await view.purge()
    await recollect.work(until_empty=True)
    assert rows(owner, "memories") == rows(owner, "past_messages") == 0


async def test_thoughts_and_summaries_are_worded_again(addresses, embedder):
    async with connected(Settings(embedder="fake"), addresses, embedder, FakeChatModel(restating)) as running:
        mind = await running.mind("ada", "li")
        [one, two] = [each.id for each in await mind.remember(["dentist at four", "it hurts"])]
        [thought] = await mind.remember(NewMemory("sees the dentist at four", Kind.THOUGHT, evidence=(one, two)))
        derived = [
            NewMemory("dentist: four", Kind.SUMMARY, evidence=(one,), pinned=True),
            NewMemory("busy at four", Kind.THOUGHT, evidence=(thought.id,)),
        ]
        summary, deeper = [each.id for each in await mind.remember(derived)]
        before = await wait()
        revised = await mind.update(one, content="dentist at five")
        assert {*revised.outdated} == {thought.id, summary, deeper}
        assert (await mind.recall(Cue("four", channels=("text",)))).hits == ()
        assert (await mind.overview()).to_rederive == 3
        await running.work(until_empty=True)
        everything = {each.content: each for each in (await mind.list()).memories}
        assert {*everything} == {
            "it hurts", "dentist at five", "Left: it hurts & dentist at five", "Left: dentist at five",
            "Left: Left: it hurts & dentist at five",
        }  # fmt: skip
        assert everything["Left: dentist at five"].pinned
        assert {hit.memory.content for hit in (await mind.recall(Cue("five", channels=("text",)))).hits} == {
            *everything
        } - {"it hurts"}
        old, new = (await mind.evidence(thought.id)).versions
        assert old.id == thought.id and {*new.evidence} == {revised.id, two} and new.depth == old.depth == 1
        then = (await mind.recall(Cue("four", channels=("text",), as_of=before))).hits
        assert {hit.memory.id for hit in then} == {one, thought.id, summary, deeper}
        # What others were derived from has not changed.
        third = await mind.update(revised.id, importance=9)
        assert third.outdated == () and len((await mind.list()).memories) == 5
        # And once it changes, they rest on an earlier version of it.
        assert len((await mind.update(third.id, content="dentist at six")).outdated) == 3
        await running.work(until_empty=True)
        assert {each.content for each in (await mind.list()).memories} >= {"Left: it hurts & dentist at six"}
        await mind.forget([one])
        assert [each.content for each in (await mind.list()).memories] == ["it hurts"]


async def test_what_a_segment_said_is_learned_again(running, learning, script, owner):
    mind = learning
    view, said = await learn(mind, script, "a", [entity("Ann"), entity("Oslo")], [fact("Ann", "lives in", "Oslo")])
    before = await wait()
    assert await texts(mind) == {"Ann lives in Oslo."}
    revised = await mind.update(said, content="We speak of Ann and Rome")
    assert await texts(mind) == set() and len(revised.outdated) >= 1
    script.extraction([entity("Ann"), entity("Rome")], [fact("Ann", "lives in", "Rome")])
    await work(running)
    assert await texts(mind) == {"Ann lives in Rome."} and await names(mind) >= {"Ann", "Rome"}
    assert await texts(mind, as_of=before) == {"Ann lives in Oslo."}
    [new] = (await mind.list(filter=Filter(kinds=(Kind.FACT,)))).memories
    assert revised.id in new.evidence
    await mind.forget([said])
    await view.purge()
    assert rows(owner, "memories") == rows(owner, "entities") == 0
