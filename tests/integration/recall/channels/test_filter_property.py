"""What a channel proposes under any filter is its unlimited proposal, restricted by plain SQL, and then cut."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from recollect.channels.date import DateChannel
from recollect.channels.graph import GraphChannel
from recollect.channels.keyword import KeywordChannel
from recollect.channels.past import PastChannel
from recollect.channels.recent import RecentChannel
from recollect.channels.stream import StreamChannel
from recollect.channels.text import TextChannel
from recollect.channels.topic import TopicChannel
from recollect.channels.vector import VectorChannel
from recollect.models.filters import Filter
from recollect.models.memories import Kind, RecallState
from recollect.models.recall import Cue
from support.measuring.sizes import Sizes
from support.memories.filter_cases import MANY, admit, draw_cases, fill, propose

FILTERS = Sizes("filters, each by nine channels", ci=40, long=2_500)
CUT = 3
EVERY = ("vector", "text", "keyword", "date", "recent", "topic", "stream", "graph")
CHANNELS = (
    VectorChannel(), TextChannel(), KeywordChannel(), DateChannel(), RecentChannel(), TopicChannel(), StreamChannel(),
    GraphChannel(), PastChannel(),
)  # fmt: skip


async def ask(mind, channel, only, limit):
    """Ask one channel; what the channel `past` finds is in the units of others."""
    found = await propose(mind, channel, only, limit)
    return {"": found.candidates} if channel.name != "past" else dict(found.lent)


def ids(candidates):
    return [each.id for each in candidates]


class Unlimited:
    """What each channel proposes without a limit, asked once for each state or time."""

    def __init__(self, mind):
        self.mind, self.known = mind, {}

    async def find(self, channel, only):
        # Of itself the stream holds two kinds only.
        kinds = tuple(Kind) if channel.name == "stream" else ()
        asked = Filter(kinds=kinds, state=only.state, as_of=only.as_of, at=only.at)
        if (channel.name, asked) not in self.known:
            self.known[channel.name, asked] = await ask(self.mind, channel, asked, MANY)
        return self.known[channel.name, asked]


@pytest.mark.promise("What a channel proposes under a filter is all it proposes, restricted and then cut", FILTERS)
async def test_what_a_channel_proposes_is_restricted_before_it_is_cut(mind, owner):
    as_of = await fill(mind, owner)
    unlimited, tried = Unlimited(mind), Counter()
    for case in draw_cases(random.Random(18), FILTERS.now, as_of):
        only, admitted = case.whole, admit(owner, case.whole)
        for channel in CHANNELS:
            asked = replace(only, kinds=only.kinds or tuple(Kind)) if channel.name == "stream" else only
            everything, found = await unlimited.find(channel, only), await ask(mind, channel, asked, MANY)
            cut = await ask(mind, channel, asked, CUT)
            for unit, proposed in found.items():
                expected = admitted & {*ids(everything.get(unit, ()))}
                assert {*ids(proposed)} == expected, (channel.name, only)
                scores = [each.score for each in proposed]
                assert [each.score for each in cut[unit]] == scores[:CUT], (channel.name, only)
                assert {*ids(cut[unit])} <= expected
                tried[channel.name] += bool(expected)
    assert all(tried[channel.name] for channel in CHANNELS), tried


async def test_a_cue_without_text_lists_all_that_its_filter_admits_the_newest_first(mind, owner):
    as_of = await fill(mind, owner)
    moments = dict(owner.execute("select id, occurred_at from memories").fetchall())
    listed = 0
    for case in draw_cases(random.Random(19), FILTERS.now, as_of):
        if case.base.past:
            continue
        # What takes part in recall, unless another state is named.
        only = case.whole if case.whole.state else replace(case.whole, state=RecallState.CURRENT)
        named = {name: getattr(case.whole, name) for name in (*case.whole.named, "below", "topics_only")}
        found = await mind.recall(Cue(" ", limit=MANY, touch=False, **named))
        expected = sorted(admit(owner, only), key=lambda each: (moments[each], each), reverse=True)
        assert [hit.memory.id for hit in found.hits] == expected, case
        listed += len(expected)
    assert listed > MANY
    everything = await mind.recall(Cue("", limit=MANY))
    assert {hit.memory.id for hit in everything.hits} == admit(owner, Filter(state=RecallState.CURRENT))


async def test_no_recall_leaves_its_filter(mind, owner):
    as_of = await fill(mind, owner)
    found = Counter()
    for case in draw_cases(random.Random(20), FILTERS.now, as_of):
        named = {name: getattr(case.whole, name) for name in (*case.whole.named, "below", "topics_only")}
        made = await mind.recall(Cue("river visits of Ann", limit=MANY, touch=False, channels=EVERY, **named))
        hits = {hit.memory.id for hit in made.hits}
        assert hits <= admit(owner, case.whole), case
        found[case.base.state] += len(hits)
    assert found[None] and found.total() > found[None] + found[RecallState.CURRENT], found


async def test_every_state_is_there_to_be_asked_for(mind, owner):
    await fill(mind, owner)
    for state in (RecallState.CURRENT, RecallState.IN_ARCHIVED, RecallState.FADED, RecallState.PAST):
        assert len(admit(owner, Filter(state=state))) > 1, state
