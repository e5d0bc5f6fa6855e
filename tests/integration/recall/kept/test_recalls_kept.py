"""Recalls that are kept: when they are, what they say afterwards, what a replay gives, and when they go."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import cycle
from types import SimpleNamespace
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from conftest import new_key
from recollect.core.conversations.retention import RetentionRules
from recollect.core.memories.ids import memory_id
from recollect.core.recall.columns import RankingInput, to_candidates
from recollect.core.recall.saved import SavedRecallData
from recollect.errors import ForbiddenError, InvalidInputError, NotFoundError
from recollect.jobs.maintenance import prune_recalls, retain
from recollect.llm.fake import FakeEmbedder
from recollect.models.conversations import NewMessage
from recollect.models.memories import Kind, NewMemory, Role
from recollect.models.recall import Candidate, CandidateOutcome, Cue, QueryAnalysis, Status
from recollect.models.service import Right
from recollect.store.recall import saved_recalls
from recollect.store.service import maintenance
from recollect.store.service.scopes import locate
from recollect.verbs.recall import save as verb
from recollect.wiring import connected
from support.measuring.sizes import Sizes
from support.memories.past import moment as note_moment
from support.programs.waiting import until_blocked
from support.service.accesses import with_access, with_options
from support.service.made_settings import make_settings

APPLES = [
    NewMemory("Green apples grow in the garden.", importance=3, keywords=("apples",)),
    NewMemory("Ann likes red apples.", speaker="Ann", importance=6),
    NewMemory("Bob reads a book about gardens.", Kind.THOUGHT, speaker="Bob"),
    NewMemory("The garden was sold in spring.", occurred_at=datetime(2026, 3, 3, tzinfo=UTC)),
]
RECALLS = Sizes("recalls", ci=60, long=1_000)
KEPT = Cue("green apples in the garden", keep=True)


@pytest.fixture
async def apples(mind):
    return [receipt.id for receipt in await mind.remember(APPLES)]


def count(owner):
    return owner.execute("select count(*) from recalls").fetchone()[0]


def of(placings):
    return [(each.id, each.score, {name: part.share for name, part in each.channels.items()}) for each in placings]


def hits_of(recollection):
    return [
        (hit.memory.id, hit.score, {name: part.share for name, part in hit.channels.items()})
        for hit in recollection.hits
    ]


# Which are kept.


async def test_nothing_is_kept_unless_the_cue_or_the_service_says_so(mind, apples, owner):
    assert (await mind.recall("green apples")).recall_id is None
    assert (await mind.recall(replace(KEPT, keep=False))).recall_id is None
    assert count(owner) == 0
    kept = await mind.recall(KEPT)
    assert kept.recall_id is not None
    assert owner.execute("select id, text from recalls").fetchall() == [(kept.recall_id, KEPT.text)]


@pytest.mark.parametrize(("chosen", "share", "kept"), [("on", 0.0, 8), ("sampled", 0.5, 6), ("off", 1.0, 0)])
async def test_the_service_keeps_all_some_or_none(addresses, owner, monkeypatch, chosen, share, kept):
    lots = cycle([0.1, 0.4, 0.6, 0.2])
    monkeypatch.setattr(verb, "random", SimpleNamespace(random=lambda: next(lots)))
    wanted = make_settings(embedder="fake", recall__save=chosen, recall__save_ratio=share)
    async with connected(wanted, addresses, FakeEmbedder()) as running:
        mind = await running.mind("ada", "li")
        await mind.remember(APPLES)
        for number in range(8):
            await mind.recall(f"apples {number}")
        assert (await mind.recall(replace(KEPT, keep=False))).recall_id is None
    assert count(owner) == kept


async def test_a_recall_that_finds_nothing_is_kept_too_and_one_of_an_empty_scope_is_not(recollect, mind, apples, owner):
    found = await mind.recall(Cue("zzz", channels=("text",), keep=True))
    assert (found.hits, found.status) == ((), Status.NO_CANDIDATES)
    explained = await mind.recalls.explain(found.recall_id)
    assert (explained.placings, explained.status, explained.same) == ((), Status.NO_CANDIDATES, True)
    empty = await recollect.mind("nobody")
    assert (await empty.recall(KEPT)).recall_id is None


async def test_each_of_several_cues_is_kept_for_itself(mind, apples):
    both = await mind.recall_each([KEPT, replace(KEPT, text="a book"), "unkept"], isolated=True)
    assert [each.recall_id is not None for each in both] == [True, True, False]
    for each in both[:2]:
        assert of((await mind.recalls.replay(each.recall_id)).placings) == hits_of(each)


# What they say.


async def test_an_explanation_has_all_that_the_ranking_was_made_from(mind, apples):
    found = await mind.recall(replace(KEPT, limit=2, zone="Asia/Shanghai"))
    explained = await mind.recalls.explain(found.recall_id)
    assert (explained.cue["text"], explained.cue["zone"], explained.limit) == (KEPT.text, "Asia/Shanghai", 2)
    assert "embedding" not in explained.cue
    assert explained.methods == found.methods
    assert explained.tallies == found.tallies
    assert explained.facets == found.facets
    assert explained.weights["text"] > 0
    assert {each.id for each in explained.proposals["vector"]} == {*apples}
    hits = [each for each in explained.placings if each.fate is CandidateOutcome.HIT]
    assert of(hits) == hits_of(found)
    assert [each.rank for each in hits] == [1, 2]
    assert [each.memory.content for each in hits] == [hit.memory.content for hit in found.hits]
    others = explained.placings[len(hits) :]
    assert {each.fate for each in others} == {CandidateOutcome.BELOW}
    assert {each.id for each in explained.placings} == {*apples}
    assert all(each.memory is None for each in others)
    assert explained.same
    assert abs(explained.asked_at - datetime.now(UTC)) < timedelta(minutes=1)


async def test_of_many_candidates_as_many_are_hits_as_were_asked_for_and_the_others_are_below(mind):
    await mind.remember([f"Apple {number} lies in basket {number % 7}." for number in range(40)])
    for cue, most in ((KEPT, 10), (replace(KEPT, limit=3), 3), (replace(KEPT, channels=("vector",)), 10)):
        found = await mind.recall(cue)
        explained = await mind.recalls.explain(found.recall_id)
        assert (explained.limit, len(found.hits), explained.same) == (most, most, True)
        fates = [each.fate for each in explained.placings]
        assert fates[:most] == [CandidateOutcome.HIT] * most
        assert {*fates[most:]} <= {CandidateOutcome.BELOW, CandidateOutcome.DUPLICATE}
        assert len((await mind.recalls.replay(found.recall_id, {"vector": 0.1})).placings) == most


async def test_recalls_are_listed_the_latest_first_page_by_page(mind, apples):
    ids = [(await mind.recall(replace(KEPT, text=f"apples {number}"))).recall_id for number in range(5)]
    first = await mind.recalls.list(limit=3)
    assert [each.text for each in first.recalls] == ["apples 4", "apples 3", "apples 2"]
    assert [each.hits for each in first.recalls] == [4, 4, 4]
    second = await mind.recalls.list(first.next_cursor, 3)
    assert [each.recall_id for each in second.recalls] == [ids[1], ids[0]]
    assert second.next_cursor is None
    with pytest.raises(InvalidInputError, match="limit"):
        await mind.recalls.list(limit=0)


async def test_a_recall_id_names_the_recall_in_feedback(mind, apples, owner):
    found = await mind.recall(Cue("apples", channels=("stream",), keep=True))
    await mind.feedback(found, [found.hits[0].memory.id])
    assert owner.execute("select distinct recall_id from feedback").fetchall() == [(found.recall_id,)]


# What a replay gives.


async def test_a_replay_ranks_what_was_found_then_whatever_was_remembered_since(mind, apples):
    found = await mind.recall(KEPT)
    await mind.remember(["Green apples in the garden, more of them.", "The green garden."])
    again = await mind.recalls.replay(found.recall_id)
    assert (of(again.placings), again.same, again.as_of) == (hits_of(found), True, None)
    assert [each.before for each in again.placings] == [1, 2, 3, 4]
    assert len((await mind.recall(replace(KEPT, keep=False))).hits) == 6


async def test_a_replay_by_other_weights_is_what_these_weights_would_have_given(mind, apples):
    found = await mind.recall(KEPT)
    wanted = dict.fromkeys(found.methods, 0.0) | {"text": 1.0}
    told = await mind.recall(replace(KEPT, keep=False, touch=False, weights=wanted))
    again = await mind.recalls.replay(found.recall_id, wanted)
    assert of(again.placings) == hits_of(told) != hits_of(found)
    assert not again.same
    assert again.weights["text"] == 1.0
    with pytest.raises(InvalidInputError, match="weights"):
        await mind.recalls.replay(found.recall_id, {"text": -1.0})


async def test_a_replay_as_of_a_moment_asks_again_and_leaves_no_trace(mind, apples, embedder, owner):
    moment = note_moment(owner)
    await mind.remember("Green apples in the garden, far too late.")
    found = await mind.recall(KEPT)
    assert len(found.hits) == 5
    calls, log = embedder.calls, owner.execute("select count(*) from access_log").fetchone()
    again = await mind.recalls.replay(found.recall_id, as_of=moment)
    assert {each.id for each in again.placings} == {*apples}
    assert (again.as_of, again.same) == (moment, False)
    assert all(each.memory.content for each in again.placings)
    assert embedder.calls == calls
    assert owner.execute("select count(*) from access_log").fetchone() == log
    assert count(owner) == 1


async def test_a_vector_of_a_space_that_recall_has_left_is_made_again(mind, apples, embedder, owner):
    found = await mind.recall(KEPT)
    owner.execute("update recalls set space_id = 99")
    calls = embedder.calls
    again = await mind.recalls.replay(found.recall_id, as_of=datetime.now(UTC))
    assert {each.id for each in again.placings} == {*apples}
    assert embedder.calls == calls + 1


WORDS = ("green", "apples", "garden", "Ann", "Bob", "book", "spring", "red", "苹果", "last week", "who", "yesterday")
cues = st.builds(
    Cue,
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join),
    limit=st.none() | st.integers(1, 20),
    kinds=st.sampled_from([(), (Kind.EVENT,), (Kind.EVENT, Kind.THOUGHT)]),
    channels=st.sampled_from([(), ("text",), ("stream",), ("text", "vector", "stream", "graph"), ("vector",)]),
    weights=st.dictionaries(st.sampled_from(("text", "vector", "stream")), st.floats(0.001, 10), max_size=3),
    touch=st.booleans(),
    zone=st.sampled_from(("UTC", "Asia/Shanghai", "America/New_York")),
    keep=st.just(True),
)


@pytest.mark.promise("A kept recall is replayed to the last bit", RECALLS)
async def test_kept_recalls_are_replayed_to_the_last_bit(mind, owner):
    # Nothing is given up here because the machine has much else to do.
    mind.access.parts.database.deadline_seconds = 300
    parts = with_options(mind.access.parts, channel_seconds=60, embed_wait_seconds=60)
    mind = with_access(mind, deadline_seconds=300, parts=parts)
    await mind.remember(
        [NewMemory(f"{WORDS[n % 9]} {WORDS[n % 7]} {n % 11}", importance=n % 9 + 1) for n in range(200)]
    )
    answered = []
    for start in range(0, RECALLS.now, 20):
        answered += [await mind.recall(cue) for cue in draw(cues, 20, start)]
        await mind.remember(f"{WORDS[start % 5]} apples {start}")
    differing = []
    for found in answered:
        again = await mind.recalls.replay(found.recall_id)
        if not again.same or of(again.placings) != hits_of(found):
            differing.append(found.recall_id)
    assert count(owner) == len(answered) == RECALLS.now
    assert differing == []


def draw(strategy, number, start):
    """Draw examples; the event loop that runs already forbids to run the test itself by them."""
    drawn = []

    # The first examples are the simplest ones; the last is kept.
    @seed(start)
    @settings(max_examples=5, database=None, deadline=None, suppress_health_check=[*HealthCheck])
    @given(st.lists(strategy, min_size=number, max_size=number))
    def collect(examples):
        drawn[:] = examples

    collect()
    return drawn


# What must not go wrong.


async def test_a_database_that_cannot_keep_it_does_not_spoil_the_answer(mind, apples, owner, caplog):
    owner.execute("revoke insert on recalls from recollect_service")
    with caplog.at_level(logging.WARNING, "recollect.recalls"):
        found = await mind.recall(KEPT)
    assert (len(found.hits), found.recall_id) == (4, None)
    assert "recall_not_saved" in caplog.text
    assert "apples" not in caplog.text


async def test_a_stalled_table_holds_the_answer_no_longer_than_its_share(mind, apples, addresses):
    with psycopg.connect(addresses.owner) as stalling:
        stalling.execute("lock table recalls in access exclusive mode")
        # The lock is not given back before there is an answer.
        found = await mind.recall(KEPT)
        stalling.rollback()
    assert (len(found.hits), found.recall_id) == (4, None)
    assert (await mind.recall(KEPT)).recall_id is not None


async def test_nobody_sees_the_recalls_of_another_scope_or_tenant(recollect, mind, apples):
    found = await mind.recall(KEPT)
    others = [await recollect.mind("ada"), await recollect.mind("ada", "li", tenant="another")]
    await others[1].remember(APPLES)
    for other in others:
        assert (await other.recalls.list()).recalls == ()
        with pytest.raises(NotFoundError, match="was not saved"):
            await other.recalls.explain(found.recall_id)
        with pytest.raises(NotFoundError):
            await other.recalls.replay(found.recall_id)
    with pytest.raises(NotFoundError):
        await mind.recalls.explain(uuid4())


async def test_to_look_back_takes_the_right_to_read(recollect, mind, apples):
    found = await mind.recall(KEPT)
    for right, allowed in ((Right.READ, True), (Right.WRITE, False)):
        _, secret = await new_key(recollect, rights=(right,))
        caller = await recollect.authorize(secret, "http", "ada", "li")
        if allowed:
            assert (await caller.recalls.explain(found.recall_id)).same
            continue
        for asking in (
            caller.recalls.explain(found.recall_id),
            caller.recalls.replay(found.recall_id),
            caller.recalls.list(),
        ):
            with pytest.raises(ForbiddenError):
                await asking


# When they go.


async def test_a_recall_goes_with_any_memory_that_it_lists(mind, apples, owner):
    listing = await mind.recall(replace(KEPT, limit=1))
    [far] = await mind.remember("Something else altogether.")
    sparing = await mind.recall(Cue("green apples", channels=("text",), keep=True))
    assert far.id not in {hit.memory.id for hit in sparing.hits}
    await mind.forget([far.id])
    assert count(owner) == 2
    # The weakest candidate, which was never shown: who said it was part of the ranking, too.
    weakest = (await mind.recalls.explain(listing.recall_id)).placings[-1].id
    assert weakest != listing.hits[0].memory.id
    await mind.forget([weakest])
    with pytest.raises(NotFoundError, match="forgotten"):
        await mind.recalls.explain(listing.recall_id)


async def test_a_recall_goes_with_the_message_that_was_its_cue(mind, owner):
    conversation = mind.conversation("talk")
    await mind.remember("Apples are red.")
    said = "My number is 4711."
    await mind.recall(Cue(f" {said}", channels=("text",), keep=True))
    await mind.recall(Cue("another cue", channels=("text",), keep=True))
    await conversation.append(NewMessage(Role.USER, said))
    await conversation.purge()
    assert owner.execute("select text from recalls").fetchall() == [("another cue",)]


async def test_a_recall_goes_with_what_was_blanked_by_a_purge(mind, owner):
    conversation = mind.conversation("talk")
    [message] = await conversation.append(NewMessage(Role.USER, "about cats"))
    [other] = await mind.remember("about dogs")
    await mind.remember(NewMemory("a notion", Kind.THOUGHT, evidence=(message.id, other.id)))
    await mind.recall(Cue("notion", channels=("text",), keep=True))
    assert count(owner) == 1
    await conversation.purge()
    assert count(owner) == 0


async def test_what_fades_or_hides_leaves_the_recall_and_not_its_words(mind, owner):
    conversation = mind.conversation("talk")
    await conversation.append(NewMessage(Role.USER, "a SECRET garden"))
    found = await mind.recall(Cue("garden", keep=True))
    assert len(found.hits) == 1
    await conversation.delete()
    explained = await mind.recalls.explain(found.recall_id)
    assert (explained.placings[0].memory, explained.same) == (None, True)


async def test_no_recall_is_kept_that_lists_what_is_being_forgotten(recollect, mind, apples, addresses, owner):
    place = await locate(recollect.parts.database, mind.access.scope)
    inputs = RankingInput(
        {"text": to_candidates([Candidate(each, 1.0) for each in apples])}, None, QueryAnalysis(), {"text": 1.0}, 5
    )
    kept = SavedRecallData(uuid4(), datetime.now(UTC), KEPT, None, None, inputs, (), 5, Status.OK, "", {}, {}, 0.0)
    with psycopg.connect(addresses.owner) as forgetting:
        forgetting.execute("delete from memories where id = %s", [apples[0]])
        keeping = asyncio.create_task(saved_recalls.keep(recollect.parts.database, place.scope_id or 0, kept))
        await until_blocked(owner, keeping)
        forgetting.commit()
    assert await keeping is False
    assert count(owner) == 0


async def test_one_that_is_being_kept_goes_with_what_is_forgotten_meanwhile(recollect, mind, apples, addresses, owner):
    found = await mind.recall(KEPT)
    scope_id = owner.execute("select scope_id from recalls").fetchone()[0]
    with psycopg.connect(addresses.owner) as keeping:
        keeping.execute("select pg_advisory_xact_lock_shared(hashint8extended(%s, 21))", [scope_id])
        columns = 'asked_at, text, cue, inputs, listed, hits, "limit", status, message, methods, tallies, milliseconds'
        keeping.execute(
            f"insert into recalls (scope_id, id, {columns}) select scope_id, gen_random_uuid(), {columns} from recalls"
        )
        forgetting = asyncio.create_task(mind.forget([found.hits[0].memory.id]))
        await until_blocked(owner, forgetting)
        keeping.commit()
    await forgetting
    assert count(owner) == 0


async def test_old_recalls_are_pruned_by_the_job_and_others_stay(recollect, mind, apples, owner):
    await mind.recall(KEPT)
    database = recollect.parts.database
    await prune_recalls(database, RetentionRules(recall_days=0))
    await prune_recalls(database, RetentionRules(recall_days=1))
    assert count(owner) == 1
    owner.execute("update recalls set id = %s", [memory_id(datetime.now(UTC) - timedelta(days=2), 0, bytes(8))])
    new = (await mind.recall(KEPT)).recall_id
    await retain(database, RetentionRules(recall_days=1))
    assert owner.execute("select id from recalls").fetchall() == [(new,)]


async def test_pruning_goes_on_beyond_one_chunk(recollect, mind, apples, owner, monkeypatch):
    for _ in range(5):
        await mind.recall(KEPT)
    monkeypatch.setattr(maintenance, "CHUNK", 2)
    assert await prune_recalls(recollect.parts.database, RetentionRules(recall_days=1e-9)) == 5
    assert count(owner) == 0
