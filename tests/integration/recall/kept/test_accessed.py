"""When a memory was last accessed: no part of a ranking by itself, and one where a profile or a cue says so."""

from __future__ import annotations

import pytest

from recollect.models.agents import Profile
from recollect.models.memories import NewMemory
from recollect.models.recall import RecallOptions

TEXTS = [f"The boat number {number} lies at the pier" for number in range(5)]


@pytest.fixture
async def boats(mind):
    """Memories that all fit the same cue; the third has been recalled."""
    receipts = await mind.remember_many([NewMemory(text) for text in TEXTS])
    await mind.recall("number 2", limit=1, options=RecallOptions(channels=("text",)))
    return [receipt.id for receipt in receipts]


async def test_by_itself_it_counts_for_nothing(mind, boats):
    hits = (await mind.recall("boat at the pier", options=RecallOptions(record_access=False))).hits
    assert not any("accessed" in hit.preferences for hit in hits)


@pytest.mark.parametrize("folded", [False, True], ids=["log", "folded"])
async def test_where_it_is_weighed_what_was_accessed_lately_leads(mind, boats, folded, recollect, owner):
    if folded:
        await recollect.work(until_empty=True)
    hits = (
        await mind.recall("boat at the pier", options=RecallOptions(weights={"accessed": 5.0}, record_access=False))
    ).hits
    assert hits[0].memory.id == boats[2]
    assert hits[0].preferences["accessed"] > 0


async def test_a_profile_may_weigh_it_and_a_kept_recall_replays_the_same(mind, boats):
    await mind.set_profile(Profile(weights={"accessed": 5.0}))
    found = await mind.recall("boat at the pier", options=RecallOptions(save=True, record_access=False))
    assert found.hits[0].memory.id == boats[2]
    explained = await mind.recalls.explain(found.recall_id)
    assert [each.id for each in explained.placings[: len(found.hits)]] == [hit.memory.id for hit in found.hits]
