"""A message that shares no word with the cue is found through what was learned from it; hidden evidence is not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from recollect.mind.conversations import Conversation
from recollect.models.conversations import NewMessage
from recollect.models.memories import Kind, NewMemory, Role
from recollect.models.recall import Cue

CUE = "Which allergy does Li have?"
FACT = "Li has an allergy to peanuts."
SAID = "One bite, and my throat closed."
FILLERS = 250
"""More than the channel `vector` proposes."""
LIKE, UNLIKE = ([float(place == at) for place in range(64)] for at in (0, 1))
OPPOSITE = [-number for number in LIKE]


@pytest.fixture
async def said(mind):
    """Store a message that no channel proposes: it has no word of the cue, and many others are nearer."""
    [message] = await mind.conversation("dinner").append([NewMessage(Role.USER, SAID, "Bo", embedding=OPPOSITE)])
    await mind.conversation("walk").append(
        [NewMessage(Role.USER, f"Something else, number {number}.", embedding=UNLIKE) for number in range(FILLERS)]
    )
    return message.id


async def learn(mind, *evidence, kind=Kind.FACT, content=FACT):
    [receipt] = await mind.remember([NewMemory(content, kind, evidence=evidence, embedding=LIKE)])
    return receipt.id


async def find(mind, **given):
    answer = await mind.recall(Cue(CUE, embedding=LIKE, touch=False, **given))
    return {hit.memory.content: hit for hit in answer.hits}


@pytest.mark.parametrize("kind", [Kind.FACT, Kind.SUMMARY, Kind.THOUGHT])
async def test_a_message_without_a_word_of_the_cue_is_found_through_what_rests_on_it(mind, said, kind):
    await learn(mind, said, kind=kind)
    found = await find(mind)
    assert FACT in found
    hit = found[SAID]
    assert "text" not in hit.channels
    assert hit.preferences["evidence"] > 0
    assert hit.score == pytest.approx(sum(part.share for part in hit.channels.values()) + sum(hit.preferences.values()))


async def test_where_it_weighs_nothing_nothing_is_found_through_it(mind, said):
    await learn(mind, said)
    assert SAID not in await find(mind, weights={"evidence": 0})


async def test_a_channel_that_is_asked_alone_ranks_by_itself(mind, said):
    await learn(mind, said)
    assert SAID not in await find(mind, channels=("text",))


async def test_the_filter_binds_what_is_found_through_evidence(mind, said):
    await learn(mind, said)
    assert SAID not in await find(mind, conversations=("walk",))
    assert SAID not in await find(mind, kinds=(Kind.FACT, Kind.EVENT))
    assert SAID in await find(mind, kinds=(Kind.FACT, Kind.MESSAGE))
    assert SAID not in await find(mind, until=datetime.now(UTC) - timedelta(days=1))


async def test_forgotten_evidence_is_not_found_and_takes_the_fact_along(mind, said):
    await learn(mind, said)
    assert SAID in await find(mind)
    await mind.forget([said])
    found = await find(mind)
    assert SAID not in found and FACT not in found


@pytest.mark.parametrize("hide", [partial(Conversation.update, state="archived"), Conversation.delete])
async def test_hidden_evidence_is_not_found(mind, said, hide):
    [other] = await mind.conversation("lunch").append([NewMessage(Role.USER, "No peanuts for me.", "Bo")])
    await learn(mind, said, other.id)
    assert SAID in await find(mind)
    await hide(mind.conversation("dinner"))
    assert SAID not in await find(mind)


async def test_evidence_that_has_expired_is_not_found(mind, said, owner):
    await learn(mind, said)
    assert SAID in await find(mind)
    owner.execute("update memories set expires_at = now() - interval '1 second' where id = %s", [said])
    assert SAID not in await find(mind)


async def test_what_is_past_lends_nothing_and_the_past_is_asked_without(mind, said):
    await learn(mind, said)
    found = await find(mind, as_of=datetime.now(UTC) + timedelta(seconds=5))
    assert FACT in found and SAID not in found


async def test_what_everything_was_learned_from_gains_little(mind, said):
    rest = [memory.id for memory in (await mind.list(limit=200)).memories if memory.id != said][:30]
    await learn(mind, said, *rest)
    alone = (await find(mind, limit=100)).get(SAID)
    await learn(mind, said, content="Li must not eat peanuts because of an allergy.")
    assert alone is None or alone.preferences["evidence"] < (await find(mind))[SAID].preferences["evidence"] / 2


async def test_a_kept_recall_explains_what_it_found_through_evidence_and_is_replayed_the_same(mind, said):
    await learn(mind, said)
    answer = await mind.recall(Cue(CUE, embedding=LIKE, keep=True, touch=False))
    explained = await mind.recalls.explain(answer.recall_id)
    assert explained.same
    assert said not in {each.id for some in explained.proposals.values() for each in some}
    [placing] = [each for each in explained.placings if each.id == said]
    assert placing.preferences["evidence"] > 0
    without = await mind.recalls.replay(answer.recall_id, {"evidence": 0})
    assert said not in {each.id for each in without.placings}
