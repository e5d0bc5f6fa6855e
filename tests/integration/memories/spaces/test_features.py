"""What ranking and filters read of a memory is written with it, by every way in, and follows whatever changes it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recollect.core.memories.erasure import Restatement
from recollect.models.agents import MindSnapshot, Profile
from recollect.models.conversations import NewMessage
from recollect.models.items import DropItem, PutItem
from recollect.models.knowledge import NewFact
from recollect.models.memories import FadingRules, Kind, NewMemory, Role, Triple
from recollect.settings import Settings
from recollect.verbs.memories.load import restore_mind
from recollect.verbs.memories.rederive import rederive
from recollect.wiring import connected
from support.memories.feature_rows import count_states, read_features
from support.models.fake_chat import FakeChatModel
from support.service.known_numbers import first_number

OLD = datetime.now(UTC) - timedelta(days=900)
LATER = datetime.now(UTC) + timedelta(days=9)
NEW = [
    NewMemory("Did Ann have two cups yesterday?", speaker=" “Ann's” ", importance=9, expires_at=LATER, pinned=True),
    NewMemory("Ann drinks tea", Kind.THOUGHT, triple=Triple("Ann", "drinks", "tea"), evidence=(0,)),
    NewMemory("they talked of tea", Kind.CHAT, occurred_at=OLD),
    NewMemory("of tea", Kind.SUMMARY, keywords=("tea",)),
    NewMemory("…", embedding_text="an image"),
]


def expect(owner, **states):
    """Hold the features against what follows from the rest, and count them by state."""
    stored, expected = read_features(owner)
    assert stored == expected
    assert count_states(owner) == states


async def fill(mind):
    """Write by every way in; return the conversation."""
    [first, *_] = await mind.remember(NEW)
    await mind.load(NEW)
    talk = mind.conversation("c")
    await talk.append([NewMessage(Role.USER, "Always use tea?", name="Bob"), NewMessage(Role.ASSISTANT, "Fine.")])
    await talk.append(NewMessage(Role.USER, "From Monday on.", importance=7))
    put = PutItem(("users",), "tea", {"kind": "green"}, text="Bob likes green tea")
    await mind.items.batch([put, PutItem(("users",), "milk", {}, text="no milk"), PutItem(("users",), "plain", {})])
    await mind.items.batch([put, DropItem(("users",), "milk")])
    await mind.knowledge.add([NewFact("Ann", "lives in", "Rome", evidence=(first.id,), valid_at=OLD)])
    return talk


async def test_every_way_in_writes_the_features_of_what_it_stores(mind, recollect, owner):
    await fill(mind)
    empty = await recollect.mind("eve")
    saved = MindSnapshot(NEW, None, Profile(), 0, 0)
    await restore_mind(empty.access.parts, empty.access.caller, empty.access.scope, saved)
    expect(owner, current=20)
    assert owner.execute("select distinct speaker from memory_features order by 1").fetchall() == [
        ("",), ("ann",), ("bob",),
    ]  # fmt: skip
    places = "select conversation_id, role, number, kind from memory_features where number is not null order by number"
    assert owner.execute(places).fetchall() == [
        ("c", "user", 1, "message"), ("c", "assistant", 2, "message"), ("c", "user", 3, "message"),
    ]  # fmt: skip


async def test_features_follow_what_leaves_recall_and_comes_back(mind, owner):
    talk = await fill(mind)
    await talk.update(state="archived")
    expect(owner, current=12, in_archived=3)
    await talk.delete()
    expect(owner, current=12, deleted=3)
    await talk.update(state="active")
    expect(owner, current=15)
    owner.execute("update memories set created_at = %s, occurred_at = %s where kind = 'event'", [OLD, OLD])
    faded = await mind.fade(FadingRules(days=1))
    expect(owner, current=15 - faded.faded, faded=faded.faded)
    assert faded.faded
    ids = [each.id for each in (await mind.list(filter={"state": "faded"})).memories]
    await mind.restore(ids)
    expect(owner, current=15)
    [fact] = (await mind.knowledge.facts()).facts
    # A scope that is written to quickly is ahead of the clock.
    await mind.knowledge.end(fact.id, datetime.now(UTC) - timedelta(minutes=1))
    expect(owner, current=14, past=2)
    owner.execute("update memories set importance = 3, expires_at = now() where kind = 'event'")
    expect(owner, current=14, past=2)
    await mind.forget([each.id for each in (await mind.list(limit=100)).memories])
    expect(owner)


@pytest.mark.parametrize("version", [False, True])
async def test_features_follow_what_is_made_anew(addresses, embedder, owner, version):
    made = Restatement(text="Never yesterday?", subject="notes", predicate="say", object="no")
    async with connected(Settings(embedder="fake"), addresses, embedder, FakeChatModel(lambda *_: made)) as running:
        mind = await running.mind("ada", "li")
        talk = mind.conversation("c")
        [said] = await talk.append(NewMessage(Role.USER, "the secret"))
        [other] = await mind.remember("Tea is fine.")
        evidence = (said.id, other.id)
        kind = Kind.SUMMARY if version else Kind.THOUGHT
        await mind.remember(NewMemory("Two cups?", kind, speaker="Ann", evidence=evidence, pinned=True))
        expect(owner, current=3)
        await talk.purge()
        expect(owner, current=1, withheld=1)
        assert await rederive(running.parts, first_number(mind)) == 1
        expect(owner, current=2)
        assert owner.execute("select tells, pinned from memory_features where pinned").fetchall() == [(1 + 2 + 8, True)]
