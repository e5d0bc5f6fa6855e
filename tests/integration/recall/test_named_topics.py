"""What is filed under a topic that the caller names comes first; with `topics_only` and in lists, nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recollect.errors import InvalidInputError
from recollect.models.filters import Filter
from recollect.models.memories import Kind, NewMemory
from recollect.models.recall import Cue
from recollect.verbs.memories.read import ListQuery, list_memories
from support.measuring.sizes import Sizes

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
DAY = timedelta(days=1)
MEMORIES = Sizes("memories", ci=1_000, long=10_000)
VAGUE = (
    "Any tips?", "how did it go", "tell me more", "what do you think?", "and then?", "anything else", "what happened?",
    "is that all?", "remind me", "何か",
)  # fmt: skip
FILED = [f"In {place} the trains run on time" for place in ("Kyoto", "Osaka", "Nara", "Kobe", "Sendai")]


def others(count):
    """Make up memories that share the words of vague questions and are filed elsewhere."""
    words = ("tips", "think", "happened", "remind", "more", "else", "go", "anything")
    return [
        NewMemory(
            f"note {number}: {words[number % 8]} of {words[number // 8 % 8]}",
            occurred_at=NOW - timedelta(minutes=number),
            topic="work->mail" if number % 5 == 0 else "",
        )
        for number in range(count)
    ]


@pytest.mark.promise("A topic that the caller names brings all that is filed there, whatever the cue says", MEMORIES)
async def test_a_named_topic_brings_what_is_filed_there(mind):
    filed = [NewMemory(text, topic="travel->Japan", occurred_at=NOW - 90 * DAY) for text in FILED]
    stored = 0
    for size in sorted({50, 300, 1_000, MEMORIES.now}):
        more = others(size)[stored:]
        await mind.load(more if stored else [*filed, *more])
        stored = size
        for text in VAGUE:
            found = await mind.recall(Cue(text, topics=("travel->Japan",), touch=False))
            first = [hit.memory.content for hit in found.hits[:5]]
            assert sorted(first) == sorted(FILED), (size, text)
            scores = [hit.score for hit in found.hits]
            assert scores == sorted(scores, reverse=True) and 0.5 < scores[4] <= 1, (size, text)
    shown = await mind.conversation("c").context(Cue("how did it go", topics=("travel->Japan",), limit=5))
    assert sorted(hit.memory.content for hit in shown.hits) == sorted(FILED)


async def test_what_is_filed_comes_in_the_order_of_the_topic_channel_and_then_the_rest(mind):
    new = [
        NewMemory("a long flight", topic="travel", occurred_at=NOW - DAY),
        NewMemory("rice and fish", topic="food", occurred_at=NOW - DAY),
        NewMemory("the temples of Kyoto", topic="travel->Japan", related_topics=("food",), occurred_at=NOW - 40 * DAY),
        NewMemory("a night in Osaka", topic="travel->Japan", occurred_at=NOW - DAY),
        NewMemory("Ann plays chess by mail", occurred_at=NOW),
    ]
    await mind.remember(new)
    asked = {"topics": ("travel->Japan",), "now": NOW, "touch": False}
    alone = await mind.recall(Cue("chess by mail", channels=("topic",), **asked))
    found = await mind.recall(Cue("chess by mail", **asked))
    assert [hit.memory.id for hit in found.hits[:4]] == [hit.memory.id for hit in alone.hits]
    assert found.hits[4].memory.content == "Ann plays chess by mail"
    assert found.facets.topics_first and not (await mind.recall("travel->Japan")).facets.topics_first
    for hit in found.hits:
        parts = [part.share for part in hit.channels.values()]
        assert hit.score == pytest.approx(sum(parts) + sum(hit.preferences.values()))
    words = await mind.recall(Cue("chess by mail", channels=("text",), **asked))
    assert [hit.memory.id for hit in words.hits] == [hit.memory.id for hit in found.hits]


async def test_only_what_is_filed_is_found_if_the_caller_says_so(mind):
    await mind.remember([NewMemory("tea in Nara", topic="travel->Japan"), NewMemory("tea at home", topic="travel")])
    await mind.remember([NewMemory("tea again", Kind.THOUGHT), NewMemory("tea in Rome", topic="travel->Italy")])

    async def recall(*topics, **more):
        found = await mind.recall(Cue("tea", topics=topics, topics_only=True, **more))
        return {hit.memory.content for hit in found.hits}

    assert await recall("travel->Japan") == {"tea in Nara"}
    assert await recall("travel") == {"tea at home"}
    assert await recall("travel", below=True) == {"tea in Nara", "tea at home", "tea in Rome"}
    assert await recall("travel->Japan", "Travel->italy") == {"tea in Nara", "tea in Rome"}
    assert await recall("nowhere") == set()
    with pytest.raises(InvalidInputError):
        await mind.recall(Cue("tea", topics_only=True))

    async def list_filed(**only):
        page = await list_memories(mind.access.parts, mind.access.scope, ListQuery(Filter(**only), limit=10))
        return {each.content for each in page.memories}

    assert await list_filed(topics=("travel",)) == {"tea at home"}
    assert await list_filed(topics=("travel",), below=True, kinds=(Kind.THOUGHT,)) == set()


async def test_a_kept_recall_by_topics_is_ranked_the_same_again(mind):
    await mind.remember([NewMemory("tea in Nara", topic="travel->Japan"), *others(20)])
    found = await mind.recall(Cue("tips", topics=("travel->Japan",), keep=True))
    assert found.hits[0].memory.content == "tea in Nara"
    assert (await mind.recalls.explain(found.recall_id)).same


async def fill_tree(mind):
    await mind.remember(
        [
            NewMemory("an umbrella is packed", topic="travel->Japan"),
            NewMemory("the temple opens at nine", topic="travel->Japan->Kyoto"),
            NewMemory("tickets are refundable", topic="travel"),
            NewMemory("the lease ends in May", topic="home office->rent"),
            NewMemory("油价又涨了", topic="出行->自驾游"),
        ]
    )


async def find_by_words(mind, text):
    found = await mind.recall(Cue(text, channels=("topic",), touch=False))
    return [hit.memory.content for hit in found.hits], found.methods["topic"]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("What about Japan?", "an umbrella is packed"),
        ("Anything on KYOTO, please", "the temple opens at nine"),
        ("What did I note for the home office?", "the lease ends in May"),
        ("自驾游有什么要注意的？", "油价又涨了"),
    ],
)
async def test_a_topic_is_found_by_its_plain_name_or_a_name_above_it(mind, text, first):
    await fill_tree(mind)
    contents, method = await find_by_words(mind, text)
    assert (contents[0], method) == (first, "exact")


async def test_own_names_come_before_names_above_and_other_words_find_nothing(mind):
    await fill_tree(mind)
    contents, _ = await find_by_words(mind, "Japan")
    assert contents[:2] == ["an umbrella is packed", "the temple opens at nine"]
    assert await find_by_words(mind, "the offices of a homely rentier") == ([], "skipped: no topic in the query")
    assert await find_by_words(mind, "travel->Norway") == ([], "skipped: unknown topic")


async def test_at_most_eight_topics_are_found_by_words(mind):
    await mind.remember([NewMemory(f"note {number}", topic=f"music->band {number:02}") for number in range(12)])
    contents, _ = await find_by_words(mind, "any music")
    # The topic of that name is the first of the eight, and holds nothing itself.
    assert {*contents} == {f"note {number}" for number in range(7)}


async def test_a_word_that_is_also_a_topic_does_not_fill_a_prompt(mind):
    await mind.remember([NewMemory(f"meeting {number} was moved", topic="work") for number in range(5)])
    made = await mind.conversation("c").context("How does a clock work?", 500)
    assert made.hits == ()
    assert len((await mind.conversation("c").context(Cue("clock", topics=("work",)), 500)).hits) == 5
