"""When a memory was last accessed: no part of a ranking by itself, and one where a profile or a cue says so."""

from __future__ import annotations

import pytest

from recollect.models.agents import Profile
from recollect.models.memories import NewMemory
from recollect.models.recall import Cue

TEXTS = [f"The boat number {number} lies at the pier" for number in range(5)]


@pytest.fixture
async def boats(mind):
    """Memories that all fit the same cue; the third has been recalled."""
    receipts = await mind.remember([NewMemory(text) for text in TEXTS])
    await mind.recall(Cue("number 2", channels=("text",), limit=1))
    return [receipt.id for receipt in receipts]


async def test_by_itself_it_counts_for_nothing(mind, boats):
    hits = (await mind.recall(Cue("boat at the pier", touch=False))).hits
    assert not any("accessed" in hit.preferences for hit in hits)


@pytest.mark.parametrize("folded", [False, True], ids=["log", "folded"])
async def test_where_it_is_weighed_what_was_accessed_lately_leads(mind, boats, folded, recollect, owner):
    if folded:
        await recollect.work(until_empty=True)
    hits = (await mind.recall(Cue("boat at the pier", weights={"accessed": 5.0}, touch=False))).hits
    assert hits[0].memory.id == boats[2]
    assert hits[0].preferences["accessed"] > 0


async def test_a_profile_may_weigh_it_and_a_kept_recall_replays_the_same(mind, boats):
    await mind.set_profile(Profile(weights={"accessed": 5.0}))
    found = await mind.recall(Cue("boat at the pier", keep=True, touch=False))
    assert found.hits[0].memory.id == boats[2]
    explained = await mind.recalls.explain(found.recall_id)
    assert [each.id for each in explained.placings[: len(found.hits)]] == [hit.memory.id for hit in found.hits]
