"""From marked hits to learned weights: what callers say is kept, learned from, and applied only on request."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from conftest import http_client, new_key
from recollect.client import Client
from recollect.core.recall.weights import default_weights
from recollect.errors import InvalidInputError
from recollect.models.agents import Feedback, HitFeedback, Profile, TuningTarget
from recollect.models.memories import Kind, NewMemory
from recollect.models.recall import Cue, Factors, Script, StreamWeights
from recollect.models.service import Right

STREAM = Cue("apple", channels=("stream",), touch=False)
ROWS = "select recall_id, memory_id, useful, rank, similarity, importance, candidates from feedback"


async def fill(mind, count=30):
    return await mind.remember([NewMemory(f"apple {number}", importance=1 + number % 10) for number in range(count)])


async def test_every_mark_is_kept_with_what_the_hit_was_ranked_by(mind, owner):
    await fill(mind)
    recollection = await mind.recall(replace(STREAM, limit=5))
    assert await mind.feedback(recollection, [recollection.hits[2].memory.id]) == 5
    rows = owner.execute(ROWS).fetchall()
    assert len({recall_id for recall_id, *_ in rows}) == 1
    kept = {memory_id: values for _, memory_id, *values in rows}
    for place, hit in enumerate(recollection.hits):
        factors = hit.channels["stream"].factors
        expected = [place == 2, factors.rank, factors.similarity, factors.importance, 30]
        assert kept[hit.memory.id] == pytest.approx(expected, abs=1e-6)


async def test_only_the_named_are_marked_where_the_useless_are_named(mind, owner):
    await fill(mind)
    recollection = await mind.recall(replace(STREAM, limit=5))
    first, second, *_ = [hit.memory.id for hit in recollection.hits]
    assert await mind.feedback(recollection, [first], useless=[second]) == 2
    assert await mind.feedback(recollection, [second], useless=[]) == 1
    assert owner.execute("select count(distinct recall_id), count(*) from feedback").fetchone() == (2, 3)


async def test_the_hits_of_a_usual_recall_are_kept_with_what_each_part_added(mind, owner):
    await fill(mind)
    recollection = await mind.recall("apple 7")
    assert await mind.feedback(recollection, [recollection.hits[0].memory.id]) == len(recollection.hits)
    rows = owner.execute("select memory_id, useful, rank, unweighed, script from feedback").fetchall()
    kept = {memory_id: values for memory_id, *values in rows}
    best = recollection.hits[0]
    assert kept[best.memory.id][:2] == [True, None]
    expected = best.channels["text"].share / default_weights(Script.WORDS)["text"]
    assert kept[best.memory.id][2]["text"] == pytest.approx(expected)
    assert kept[best.memory.id][3] == "words"


async def test_memories_of_another_scope_or_none_are_refused_and_nothing_is_kept(mind, recollect, owner):
    [mine] = await mind.remember("apple")
    [theirs] = await (await recollect.mind("ada", "another")).remember("apple")
    factors = Factors(0.5, 0.5, 0.5, 1)
    for strange in (theirs.id, uuid4()):
        marks = (HitFeedback(mine.id, True, factors), HitFeedback(strange, False, factors))
        with pytest.raises(InvalidInputError, match="of this scope"):
            await mind.feedback(Feedback(marks, 10))
    with pytest.raises(InvalidInputError, match="of this scope"):
        await (await recollect.mind("nobody")).feedback(Feedback((HitFeedback(mine.id, True, factors),), 10))
    assert owner.execute("select count(*) from feedback").fetchone() == (0,)


async def test_the_same_recall_marked_again_changes_its_marks_and_counts_once(mind, owner):
    [receipt] = await mind.remember("apple")
    mark = HitFeedback(receipt.id, True, Factors(0.5, 0.5, 0.5, 1))
    feedback = Feedback((mark,), 10, UUID(int=7))
    assert await mind.feedback(feedback) == 1
    assert await mind.feedback(replace(feedback, marks=(replace(mark, useful=False),))) == 1
    assert owner.execute("select recall_id, useful from feedback").fetchall() == [(UUID(int=7), False)]


async def test_what_was_said_of_a_forgotten_memory_is_forgotten(mind, owner):
    receipts = await fill(mind, 3)
    recollection = await mind.recall(STREAM)
    await mind.feedback(recollection, [receipts[0].id])
    await mind.forget([receipts[0].id, receipts[1].id])
    assert owner.execute("select memory_id from feedback").fetchall() == [(receipts[2].id,)]


async def test_the_client_marks_hits_and_a_repeated_request_counts_once(recollect, http, owner):
    client = Client("http://test", "shown by the transport")
    await client.close()
    client._transport._http = http
    remote = await client.mind("ada", "li")
    await fill(remote)
    recollection = await remote.recall(replace(STREAM, limit=4))
    assert await remote.feedback(recollection, [recollection.hits[0].memory.id]) == 4
    factors = recollection.hits[0].channels["stream"].factors
    marks = (HitFeedback(recollection.hits[0].memory.id, False, factors),)
    feedback = Feedback(marks, 30, UUID(int=9))
    assert [await remote.feedback(feedback) for _ in range(2)] == [1, 1]
    assert owner.execute("select count(distinct recall_id), count(*) from feedback").fetchone() == (2, 5)


async def test_http_refuses_marks_that_no_recall_can_have_led_to(http, recollect, mind):
    [receipt] = await mind.remember("apple")
    mark = {"memory_id": str(receipt.id), "useful": True, "recency": 1, "similarity": 1, "importance": 1, "rank": 1}
    body = {"agent": "ada", "user": "li", "marks": [mark], "candidates": 10}
    assert (await http.post("/v1/feedback", json=body)).json() == {"marked": 1}
    for wrong in (
        {"marks": []},
        {"marks": [mark, mark]},
        {"marks": [mark | {"similarity": 1.5}]},
        {"marks": [mark | {"rank": 11}]},
        {"marks": [mark | {"useful": "yes"}]},
        {"candidates": 0},
        {"user": "another"},
    ):
        assert (await http.post("/v1/feedback", json=body | wrong)).status_code == 422
    _, secret = await new_key(recollect, rights=(Right.READ,))
    async with http_client(recollect, secret) as reader:
        assert (await reader.post("/v1/feedback", json=body)).status_code == 403


async def mark_by_importance(mind, recalls):
    """Recall again and again, and call useful what is important."""
    for number in range(recalls):
        recollection = await mind.recall(replace(STREAM, text=f"apple {number}", limit=20))
        ordered = sorted(recollection.hits, key=lambda hit: hit.memory.importance, reverse=True)
        await mind.feedback(recollection, [hit.memory.id for hit in ordered[:6]])


async def tune(recollect, agent="ada", **chosen):
    return await recollect.tenant.tune(await recollect.operator.act_for("default"), agent, **chosen)


async def test_feedback_in_all_scopes_of_an_agent_teaches_its_weights(recollect):
    minds = [await recollect.mind("ada", user) for user in ("li", "wang")]
    stranger = await recollect.mind("bob")
    for mind in (*minds, stranger):
        await fill(mind, 60)
    await minds[0].set_profile(Profile(StreamWeights(recency=4.0, similarity=2.0, importance=0.1), limit=8))
    for mind in minds:
        await mark_by_importance(mind, 12)
    [tuning] = await tune(recollect)
    assert sum(tuning.recalls) == 24
    assert tuning.recommended
    assert not tuning.applied
    before, after = tuning.held_out
    assert after.accuracy > before.accuracy + 0.1
    assert (await minds[1].profile()).weighing == StreamWeights(recency=4.0, similarity=2.0, importance=0.1)

    [applied] = await tune(recollect, apply=True)
    assert applied == replace(tuning, applied=True)
    profile = await minds[1].profile()
    assert profile == Profile(StreamWeights(**tuning.after), limit=8)
    assert profile.weighing.importance > 10 * 0.1
    asked = replace(STREAM, text="apple 44", limit=6)
    learned, given = [
        [hit.memory.importance for hit in (await minds[1].recall(replace(asked, weighing=weighing))).hits]
        for weighing in (StreamWeights(), StreamWeights(**tuning.before))
    ]
    assert sum(learned) > sum(given) + 5
    with pytest.raises(InvalidInputError, match="there are 0"):
        await tune(recollect, "bob")


async def test_weights_that_do_no_better_are_not_applied(recollect, mind):
    await fill(mind)
    for number in range(12):
        recollection = await mind.recall(replace(STREAM, text=f"apple {number}", limit=10))
        # The usual weights are right already: what ranks first is what is useful.
        await mind.feedback(recollection, [hit.memory.id for hit in recollection.hits[:3]])
    [tuning] = await tune(recollect, apply=True)
    assert tuning.held_out[0].accuracy == 1.0
    assert (tuning.recommended, tuning.applied) == (False, False)
    assert await mind.profile() == Profile()


async def test_thoughts_and_events_alike_can_be_marked(mind):
    [event] = await mind.remember("apple")
    await mind.remember(NewMemory("apple again", Kind.THOUGHT, evidence=(event.id,)))
    recollection = await mind.recall(STREAM)
    assert await mind.feedback(recollection, []) == 2


async def test_feedback_on_usual_recalls_teaches_all_weights_of_the_agent(recollect, mind):
    await fill(mind, 60)
    for number in range(24):
        recollection = await mind.recall(Cue(f"apple {number}", limit=20, touch=False))
        ordered = sorted(recollection.hits, key=lambda hit: hit.memory.importance, reverse=True)
        await mind.feedback(recollection, [hit.memory.id for hit in ordered[:6]])
    [tuning] = await tune(recollect, apply=True)
    assert (tuning.of, tuning.recommended, tuning.applied) == (TuningTarget.USUAL, True, True)
    assert tuning.held_out[1].accuracy > tuning.held_out[0].accuracy + 0.05
    profile = await mind.profile()
    assert profile.weights == tuning.after
    assert profile.weights["importance"] > 2 * default_weights(Script.WORDS)["importance"]
    usual, learned = [
        sum(hit.memory.importance for hit in (await mind.recall(cue)).hits)
        for cue in (Cue("apple 3", weights=default_weights(Script.WORDS)), Cue("apple 3"))
    ]
    assert learned > usual
