"""A recall ranks by more than its channels: who is named, what stands beside, what is said twice; and it says so."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from recollect.errors import InvalidInputError
from recollect.models.agents import Profile
from recollect.models.conversations import NewMessage
from recollect.models.memories import Kind, NewMemory, Role
from recollect.models.recall import Cue, QuestionType
from support.service.accesses import with_access, with_options

NOW = datetime(2026, 11, 18, 10, tzinfo=UTC)


def said(name, content):
    return NewMessage(Role.USER, content, name)


async def contents(mind, text, **given):
    answer = await mind.recall(Cue(text, touch=False, now=NOW, **given))
    return [hit.memory.content for hit in answer.hits]


async def test_who_is_named_comes_first(mind):
    conversation = mind.conversation("talk")
    await conversation.append([said("Caroline", "I adopted a dog."), said("Melanie", "I adopted a dog, too.")])
    assert (await contents(mind, "Which dog did Melanie adopt?"))[0] == "I adopted a dog, too."
    assert (await contents(mind, "Which dog did Caroline adopt?"))[0] == "I adopted a dog."
    answer = await mind.recall(Cue("Which dog did Caroline adopt?", touch=False))
    assert answer.facets.names == ("caroline",)
    assert answer.hits[0].preferences["speaker"] > 0


async def test_what_nobody_said_counts_if_it_speaks_of_who_is_named(mind):
    await mind.remember(
        [NewMemory("Li is allergic to nuts."), NewMemory("We meet at six.", Kind.MESSAGE, speaker="Li")]
    )
    hits = (await mind.recall(Cue("What must Li not eat?", touch=False))).hits
    assert {hit.memory.content: "speaker" in hit.preferences for hit in hits} == {
        "Li is allergic to nuts.": True,
        "We meet at six.": True,
    }


async def test_an_answer_is_found_by_the_words_of_its_question(mind):
    conversation = mind.conversation("talk")
    await conversation.append(
        [
            said("Ann", "Which instrument does your daughter play in the orchestra?"),
            said("Bob", "The violin, since she was six."),
            *(said("Ann", f"Something else, number {number}.") for number in range(12)),
        ]
    )
    answer = await mind.recall(Cue("instrument of the daughter in the orchestra", touch=False))
    found = {hit.memory.content: hit for hit in answer.hits}
    told = found["The violin, since she was six."]
    assert answer.hits.index(told) <= 2
    assert told.preferences["surroundings"] > 0 and told.preferences["answer"] > 0


async def test_what_says_the_same_is_one_hit_with_a_count(mind):
    same = await mind.remember([NewMemory("The bakery opens at seven."), NewMemory("the bakery opens at seven!")])
    await mind.remember("A train leaves at eight.")
    answer = await mind.recall(Cue("When does the bakery open?", touch=False))
    [bakery] = [hit for hit in answer.hits if "bakery" in hit.memory.content]
    assert {bakery.memory.id, *bakery.duplicates} == {receipt.id for receipt in same}
    alone = await mind.recall(Cue("When does the bakery open?", channels=("text",), touch=False))
    assert len([hit for hit in alone.hits if "bakery" in hit.memory.content]) == 2


async def test_the_day_that_is_asked_about_comes_first(mind):
    days = [
        NewMemory(f"We walked to the river, part {number}.", occurred_at=NOW - timedelta(days=number))
        for number in range(9)
    ]
    await mind.remember(days)
    assert (await contents(mind, "Where did we walk 4 days ago?"))[0] == "We walked to the river, part 4."
    assert (
        await contents(
            mind, "Where did we walk?", since=NOW - timedelta(days=2, hours=1), until=NOW - timedelta(days=1, hours=1)
        )
    )[0] == "We walked to the river, part 2."


async def test_age_counts_only_where_the_newest_is_asked_for(mind):
    walks = [
        NewMemory(f"A walk by the river, {year}.", occurred_at=datetime(year, 5, 1, tzinfo=UTC))
        for year in range(2010, 2026)
    ]
    await mind.remember(walks)
    answer = await mind.recall(Cue("the latest walk by the river", touch=False, now=NOW, weights={"vector": 0.0}))
    assert QuestionType.LATEST in answer.facets.asks
    assert answer.hits[0].memory.content == "A walk by the river, 2025."
    assert "recent" in answer.methods
    plain = await mind.recall(Cue("walk by the river", touch=False, now=NOW))
    assert "recent" not in plain.methods and all("latest" not in hit.preferences for hit in plain.hits)


async def test_names_of_whose_memory_it_is_are_left_out(mind):
    await mind.set_profile(Profile(names=("Ada",)))
    await mind.remember([NewMemory("Ada, Ada and Ada again"), NewMemory("a red bicycle")])
    assert (await contents(mind, "What about Ada and the bicycle?", channels=("text",))) == ["a red bicycle"]


async def test_weights_of_a_call_change_the_order(mind):
    await mind.conversation("talk").append(
        [said("Ann", "Tea in the garden."), said("Bob", "Tea for two in the garden.")]
    )
    cue = Cue("What did Bob say of tea in the garden for two?", touch=False)
    first = (await mind.recall(cue)).hits[0]
    assert first.memory.speaker == "Bob" and first.preferences["speaker"] > 0
    without = (await mind.recall(replace(cue, weights={"speaker": 0.0}))).hits[0]
    assert "speaker" not in without.preferences


async def test_of_two_who_are_named_the_first_is_taken_for_who_did_it(mind):
    await mind.conversation("talk").append([said("Ann", "Tea in the garden."), said("Bob", "Tea in the garden, too.")])
    for text, actor in (("What tea did Bob give Ann?", "bob"), ("What tea did Ann give Bob?", "ann")):
        answer = await mind.recall(Cue(text, touch=False))
        shares = {hit.memory.speaker.lower(): hit.preferences["speaker"] for hit in answer.hits}
        assert answer.facets.actor == actor and answer.facets.names == ("ann", "bob")
        assert max(shares, key=shares.get) == actor and len({*shares.values()}) == 2
    together = await mind.recall(Cue("What tea do Ann and Bob like?", touch=False))
    assert together.facets.actor == "" and len({hit.preferences["speaker"] for hit in together.hits}) == 1


async def test_a_stalled_look_at_the_candidates_is_not_waited_for(recollect, owner, addresses):
    quick = with_options(recollect.parts, channel_seconds=0.3)
    mind = await recollect.mind("ada", "li")
    await mind.remember("green apples at the market")
    holding = await psycopg.AsyncConnection.connect(addresses.owner)
    async with holding:
        await holding.execute("lock table memory_terms in access exclusive mode")
        # The lock is not given back before there is an answer.
        answer = await with_access(mind, parts=quick).recall(Cue("apples", touch=False, channels=("vector", "recent")))
    assert [hit.memory.content for hit in answer.hits] == ["green apples at the market"]
    assert not answer.hits[0].preferences


@pytest.mark.parametrize("text", ["", "?", "->", "a->", "什么", "when", "1/1/1", "\n\n"])
async def test_no_cue_is_an_error_because_of_what_is_read_from_it(mind, text):
    await mind.remember("green apples at the market")
    vector = [1.0] + [0.0] * (mind.access.parts.embedder.dimensions - 1)
    assert (await mind.recall(Cue(text, embedding=vector, touch=False))).status in {"ok", "no_candidates"}


async def test_what_is_out_of_sight_stands_for_nobody(mind, owner):
    [gone, stays] = await mind.remember(
        [NewMemory("The bakery opens at seven."), NewMemory("the bakery opens at seven!")]
    )
    owner.execute("update memories set expires_at = now() - interval '1 hour' where id = %s", [gone.id])
    answer = await mind.recall(Cue("When does the bakery open?", touch=False))
    assert [(hit.memory.id, hit.duplicates) for hit in answer.hits] == [(stays.id, ())]


async def test_of_memories_that_fit_alike_the_more_important_comes_first(mind):
    for place, importance in enumerate((1, 10, 5, 3)):
        await mind.remember(NewMemory(f"Ann told news {place}", importance=importance, occurred_at=NOW))
    assert await contents(mind, "What news did Ann tell?") == [f"Ann told news {place}" for place in (1, 2, 3, 0)]
    first = (await mind.recall(Cue("What news did Ann tell?", touch=False))).hits[0]
    assert first.preferences["importance"] > 0
    without = await mind.recall(Cue("What news did Ann tell?", touch=False, weights={"importance": 0}))
    assert all("importance" not in hit.preferences for hit in without.hits)


async def test_importance_does_not_lift_what_fits_less(mind):
    await mind.remember(NewMemory("Ann bought apples and pears in Ghent", importance=1))
    await mind.remember(NewMemory("Ann was born in Bruges", importance=10))
    assert (await contents(mind, "Which pears did Ann buy in Ghent?"))[0] == "Ann bought apples and pears in Ghent"


async def test_a_profile_holds_what_a_cue_does_not_name(mind):
    await mind.remember([f"Ann told news {place}" for place in range(3)])
    cue = Cue("What news did Ann tell?", touch=False)
    usual = await mind.recall(cue)
    await mind.set_profile(Profile(channels=("text", "recent"), weights={"recent": 9.0}, limit=2))
    found = await mind.recall(cue)
    assert {*found.methods} == {"text", "recent"}
    assert len(found.hits) == 2
    assert found.hits[0].channels["recent"].share > found.hits[0].channels["text"].share
    named = await mind.recall(replace(cue, channels=("text", "recent"), weights={"recent": 0.1}))
    assert named.hits[0].channels["recent"].share < named.hits[0].channels["text"].share
    await mind.set_profile(Profile(min_relevance=1.0))
    assert (await mind.recall(cue)).hits == ()
    assert (await mind.conversation("c").context(cue, 500)).status == "nothing_relevant"
    assert len((await mind.recall(replace(cue, min_relevance=0.0))).hits) == len(usual.hits)
    # What ranks by itself, or only lists, has no relevance that could be asked for.
    assert (await mind.recall(replace(cue, channels=("text",)))).hits
    assert (await mind.recall(Cue("", touch=False))).hits


@pytest.mark.parametrize(
    "profile",
    [
        Profile(channels=("sideways",)),
        Profile(weights={"sideways": 1.0}),
        Profile(min_relevance=2.0),
        Profile(channels=("text",), min_relevance=0.5),
    ],
)
async def test_a_profile_is_refused_that_no_cue_may_be_like(mind, profile):
    with pytest.raises(InvalidInputError):
        await mind.set_profile(profile)
