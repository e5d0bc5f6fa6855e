"""What a scope holds in numbers, by every kind, with what is out of recall; and how a topic stands."""

from __future__ import annotations

from datetime import UTC, datetime

from recollect import NewMemory
from recollect.models import Kind, NewFact
from recollect.models.memories import FadingRules
from recollect.models.topics import LinkStrength, NewTopicLink

SCOPE = {"agent": "ada", "user": "li"}
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


async def test_the_overview_counts_every_kind_and_what_is_out_of_recall(mind, http):
    await mind.remember([NewMemory("an event"), NewMemory("a chat", kind=Kind.CHAT)])
    await mind.remember([NewMemory("a thought", kind=Kind.THOUGHT), NewMemory("a summary", kind=Kind.SUMMARY)])
    await mind.remember(NewMemory("gone", occurred_at=LONG_AGO, expires_at=LONG_AGO.replace(year=2021)))
    await mind.knowledge.add(NewFact("Ann", "likes", "tea"))
    await mind.conversation("kept").append("hello")
    await mind.conversation("archived").append(["one", "two"])
    await mind.conversation("archived").update(state="archived")
    await mind.fade(FadingRules(days=0))
    found = await mind.overview()
    assert found.kinds == dict.fromkeys(Kind, 1)
    assert (found.faded, found.archived) == (1, 2)
    assert (found.messages, found.facts, found.summaries, found.events) == (1, 1, 1, 1)
    told = (await http.get("/v1/overview", params=SCOPE)).json()
    assert told["kinds"] == {kind.value: 1 for kind in Kind}
    assert (told["faded"], told["archived"]) == (1, 2)


async def test_an_empty_scope_has_none_of_any_kind(recollect):
    assert (await (await recollect.mind("nobody")).overview()).kinds == dict.fromkeys(Kind, 0)


async def test_a_topic_has_the_mean_activation_and_the_newest_time_of_what_is_filed_there(mind, http):
    moments = [LONG_AGO.replace(month=month) for month in (3, 9, 5)]
    receipts = await mind.remember([NewMemory(f"trip {moment:%B}", occurred_at=moment) for moment in moments])
    reaches = [LinkStrength(activation=value) for value in (0.2, 0.4, 0.9)]
    await mind.topics.link(
        "travel->Japan", [NewTopicLink(each.id, reach) for each, reach in zip(receipts, reaches, strict=True)]
    )
    above, japan = (await mind.topics.tree()).topics
    assert (above.activation, above.newest_at) == (None, None)
    assert (round(japan.activation, 6), japan.newest_at) == (0.5, moments[1])
    await mind.forget([receipts[1].id])
    [japan] = (await mind.topics.tree("travel->Japan")).topics
    assert (round(japan.activation, 6), japan.newest_at) == (0.55, moments[2])
    told = (await http.get("/v1/topics", params=SCOPE)).json()["topics"]
    assert (round(told[1]["activation"], 6), told[0]["newest_at"]) == (0.55, None)
