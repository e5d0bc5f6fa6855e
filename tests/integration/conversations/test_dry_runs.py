"""Dry runs of what removes a conversation: they count exactly what the act then does, and do nothing."""

from __future__ import annotations

import pytest

from conftest import new_key
from recollect.client import Client
from recollect.doors.http.app import create_app
from recollect.errors import ForbiddenError, NotFoundError
from recollect.models.conversations import ConversationState, NewMessage
from recollect.models.memories import Kind, NewMemory, Role
from recollect.models.recall import Cue
from recollect.models.service import Right
from support.service.purge_receipts import receipts_of
from support.service.serving import serving


async def converse(mind):
    """Two conversations, what was derived from one, from both, and from that; an old version, accesses, feedback."""
    cats, dogs = mind.conversation("cats"), mind.conversation("dogs")
    said = await cats.append([NewMessage(Role.USER, text) for text in ("one", "two", "three")], idempotency_key="k")
    [other] = await dogs.append(NewMessage(Role.USER, "four"))
    await mind.update(said[2].id, content="three and a half")
    [alone] = await mind.remember(NewMemory("of cats", Kind.THOUGHT, evidence=(said[0].id,), keywords=("cats",)))
    await mind.remember(NewMemory("of what was made of cats", Kind.THOUGHT, evidence=(alone.id,)))
    await mind.remember(NewMemory("of both", Kind.THOUGHT, evidence=(said[0].id, other.id)))
    found = await mind.recall(Cue("of cats", limit=5))
    await mind.feedback(found, [alone.id])
    return cats, dogs


async def see(mind):
    return {(each.id, each.content) for each in (await mind.list(limit=200)).memories}


async def test_a_dry_run_of_a_purge_counts_what_its_receipt_says_later(mind):
    cats, dogs = await converse(mind)
    before = await see(mind)
    foreseen = await cats.purge(dry_run=True)
    assert (foreseen.id, foreseen.begun_at, foreseen.finished_at, foreseen.conversation) == (None, None, None, "cats")
    assert {"messages": 4, "derived": 2, "to_rederive": 1, "idempotency_keys": 1}.items() <= foreseen.removed.items()
    assert foreseen.removed["accesses"] >= 1
    assert await see(mind) == before
    assert (await cats.get()).state is ConversationState.ACTIVE
    assert await receipts_of(cats) == []

    receipt = await cats.purge()
    assert receipt.id is not None
    assert receipt.removed == foreseen.removed
    # What lost some of its evidence goes with the rest of it.
    assert (await dogs.purge(dry_run=True)).removed == (await dogs.purge()).removed
    with pytest.raises(NotFoundError):
        await cats.purge(dry_run=True)


async def test_a_dry_run_of_a_deletion_counts_what_goes_out_of_sight(mind):
    cats, dogs = await converse(mind)
    before = await see(mind)
    foreseen = await cats.delete(dry_run=True)
    assert foreseen.state is ConversationState.ACTIVE
    assert foreseen.hidden == {"messages": 4, "derived": 3}
    assert await see(mind) == before

    deleted = await cats.delete()
    assert (deleted.state, deleted.hidden) == (ConversationState.DELETED, {})
    gone = {content for _, content in before} - {content for _, content in await see(mind)}
    assert gone == {"one", "two", "three and a half", "of cats", "of what was made of cats", "of both"}
    assert (await cats.delete(dry_run=True)).hidden == {"messages": 0, "derived": 0}
    # What was derived from both is out of sight already.
    assert (await dogs.delete(dry_run=True)).hidden == {"messages": 1, "derived": 0}
    with pytest.raises(NotFoundError):
        await mind.conversation("birds").delete(dry_run=True)


async def test_dry_runs_travel_over_http(recollect, mind, http):
    await converse(mind)
    _, secret = await new_key(recollect)
    async with serving(create_app(recollect=recollect)) as url, Client(url, secret) as client:
        cats = (await client.mind("ada", "li")).conversation("cats")
        assert (await cats.delete(dry_run=True)).hidden == {"messages": 4, "derived": 3}
        foreseen = await cats.purge(dry_run=True)
        assert (foreseen.id, foreseen.removed["messages"]) == (None, 4)
        assert (await cats.get()).state is ConversationState.ACTIVE
        assert (await cats.purge()).removed == foreseen.removed
    wrong = {"agent": "ada", "user": "li", "dry_run": "yes"}
    assert (await http.post("/v1/conversations/dogs/purge", json=wrong)).status_code == 422


async def test_a_key_that_may_only_read_counts_nothing(recollect, mind):
    await converse(mind)
    _, secret = await new_key(recollect, rights=(Right.READ,))
    cats = (await recollect.authorize(secret, "test", "ada", "li")).conversation("cats")
    for question in (cats.delete, cats.purge):
        with pytest.raises(ForbiddenError):
            await question(dry_run=True)


async def test_a_dry_run_reads_a_long_log_of_accesses_once(mind, owner):
    cats = mind.conversation("cats")
    for _ in range(2):
        await cats.append([NewMessage(Role.USER, "a cat")] * 1_000)
    owner.execute(
        "insert into access_log (scope_id, accessed_at, ids, kinds)"
        " select scope_id, now(), array_agg(id), array_agg('event'::text)"
        " from memories, generate_series(1, 500) as recalls (number) group by scope_id, number"
    )
    assert (await cats.purge(dry_run=True)).removed["accesses"] == 2_000
