"""Fading on the real store: what decays or expires leaves recall with its reason, and comes back as it was."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import count
from types import SimpleNamespace

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import new_key
from recollect.errors import ForbiddenError, InvalidInputError, LeaseLostError
from recollect.jobs.maintenance import RetentionPass, delete_expired
from recollect.models.agents import Profile
from recollect.models.conversations import NewMessage
from recollect.models.memories import FadeReason, FadingRules, Kind, NewMemory, Role, Triple
from recollect.models.recall import Cue
from recollect.models.service import Right
from recollect.store.memories import fading
from recollect.store.service.jobs import Lease
from recollect.store.service.maintenance import defer_due
from recollect.store.service.scopes import BEGINNING
from recollect.verbs.memories import fade as verb
from support.imports.generative_agents import read_golden
from support.measuring.sizes import Sizes
from support.memories.past import LONG_AGO, amend, moment, state, year
from support.service.known_numbers import VECTORS

EXAMPLES = Sizes("examples", ci=15, long=400)
MONTH = FadingRules(days=30)
CHANNELS = ("vector", "text", "stream")
COUNTERS = "select to_jsonb(scopes) - 'change_number' from scopes"
HOT = ("memory_terms", VECTORS, "memory_keywords", "accesses", "pending_embeddings")
WRITTEN = (
    *("memories", "memory_terms", "memory_keywords", "keyword_strengths", "accesses", "access_log"),
    *("withheld_memories", "withheld_vectors", VECTORS, "scopes", "procrastinate_jobs"),
)


def now():
    return datetime.now(UTC)


def age(owner, ids, days):
    """Let memories have been stored, and have happened, so many days ago, but for a minute."""
    then = now() - timedelta(days=days) + timedelta(minutes=1)
    owner.execute("update memories set created_at = %s, occurred_at = %s where id = any (%s)", [then, then, list(ids)])


def access(owner, ids, days, count):
    then = now() - timedelta(days=days) + timedelta(minutes=1)
    owner.execute(
        "insert into accesses (scope_id, id, kind, last_accessed_at, access_count) "
        "select scope_id, id, kind, %s, %s from memories where id = any (%s) "
        "on conflict (scope_id, id) do update set last_accessed_at = excluded.last_accessed_at, "
        "access_count = excluded.access_count",
        [then, count, list(ids)],
    )


async def store(mind, *memories):
    return [receipt.id for receipt in await mind.remember(memories)]


async def see(mind, text):
    shown = {}
    for channel in CHANNELS:
        cue = Cue(text, channels=(channel,), kinds=tuple(Kind), touch=False, limit=50)
        shown[channel] = [(hit.memory, hit.score, hit.channels) for hit in (await mind.recall(cue)).hits]
    return shown


def ids_of(shown):
    return {memory.id for hits in shown.values() for memory, _, _ in hits}


def snapshot(owner):
    return {table: owner.execute(f"select * from {table} order by 1, 2").fetchall() for table in WRITTEN}


def withheld(owner, identity):
    return owner.execute("select withheld from memories where id = %s", [identity]).fetchone()[0]


def rows_of(owner, ids):
    return {
        table: owner.execute(f"select count(*) from {table} where id = any (%s)", [ids]).fetchone()[0] for table in HOT
    }


async def test_the_golden_scores_decide_in_the_store(mind, owner, shared):
    golden = read_golden(shared, "golden_forgetting")
    rows = [(Kind.CHAT, row) for row in golden["working_memory"] if row["importance"] >= 0.1]
    rows += [(Kind.EVENT, row | {"importance": 0.5}) for row in golden["event_triplet"]]
    assert len(rows) == 22
    made = [NewMemory(f"Row {n}.", kind, importance=row["importance"] * 10) for n, (kind, row) in enumerate(rows)]
    ids = await store(mind, *made)
    for identity, (_, row) in zip(ids, rows, strict=True):
        age(owner, [identity], max(row["days_since_access"], 400 if row["access_count"] else 0))
        if row["access_count"]:
            access(owner, [identity], row["days_since_access"], row["access_count"])
    judged = {each.id: each for each in (await mind.fade(MONTH, ids=ids, dry_run=True)).judgements}
    report = await mind.fade(MONTH)
    for identity, (_, row) in zip(ids, rows, strict=True):
        assert judged[identity].score == pytest.approx(row["score"], abs=5e-5), row
        assert judged[identity].fades == row["forget"], row
        assert withheld(owner, identity) == ("faded" if row["forget"] else None)
    assert (report.looked_at, report.faded) == (22, sum(row["forget"] for _, row in rows))


async def test_what_has_faded_leaves_every_index_and_comes_back_as_it_was(mind, owner, embedder):
    old, new = (
        NewMemory("Klaus reads about tea.", triple=Triple("Klaus", "reads", "tea"), importance=3),
        NewMemory("Klaus drinks tea.", triple=Triple("Klaus", "drinks", "tea"), importance=3),
    )
    gone, kept = await store(mind, old, new)
    await mind.recall(Cue("Klaus tea", limit=2, channels=("stream",)))
    age(owner, [gone], 200)
    await see(mind, "tea")
    owner.execute("select fold_accesses(id) from scopes")
    access(owner, [gone], 100, 2)
    before, counted = await see(mind, "Klaus and tea"), owner.execute(COUNTERS).fetchone()
    strengths = owner.execute("select * from keyword_strengths order by 1, 2, 3").fetchall()
    assert {gone, kept} <= ids_of(before)

    report = await mind.fade(MONTH)
    assert (report.looked_at, report.faded, report.next_cursor) == (2, 1, None)
    assert report.grounds == {FadeReason.DECAYED: 1, FadeReason.KEPT: 1}
    [judgement] = report.judgements
    assert (judgement.id, judgement.kind, judgement.fades) == (gone, Kind.EVENT, True)
    assert judgement.reason == "Score 0.836246 is above 0.7: 2 accesses, the last 100.0 days ago."
    assert rows_of(owner, [gone]) == dict.fromkeys(HOT, 0)
    assert gone not in ids_of(await see(mind, "Klaus and tea"))
    # Out of recall, and still readable.
    assert (await mind.get(gone)).content == "Klaus reads about tea."
    assert gone in {memory.id for memory in (await mind.list()).memories}
    assert [each.id for each in (await mind.list(filter={"state": "faded"})).memories] == [gone]
    [listed] = (await mind.fade(ids=[gone], dry_run=True)).judgements
    assert (listed.id, listed.kind, listed.grounds, listed.reason) == (
        *(gone, Kind.EVENT, FadeReason.DECAYED),
        judgement.reason,
    )

    asked = embedder.calls
    assert await mind.restore([gone, kept]) == [gone]
    assert embedder.calls - asked == 0
    assert await see(mind, "Klaus and tea") == before
    assert owner.execute(COUNTERS).fetchone() == counted
    assert owner.execute("select * from keyword_strengths order by 1, 2, 3").fetchall() == strengths
    assert (await mind.list(filter={"state": "faded"})).memories == ()
    assert owner.execute("select count(*) from withheld_memories").fetchone()[0] == 0
    # Brought back is as good as new: it does not fade again at once.
    [again] = (await mind.fade(MONTH, ids=[gone], dry_run=True)).judgements
    assert not again.fades
    assert (await mind.fade(MONTH)).faded == 0


async def test_a_dry_run_writes_nothing_and_says_what_the_run_then_does(mind, owner):
    ids = await store(mind, *(NewMemory(f"Old thing {n}.", Kind.CHAT, importance=1 + n) for n in range(10)))
    age(owner, ids, 60)
    await mind.recall(Cue("thing", limit=3))
    before = snapshot(owner)
    shown = await mind.fade(MONTH, dry_run=True)
    assert snapshot(owner) == before
    done = await mind.fade(MONTH)
    assert (shown.dry_run, done.dry_run) == (True, False)
    assert {each.id for each in shown.judgements} == {each.id for each in done.judgements}
    assert (shown.faded, shown.grounds, shown.rules) == (done.faded, done.grounds, done.rules)
    assert done.rules == FadingRules(30, 0.7, 0)
    assert shown.grounds[FadeReason.PROTECTED] == 2


async def test_nothing_fades_unless_the_agent_or_the_service_says_so(recollect, mind, owner):
    ids = await store(mind, NewMemory("An old thing."))
    age(owner, ids, 500)
    report = await mind.fade()
    assert (report.looked_at, report.faded, report.rules.days) == (0, 0, 0)
    assert (await mind.fade(ids=ids, dry_run=True)).judgements[0].reason == "Nothing fades here by itself."
    await defer_due(recollect.parts.database, "fade", usual=0)
    assert owner.execute("select lock from procrastinate_jobs where task_name = 'fade'").fetchall() == []
    await mind.set_profile(Profile(fading_days=30))
    assert (await mind.fade(dry_run=True)).faded == 1
    await mind.set_profile(Profile(fading_days=0))
    await defer_due(recollect.parts.database, "fade", usual=30)
    assert owner.execute("select lock from procrastinate_jobs where task_name = 'fade'").fetchall() == []
    await mind.set_profile(Profile())
    await defer_due(recollect.parts.database, "fade", usual=30)
    assert owner.execute("select lock from procrastinate_jobs where task_name = 'fade'").fetchall() == [
        (f"fade:{owner.execute('select id from scopes').fetchone()[0]}",)
    ]


async def test_facts_may_grow_old_unless_the_agent_says_how_old(mind, owner):
    young, old, dear = await store(
        mind,
        NewMemory("Li lives in Bern.", Kind.FACT),
        NewMemory("Li works at a bank.", Kind.FACT),
        NewMemory("Li is allergic to peanuts.", Kind.FACT, importance=9),
    )
    age(owner, [young], 89)
    age(owner, [old, dear], 91)
    assert (await mind.fade(MONTH)).faded == 0
    report = await mind.fade(FadingRules(days=30, fact_days=90))
    assert [(each.id, each.grounds) for each in report.judgements] == [(old, FadeReason.AGED)]
    assert report.judgements[0].reason == "It is 91.0 days old, older than 90."
    assert report.grounds == {FadeReason.AGED: 1, FadeReason.KEPT: 1, FadeReason.PROTECTED: 1}
    await mind.restore([old])
    assert (await mind.fade(FadingRules(days=30, fact_days=90))).faded == 0


async def test_messages_and_the_running_summary_go_with_their_conversation(mind, owner):
    said = await mind.conversation("cats").append([NewMessage(Role.USER, "My cats sleep.")])
    ids = [each.id for each in said]
    [first] = await store(mind, NewMemory("Cats.", Kind.SUMMARY, evidence=tuple(ids), importance=1))
    [running] = await store(mind, NewMemory("Sleeping cats.", Kind.SUMMARY, evidence=tuple(ids), importance=1))
    [alone] = await store(mind, NewMemory("Said outside.", Kind.MESSAGE, importance=1))
    age(owner, [*ids, first, running, alone], 300)
    report = await mind.fade(MONTH)
    assert {each.id for each in report.judgements} == {first, alone}
    assert report.grounds == {FadeReason.HELD: 2, FadeReason.DECAYED: 2}
    owner.execute("update memories set expires_at = now() where id = %s", [ids[0]])
    assert [each.grounds for each in (await mind.fade(MONTH)).judgements] == [FadeReason.EXPIRED]


async def test_what_expires_is_out_of_recall_at_once_and_out_of_the_indexes_with_the_next_sweep(recollect, mind, owner):
    later = now() + timedelta(days=1)
    [gone] = await store(mind, NewMemory("The code is 1234.", importance=10, expires_at=later))
    [loaded] = await mind.load([NewMemory("The code was 4321.", expires_at=now() + timedelta(days=1))])
    assert (await mind.get(gone)).expires_at == later
    assert (await mind.get(loaded)).expires_at is not None
    assert gone in ids_of(await see(mind, "code"))
    owner.execute("update memories set expires_at = now() where id = %s", [gone])
    assert ids_of(await see(mind, "code")) == {loaded}
    assert rows_of(owner, [gone])["memory_terms"] == 1
    assert (await mind.get(gone)).content == "The code is 1234."
    await delete_expired(recollect.parts.database, rederive=False)
    await recollect.work(until_empty=True)
    assert rows_of(owner, [gone]) == dict.fromkeys(HOT, 0)
    [listed] = (await mind.fade(ids=[gone], dry_run=True)).judgements
    assert (listed.id, listed.grounds) == (gone, FadeReason.EXPIRED)
    # Restoring says that it is wanted after all: it expires no more.
    assert await mind.restore([gone]) == [gone]
    assert (await mind.get(gone)).expires_at is None
    assert gone in ids_of(await see(mind, "code"))


@pytest.mark.parametrize(
    ("memory", "words"),
    [
        (NewMemory("x", expires_at=datetime(2030, 1, 1)), "offset"),  # noqa: DTZ001
        (
            NewMemory("x", occurred_at=datetime(2030, 1, 1, tzinfo=UTC), expires_at=datetime(2029, 1, 1, tzinfo=UTC)),
            "after",
        ),
        (NewMemory("x", expires_at=datetime(9999, 1, 1, tzinfo=UTC)), "years"),
    ],
)
async def test_an_expiry_that_cannot_be_is_refused(mind, memory, words):
    with pytest.raises(InvalidInputError, match=words):
        await mind.remember(memory)
    with pytest.raises(InvalidInputError, match=words):
        await mind.load([memory])


async def test_the_same_key_with_another_expiry_is_another_body(mind):
    await mind.remember(NewMemory("x"), idempotency_key="k")
    await mind.remember(NewMemory("x"), idempotency_key="k")
    with pytest.raises(Exception, match="a different request"):
        await mind.remember(NewMemory("x", expires_at=now() + timedelta(days=1)), idempotency_key="k")


async def test_what_is_recalled_while_a_pass_runs_is_kept(recollect, mind, owner, monkeypatch):
    ids = await store(mind, NewMemory("A lamp in the cellar."), NewMemory("A lamp in the attic."))
    age(owner, ids, 300)
    judged, fade_now = [], fading.fade_now

    async def recalled_first(database, walk, chosen):
        judged.extend(chosen)
        await mind.recall(Cue("cellar", limit=1, channels=("text",)))
        return await fade_now(database, walk, chosen)

    monkeypatch.setattr(fading, "fade_now", recalled_first)
    report = await mind.fade(MONTH)
    assert judged == ids
    assert [each.id for each in report.judgements] == [ids[1]]
    assert report.grounds == {FadeReason.KEPT: 1, FadeReason.DECAYED: 1}
    assert (withheld(owner, ids[0]), withheld(owner, ids[1])) == (None, "faded")


async def test_many_recalls_beside_a_pass_neither_block_it_nor_bring_anything_half_back(recollect, mind, owner):
    ids = await store(mind, *(NewMemory(f"Stone number {n}.") for n in range(60)))
    age(owner, ids, 300)
    recalls = [mind.recall(Cue("stone", limit=20)) for _ in range(20)]
    report, *_ = await asyncio.gather(mind.fade(MONTH), *recalls)
    faded = {row[0] for row in owner.execute("select id from memories where withheld = 'faded'")}
    assert report.faded == len(faded)
    owner.execute("select fold_accesses(id) from scopes")
    assert not sum(rows_of(owner, list(faded)).values())
    assert rows_of(owner, list(set(ids) - faded))["memory_terms"] == 60 - len(faded)
    await mind.restore(ids)
    assert owner.execute("select memory_count from scopes").fetchone()[0] == 60


async def test_what_had_faded_is_still_faded_when_a_deleted_conversation_is_back(mind, owner):
    conversation = mind.conversation("cats")
    said = await conversation.append([NewMessage(Role.USER, "My cats sleep.")])
    [thought] = await store(mind, NewMemory("Cats sleep.", Kind.THOUGHT, evidence=(said[0].id,), importance=1))
    age(owner, [thought], 300)
    owner.execute("update memories set expires_at = now() where id = %s", [said[0].id])
    before = await see(mind, "cats")
    assert (await mind.fade(MONTH)).faded == 2
    await conversation.delete()
    assert (withheld(owner, thought), withheld(owner, said[0].id)) == ("deleted", "deleted")
    assert (await mind.list(filter={"state": "faded"})).memories == ()
    assert await mind.restore([thought]) == []
    await conversation.update(state="active")
    assert (withheld(owner, thought), withheld(owner, said[0].id)) == ("faded", "faded")
    assert not ids_of(await see(mind, "cats"))
    await conversation.update(state="archived")
    await conversation.update(state="active")
    assert len((await mind.list(filter={"state": "faded"})).memories) == 2
    assert len(await mind.restore([thought, said[0].id])) == 2
    after = await see(mind, "cats")
    assert ids_of(after) == {thought, said[0].id} == ids_of(before) | {said[0].id}


async def test_what_has_faded_can_be_forgotten_and_purged(mind, owner):
    conversation = mind.conversation("cats")
    said = await conversation.append([NewMessage(Role.USER, "My cats sleep.")])
    [thought] = await store(mind, NewMemory("Cats sleep.", Kind.THOUGHT, evidence=(said[0].id,), importance=1))
    [event] = await store(mind, NewMemory("Rain."))
    age(owner, [thought, event], 300)
    assert (await mind.fade(MONTH)).faded == 2
    await mind.forget([event])
    await conversation.purge()
    assert owner.execute("select count(*) from memories").fetchone()[0] == 0
    assert owner.execute("select count(*) from withheld_memories").fetchone()[0] == 0
    assert owner.execute("select memory_count from scopes").fetchone()[0] == 0


async def test_a_restored_memory_that_had_no_vector_yet_waits_for_it_again(recollect, mind, owner, embedder):
    embedder.fail()
    [gone] = await store(mind, NewMemory("A bell rang."))
    age(owner, [gone], 300)
    await mind.fade(MONTH)
    await mind.restore([gone])
    assert owner.execute("select id from pending_embeddings").fetchall() == [(gone,)]
    assert owner.execute("select count(*) from procrastinate_jobs where task_name = 'embed'").fetchone()[0] >= 1


async def test_nobody_fades_or_restores_what_is_anothers(recollect, mind, owner):
    other = await recollect.mind("ada", "wu")
    stranger = await recollect.mind("ada", "li", tenant="other")
    [mine] = await store(mind, NewMemory("Mine."))
    for another in (other, stranger):
        await store(another, NewMemory("Theirs."))
    age(owner, [mine], 300)
    owner.execute("update memories set created_at = now() - interval '1 year', occurred_at = now() - interval '1 year'")
    assert (await other.fade(MONTH, ids=[mine], dry_run=True)).judgements == ()
    assert (await mind.fade(MONTH)).faded == 1
    assert owner.execute("select count(*) from memories where withheld is not null").fetchone()[0] == 1
    for another in (other, stranger):
        assert (await another.list(filter={"state": "faded"})).memories == ()
        assert await another.restore([mine]) == []
    assert withheld(owner, mine) == "faded"


async def test_only_named_memories_fade_and_each_says_why(mind, owner):
    first, second, new = await store(mind, NewMemory("One."), NewMemory("Two."), NewMemory("Three."))
    age(owner, [first, second], 300)
    report = await mind.fade(MONTH, ids=[new, first])
    assert (report.looked_at, report.faded, report.next_cursor) == (2, 1, None)
    assert {each.id: each.fades for each in report.judgements} == {first: True, new: False}
    assert [each.id for each in (await mind.list(filter={"state": "faded"})).memories] == [first]
    again = await mind.fade(MONTH, ids=[new, first])
    assert (again.faded, {each.id: each.faded_at is None for each in again.judgements}) == (
        0,
        {first: False, new: True},
    )


async def test_rights_rules_and_numbers_are_checked(recollect, mind, owner):
    await store(mind, NewMemory("x"))
    _, secret = await new_key(recollect, rights=(Right.READ,))
    reader = await recollect.authorize(secret, "test", "ada", "li")
    assert (await reader.fade(MONTH, dry_run=True)).looked_at == 1
    for refused in (reader.fade(MONTH), reader.restore([BEGINNING])):
        with pytest.raises(ForbiddenError):
            await refused
    for rules in (FadingRules(days=-1), FadingRules(days=1, threshold=1.5), FadingRules(fact_days=1e9)):
        with pytest.raises(InvalidInputError):
            await mind.fade(rules)
    for profile in (Profile(fading_days=-1), Profile(fading_threshold=2), Profile(fading_fact_days=1e9)):
        with pytest.raises(InvalidInputError):
            await mind.set_profile(profile)
    with pytest.raises(InvalidInputError):
        await mind.restore([])
    with pytest.raises(InvalidInputError):
        await mind.fade(MONTH, ids=[])
    nowhere = await recollect.mind("nobody")
    assert (await nowhere.fade(MONTH)).looked_at == 0
    assert (await nowhere.list(filter={"state": "faded"})).memories == ()


async def test_a_pass_over_many_runs_in_small_transactions_and_tells_how_far_it_is(recollect, mind, owner, monkeypatch):
    many = 5_000
    ids = await mind.load([NewMemory(f"Grain {n} of sand.", importance=1 + n % 10) for n in range(many)])
    age(owner, [identity for n, identity in enumerate(ids) if n % 2], 300)
    await mind.set_profile(Profile(fading_days=30))
    sizes, fade_now = [], fading.fade_now

    async def measured(database, walk, chosen):
        sizes.append(len(chosen))
        return await fade_now(database, walk, chosen)

    monkeypatch.setattr(fading, "fade_now", measured)
    await defer_due(recollect.parts.database, "fade", usual=0)
    await recollect.work(until_empty=True)
    # Every other one is old; of those, one in five is protected.
    assert owner.execute("select count(*) from memories where withheld = 'faded'").fetchone()[0] == sum(sizes)
    assert sum(sizes) == 2_000
    assert len(sizes) == 10
    assert max(sizes) <= fading.CHUNK
    assert (
        owner.execute("select count(*) from memories where withheld = 'faded' and importance >= 9").fetchone()[0] == 0
    )
    assert owner.execute("select memory_count from scopes").fetchone()[0] == 3_000
    assert owner.execute("select count(*) from procrastinate_jobs where task_name = 'fade'").fetchone() == (0,)


async def test_a_call_stops_in_time_and_says_where_to_go_on(mind, owner, monkeypatch):
    ids = await mind.load([NewMemory(f"Grain {n} of sand.") for n in range(fading.CHUNK + 5)])
    age(owner, ids, 300)
    clock = count(0, verb.FADE_SECONDS * 0.6)
    monkeypatch.setattr(verb, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    first = await mind.fade(MONTH)
    assert (first.looked_at, first.next_cursor) == (fading.CHUNK, ids[fading.CHUNK - 1])
    assert len(first.judgements) == verb.MAX_LISTED
    second = await mind.fade(MONTH, cursor=first.next_cursor)
    assert (second.looked_at, second.faded, second.next_cursor) == (5, 5, None)
    pages, cursor = [], None
    while True:
        page = await mind.list(filter={"state": "faded"}, cursor=cursor, limit=200)
        pages += [each.id for each in page.memories]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert pages == ids


async def test_a_worker_that_lost_its_job_lets_nothing_fade(recollect, mind, owner):
    ids = await store(mind, NewMemory("An old thing."))
    age(owner, ids, 300)
    scope_id = owner.execute("select id from scopes").fetchone()[0]
    with pytest.raises(LeaseLostError):
        await RetentionPass(recollect.parts.database, scope_id).run(30, Lease(10**9, 1))
    assert withheld(owner, ids[0]) is None


async def test_the_walk_goes_by_the_key_and_reads_each_row_once(mind, owner, addresses):
    await mind.load([NewMemory(f"Grain {n} of sand.") for n in range(3_000)])
    owner.execute("analyze")
    scope_id = owner.execute("select id from scopes").fetchone()[0]
    bounds = {"scope_id": scope_id, "cursor": BEGINNING, "limit": 500, "ids": None, "expired": False}
    with psycopg.connect(addresses.service) as service:
        service.execute("select set_config('recollect.tenant', %s, true)", [str(scope_id >> 40)])
        query = "explain (analyze, costs off) " + fading.QUERIES["standings"]
        plan = "\n".join(row[0] for row in service.execute(query, bounds).fetchall())
        expired = "\n".join(
            row[0] for row in service.execute(query, bounds | {"expired": True, "cursor": BEGINNING}).fetchall()
        )
    assert "Index Scan using memories_pkey on memories" in plan, plan
    assert "Seq Scan on memories" not in plan, plan
    assert "memories_expiring" in expired, expired


@pytest.mark.promise("What is protected never fades, and deciding twice is the same", EXAMPLES)
@settings(max_examples=EXAMPLES.now)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([Kind.EVENT, Kind.CHAT, Kind.THOUGHT, Kind.FACT, Kind.SUMMARY]),
            st.integers(1, 10),
            st.integers(0, 200),
            st.integers(0, 30),
        ),
        min_size=1,
        max_size=12,
    )
)
async def test_deciding_twice_is_the_same_and_what_is_protected_never_fades(mind, owner, drawn):
    ids = await store(mind, *(NewMemory("Something.", kind, importance=weight) for kind, weight, _, _ in drawn))
    for identity, (_, _, days, times) in zip(ids, drawn, strict=True):
        age(owner, [identity], days + 0.5)
        if times:
            access(owner, [identity], days / 2 + 0.25, times)
    rules = FadingRules(days=30, fact_days=90)
    first, second = [(await mind.fade(rules, ids=ids, dry_run=True)).judgements for _ in range(2)]
    assert [(each.id, each.fades, each.grounds) for each in first] == [
        (each.id, each.fades, each.grounds) for each in second
    ]
    await mind.fade(rules)
    for judgement, identity, (_, weight, _, _) in zip(first, ids, drawn, strict=True):
        assert judgement.id == identity
        assert withheld(owner, identity) == ("faded" if judgement.fades else None)
        assert not (weight >= 9 and judgement.fades)
    again = await mind.fade(rules)
    assert again.faded == 0
    await mind.forget(ids)


async def test_a_version_that_has_faded_is_still_what_was_believed_then(mind, owner):
    fact = await state(mind, owner, "Ann lives in Paris.", year(2020))
    other = await state(mind, owner, "Bob lives in Rome.", year(2020))
    before = moment(owner)
    owner.execute("update memories set created_at = %s where id = %s", [LONG_AGO, fact])
    assert (await mind.fade(FadingRules(days=30, fact_days=90))).faded == 1

    async def remind(**times):
        return {hit.memory.content for hit in (await mind.recall(Cue("Who lives in Paris?", **times))).hits}

    assert await remind() == {"Bob lives in Rome."}
    assert await remind(as_of=before) == {"Ann lives in Paris.", "Bob lives in Rome."}
    # A correction finds it though it has faded; from then on it is past, and no fading brings it back.
    await amend(mind, owner, fact, "Ann lives in Berlin.", year(2024))
    assert withheld(owner, fact) == "past"
    assert await mind.restore([fact]) == []
    assert await remind() == {"Bob lives in Rome.", "Ann lives in Berlin."}
    assert await remind(as_of=before) == {"Ann lives in Paris.", "Bob lives in Rome."}
    # What came to its end while it had faded does not come back into the indexes either.
    owner.execute("update memories set created_at = %s where id = %s", [LONG_AGO, other])
    assert (await mind.fade(FadingRules(days=30, fact_days=90))).faded == 1
    owner.execute("update beliefs set invalid_at = now() where id = %s", [other])
    assert await mind.restore([other]) == []
    assert withheld(owner, other) == "past"
