"""Topics in the real store: golden recalls through the channel, filing, sight, forgetting and the order of the tree."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from recollect.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from recollect.models.conversations import NewMessage
from recollect.models.memories import Kind, NewMemory, Role
from recollect.models.recall import Cue, Status
from recollect.models.service import Right
from recollect.models.topics import LinkStrength, NewTopicLink, Topic
from support.imports.generative_agents import read_golden
from support.memories.topic_cases import at, links_of, propose, references
from support.service.accesses import with_access

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)
TABLES = ("topics", "topic_links", "related_topics")


async def remember(mind, *contents, **fields):
    receipts = await mind.remember([NewMemory(content, **fields) for content in contents])
    return [receipt.id for receipt in receipts]


async def recall(mind, *topics, now=NOW, **bounds):
    """Give the contents of what the channel proposes."""
    proposal = await propose(mind, *topics, now=now, **bounds)
    return [(await mind.get(each.id)).content for each in proposal.candidates]


def rows(owner, *tables):
    return [owner.execute(f"select count(*) from {table}").fetchone()[0] for table in tables or TABLES]


async def paths(mind, path=""):
    return [topic.path for topic in (await mind.topics.tree(path)).topics]


async def test_every_golden_case_is_recalled_through_the_channel(recollect, shared):
    golden = read_golden(shared, "golden_topic_recall")
    for number, case in enumerate(golden["cases"]):
        mind = await recollect.mind("golden", f"case-{number}")
        names = references(case)
        ids = dict(zip(names, await remember(mind, *names), strict=True))
        for link in links_of(case, ids):
            await mind.topics.link(link.path, NewTopicLink(link.memory_id, link.reach, link.related, link.occurred_at))
        found = await propose(mind, case["query"], now=at(case["now_ms"]), limit=golden["limits"]["result"])
        if case["expected"] is None:
            assert ([*found.candidates], found.method) == ([], "skipped: unknown topic")
            continue
        written = {identity: name for name, identity in ids.items()}
        assert [written[each.id] for each in found.candidates] == [each["ref"] for each in case["expected"]], case[
            "name"
        ]
        scores = [each.score for each in found.candidates]
        assert scores == pytest.approx([each["score"] for each in case["expected"]], abs=golden["tolerance"])
        assert found.method == "exact"


async def test_a_recall_by_topic_finds_what_is_filed_there(mind):
    await remember(mind, "a ryokan in Kyoto", topic="Travel->Japan")
    await remember(mind, "a tent in Norway", topic="Travel->Norway")
    found = await mind.recall(Cue("holidays", channels=("topic",), topics=("travel->japan",)))
    assert ([hit.memory.content for hit in found.hits], found.methods) == (["a ryokan in Kyoto"], {"topic": "exact"})
    found = await mind.recall(Cue("holidays", channels=("topic",), topics=("travel->japanese",)))
    assert (found.status, found.methods) == (Status.ERROR, {"topic": "skipped: unknown topic"})


async def test_a_memory_is_filed_in_the_transaction_that_stores_it(mind, owner):
    [ryokan, ramen] = await mind.remember(
        [
            NewMemory("a ryokan in Kyoto", topic="Travel -> Japan", related_topics=("Food->Noodles",)),
            NewMemory("ramen in Tokyo", topic="travel->japan [2]", reach=LinkStrength(0.9, 0.0, 0.2)),
        ]
    )
    tree = await mind.topics.tree()
    assert tree.related == ()
    assert tree.topics == (
        Topic("Food", "Food", 0, 0),
        Topic("Food->Noodles", "Noodles", 0, 0),
        Topic("Travel", "Travel", 0, 2),
        Topic("Travel->Japan", "Japan", 2, 0),
    )
    [link] = await mind.topics.links(memory_id=ryokan.id)
    assert (link.path, link.related, link.reach) == ("Travel->Japan", ("Food->Noodles",), LinkStrength())
    assert {each.memory_id for each in await mind.topics.links("TRAVEL->japan")} == {ryokan.id, ramen.id}
    assert (await recall(mind, "travel->Japan")) == ["ramen in Tokyo", "a ryokan in Kyoto"]
    [related] = (await mind.topics.tree("Travel->Japan")).related
    assert (related.path, related.diffusion, related.links) == ("Food->Noodles", 0.35, 1)
    with pytest.raises(InvalidInputError):
        await mind.remember(NewMemory("x", topic="->"))
    assert rows(owner) == [4, 2, 1]


async def test_a_load_is_filed_as_well(mind):
    await mind.load([NewMemory(f"memory {number}", topic=f"load->{number % 3}") for number in range(9)])
    assert [(topic.path, topic.memories, topic.below) for topic in (await mind.topics.tree()).topics] == [
        ("load", 0, 9),
        ("load->0", 3, 0),
        ("load->1", 3, 0),
        ("load->2", 3, 0),
    ]


async def test_the_same_key_with_another_topic_is_another_body(mind):
    await mind.remember(NewMemory("x", topic="a"), idempotency_key="k")
    await mind.remember(NewMemory("x", topic="a"), idempotency_key="k")
    with pytest.raises(ConflictError):
        await mind.remember(NewMemory("x", topic="b"), idempotency_key="k")


async def test_the_channel_keeps_within_the_bounds_of_the_cue(mind, recollect):
    first, second = await remember(
        mind, "an event", "an older event", topic="a->b", occurred_at=NOW - timedelta(days=9)
    )
    written = (await mind.get(second)).created_at
    [thought] = await remember(mind, "a thought", kind=Kind.THOUGHT, topic="a->b", occurred_at=NOW)
    assert (await recall(mind, "a->b", kinds=(Kind.THOUGHT,))) == ["a thought"]
    assert (await recall(mind, "a->b", min_trust=100)) == ["a thought", "an event", "an older event"]
    assert (await recall(mind, "a->b", at=NOW - timedelta(days=1))) == ["an event", "an older event"]
    assert (await recall(mind, "a->b", as_of=written)) == ["an event", "an older event"]
    assert (await recall(mind, "a", below=True, kinds=(Kind.THOUGHT,))) == ["a thought"]
    assert (await recall(mind, "a")) == []
    assert (await propose(mind, now=NOW)).method == "skipped: no topic in the query"
    assert (await recall(mind, "a->b", "nowhere", "a->b"))[0] == "a thought"
    await mind.topics.unlink("a->b", [thought, first])
    assert (await recall(mind, "a->b")) == ["an older event"]


async def test_a_topic_with_very_many_links_is_searched_among_the_newest(mind):
    await mind.load([NewMemory(f"memory {n}", topic="much", occurred_at=NOW - timedelta(hours=n)) for n in range(501)])
    assert await recall(mind, "much", limit=3) == ["memory 0", "memory 1", "memory 2"]
    assert (await propose(mind, "much", now=NOW)).method == "approximate"


async def test_what_is_forgotten_takes_its_topics_along(mind, owner):
    [gone, kept] = await remember(mind, "gone", "kept", topic="a->b", related_topics=("c",))
    await mind.topics.link("a->d->e", gone)
    await mind.forget([gone])
    assert await paths(mind) == ["a", "a->b", "c"]
    await mind.forget([kept])
    assert rows(owner) == [0, 0, 0]


async def test_names_from_a_purged_conversation_go_with_it(mind, owner):
    conversation = mind.conversation("c")
    appended = await conversation.append(
        [NewMessage(Role.USER, "I have cancer"), NewMessage(Role.ASSISTANT, "I am sorry")]
    )
    await mind.topics.link("Health->Cancer", NewTopicLink(appended[0].id, related=("Hospitals",)))
    [summary] = await mind.remember(
        NewMemory("Both spoke.", kind=Kind.SUMMARY, evidence=tuple(each.id for each in appended), topic="Health->Talks")
    )
    await mind.remember(NewMemory("runs daily", topic="Health"))
    await conversation.update(state="archived")
    assert await paths(mind) == ["Health", "Health->Cancer", "Health->Talks", "Hospitals"]
    assert (await recall(mind, "Health->Cancer")) == ["runs daily"]
    await conversation.delete()
    assert await paths(mind) == ["Health"]
    assert await mind.topics.links(memory_id=summary.id) == []
    with pytest.raises(NotFoundError):
        await mind.topics.tree("Health->Cancer")
    await conversation.update(state="active")
    assert await paths(mind) == ["Health", "Health->Cancer", "Health->Talks", "Hospitals"]
    await conversation.purge()
    assert owner.execute("select name from topics").fetchall() == [("Health",)]
    assert rows(owner) == [1, 1, 0]


async def test_what_lost_some_of_its_evidence_is_filed_nowhere(mind, owner):
    one, two = mind.conversation("one"), mind.conversation("two")
    [first] = await one.append(NewMessage(Role.USER, "Oslo is cold"))
    [second] = await two.append(NewMessage(Role.USER, "Bergen is wet"))
    await mind.remember(NewMemory("Norway.", kind=Kind.THOUGHT, evidence=(first.id, second.id), topic="Oslo"))
    await one.purge()
    assert rows(owner) == [0, 0, 0]


async def test_a_topic_is_renamed_with_all_below_it(mind):
    await remember(mind, "x", topic="a->b->c", related_topics=("a->b->d",))
    assert await mind.topics.update("a->B", name="Bees") == Topic("a->Bees", "Bees", 0, 1)
    assert await paths(mind) == ["a", "a->Bees", "a->Bees->c", "a->Bees->d"]
    assert (await mind.topics.update("a->bees", name="BEES")).path == "a->BEES"
    assert (await mind.topics.links("a->bees->c"))[0].related == ("a->BEES->d",)
    assert (await recall(mind, "a->bees->c")) == ["x"]


async def test_a_topic_is_moved_and_what_it_leaves_empty_goes(mind):
    await remember(mind, "x", topic="a->b->c")
    await remember(mind, "y", topic="d")
    assert (await mind.topics.update("a->b", parent="d->e")).path == "d->e->b"
    assert await paths(mind) == ["d", "d->e", "d->e->b", "d->e->b->c"]
    assert (await mind.topics.update("d->e->b->c", name="C", parent="")).path == "C"
    assert await paths(mind) == ["C", "d"]


async def test_topics_are_merged_with_what_lies_below_them(mind):
    [both] = await remember(mind, "both", topic="car->price", occurred_at=NOW)
    [other] = await remember(mind, "other", topic="auto->price->sales", related_topics=("car", "auto->price"))
    await mind.topics.link(
        "auto->price", NewTopicLink(both, LinkStrength(0.1, 0.2, 0.3), ("x",), NOW + timedelta(days=1))
    )
    merged = await mind.topics.update("auto", into="car")
    assert merged == Topic("car", "car", 0, 2)
    assert await paths(mind) == ["car", "car->price", "car->price->sales", "x"]
    [link] = await mind.topics.links("car->price")
    assert (link.memory_id, link.reach, link.related) == (both, LinkStrength(0.1, 0.2, 0.3), ("x",))
    [link] = await mind.topics.links("car->price->sales")
    assert (link.memory_id, link.related) == (other, ("car", "car->price"))


async def test_a_topic_is_merged_into_the_one_above_it(mind):
    await remember(mind, "x", topic="a->b->b->c")
    await remember(mind, "y", topic="a->b")
    assert (await mind.topics.update("a->b", into="a")).memories == 1
    assert await paths(mind) == ["a", "a->b", "a->b->c"]


async def test_what_cannot_be_done_to_the_tree_is_refused_and_nothing_changes(mind, owner):
    await remember(mind, "x", topic="a->b")
    await remember(mind, "y", topic="c")
    before = await paths(mind)
    topics = mind.topics
    refused = [
        (topics.update("a", name="c"), ConflictError),
        (topics.update("a", name="c->d"), InvalidInputError),
        (topics.update("nowhere", name="x"), NotFoundError),
        (topics.update("a", parent="a->b"), InvalidInputError),
        (topics.update("nowhere", parent="a"), NotFoundError),
        (topics.update("a"), InvalidInputError),
        (topics.update("a", name="b", into="c"), InvalidInputError),
        (topics.update("a", into="a->b"), InvalidInputError),
        (topics.update("a", into="A"), InvalidInputError),
        (topics.update("a", into="nowhere"), NotFoundError),
        (topics.update("a", parent="->".join("efghijklmnopqrs")), InvalidInputError),
        (topics.link("a", uuid4()), NotFoundError),
        (topics.link("a", []), InvalidInputError),
        (topics.links(), InvalidInputError),
        (topics.tree(limit=0), InvalidInputError),
    ]
    for call, error in refused:
        with pytest.raises(error):
            await call
    assert await paths(mind) == before
    assert rows(owner) == [3, 2, 0]
    assert (await topics.tree(limit=1)).whole is False


async def test_only_who_may_write_changes_topics(recollect, mind):
    reader = with_access(mind, caller=replace(mind.access.caller, rights=frozenset({Right.READ})))
    await remember(mind, "x", topic="a")
    assert await paths(reader) == ["a"]
    with pytest.raises(ForbiddenError):
        await reader.topics.update("a", name="b")
    nobody = await recollect.mind("nobody")
    assert (await nobody.topics.tree()).topics == ()
    with pytest.raises(NotFoundError):
        await nobody.topics.update("a", name="b")


async def test_another_tenant_sees_and_changes_no_topic(recollect, mind):
    [own] = await remember(mind, "x", topic="a")
    stranger = await recollect.mind("ada", "li", tenant="other")
    await remember(stranger, "y", topic="b")
    with pytest.raises(NotFoundError):
        await stranger.topics.link("a", own)
    with pytest.raises(NotFoundError):
        await stranger.topics.update("a", into="b")
    assert await paths(stranger) == ["b"]
    assert await paths(mind) == ["a"]
