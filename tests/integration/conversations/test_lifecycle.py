"""A conversation's life on the real store: out of recall and back as it was, hidden, due, and never half visible."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

import pytest

from conftest import http_client, new_key
from recollect.core.conversations.retention import RetentionRules
from recollect.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from recollect.jobs.worker import WorkerOptions, build_app
from recollect.llm.fake import FakeEmbedder
from recollect.mind.conversations import Conversation
from recollect.models.agents import Profile
from recollect.models.conversations import ConversationState, NewMessage
from recollect.models.memories import Kind, NewMemory, Role, Triple
from recollect.models.recall import Cue, StreamWeights
from recollect.models.service import Right
from recollect.settings import Settings
from recollect.store.conversations import lifecycle
from recollect.store.conversations.lifecycle import StateChange
from recollect.store.memories import spaces
from recollect.verbs.conversations import lifecycle as verb
from recollect.wiring import connected
from support.programs.waiting import until
from support.service.known_numbers import VECTORS
from support.service.made_settings import make_settings
from support.service.purge_receipts import receipts_of

ACTIVE, ARCHIVED, DELETED, PURGING = ConversationState
CHANNELS = ("vector", "text", "stream")
archive, restore = (partial(Conversation.update, state=state) for state in (ARCHIVED, ACTIVE))
HOT = ("memory_terms", VECTORS, "memory_keywords", "accesses", "pending_embeddings")


def user(content, **more):
    return NewMessage(Role.USER, content, **more)


def assistant(content, **more):
    return NewMessage(Role.ASSISTANT, content, **more)


async def converse_about_cats(mind, name="cats", turns=3):
    conversation = mind.conversation(name)
    said = []
    for turn in range(turns):
        said += await conversation.append(
            [user(f"My {name} number {turn} sleeps."), assistant(f"A sleeping {name}, {turn}.")]
        )
    return conversation, [each.id for each in said]


async def see(mind, text):
    """Whatever a scope shows of a text, by every way of recalling."""
    shown = {}
    for channel in CHANNELS:
        cue = Cue(text, channels=(channel,), kinds=(Kind.MESSAGE, Kind.THOUGHT, Kind.SUMMARY), touch=False, limit=50)
        shown[channel] = [(hit.memory.id, hit.score) for hit in (await mind.recall(cue)).hits]
    return shown


def ids_of(shown):
    return {identity for hits in shown.values() for identity, _ in hits}


def scope_row(owner):
    return owner.execute(
        "select memory_count, event_count, thought_count, chat_count, term_count from scopes"
    ).fetchone()


def rows_of(owner, table, ids):
    return owner.execute(f"select count(*) from {table} where id = any (%s)", [ids]).fetchone()[0]


def strengths(owner):
    return owner.execute("select kind, keyword, strength from keyword_strengths order by 1, 2").fetchall()


async def read_all(mind):
    return {memory.id for memory in (await mind.list(limit=200)).memories}


@pytest.mark.promise("An archived conversation leaves recall and comes back as it was")
async def test_an_archived_conversation_leaves_recall_and_comes_back_as_it_was(mind, owner, embedder):
    await mind.remember([NewMemory("The cats were fed.", keywords=("cats",)), NewMemory("Rain all day.")])
    conversation, ids = await converse_about_cats(mind)
    await mind.recall(Cue("sleeping cats", kinds=(Kind.MESSAGE,), limit=2))
    await mind.recall(Cue("cats number 1", kinds=(Kind.MESSAGE,), limit=2))
    before, counted, named = await see(mind, "sleeping cats"), scope_row(owner), strengths(owner)
    assert set(ids) & ids_of(before)

    assert (await conversation.update(state="archived")).state is ARCHIVED
    assert not set(ids) & ids_of(await see(mind, "sleeping cats"))
    assert {table: rows_of(owner, table, ids) for table in HOT} == dict.fromkeys(HOT, 0)
    assert (
        owner.execute(
            "select count(*) from access_log, unnest(ids) touched (id) where touched.id = any (%s)", [ids]
        ).fetchone()[0]
        == 0
    )
    assert scope_row(owner)[0] == 2
    # Readable all the same: its history, and each of its memories.
    assert len((await conversation.history(1000)).messages) == 6
    assert (await mind.get(ids[0])).conversation == "cats"
    assert set(ids) < await read_all(mind)

    asked = embedder.calls
    assert (await conversation.update(state="active")).state is ACTIVE
    assert embedder.calls == asked
    assert await see(mind, "sleeping cats") == before
    assert scope_row(owner) == counted
    assert strengths(owner) == named
    for table in ("withheld_memories", "withheld_vectors"):
        assert owner.execute(f"select count(*) from {table}").fetchone()[0] == 0


async def test_the_index_by_time_holds_nothing_of_an_archived_conversation(mind, owner):
    _, kept = await converse_about_cats(mind, "dogs", turns=1)
    conversation, ids = await converse_about_cats(mind)
    owner.execute("create extension if not exists pageinspect")
    entries = "select count(*) from bt_page_items('memories_by_time', 1)"
    await conversation.update(state="archived")
    owner.execute("vacuum memories")
    owner.execute("reindex index memories_by_time")
    assert owner.execute(entries).fetchone()[0] == len(kept)
    await conversation.update(state="active")
    owner.execute("reindex index memories_by_time")
    assert owner.execute(entries).fetchone()[0] == len(kept) + len(ids)


async def test_the_next_word_brings_an_archived_conversation_back(recollect, mind, owner):
    conversation, ids = await converse_about_cats(mind)
    await conversation.update(state="archived")
    [more] = await conversation.append(user("And another of the cats."))
    assert (await conversation.get()).state is ACTIVE
    await recollect.work(until_empty=True)
    assert {*ids, more.id} <= ids_of(await see(mind, "cats"))
    assert owner.execute("select synced from conversations").fetchone()[0]


async def test_what_waits_for_its_vector_waits_again_when_it_is_back(recollect, mind, owner, embedder):
    embedder.fail()
    conversation, ids = await converse_about_cats(mind, turns=1)
    await conversation.update(state="archived")
    assert rows_of(owner, "pending_embeddings", ids) == 0
    embedder.recover()
    await recollect.work(until_empty=True)
    assert rows_of(owner, VECTORS, ids) == 0
    await conversation.update(state="active")
    assert rows_of(owner, "pending_embeddings", ids) == 2
    await recollect.work(until_empty=True)
    assert rows_of(owner, VECTORS, ids) == 2


async def test_a_vector_that_comes_late_finds_no_archived_memory(recollect, mind, owner, embedder, monkeypatch):
    embedder.fail()
    conversation, ids = await converse_about_cats(mind, turns=1)
    embedder.recover()
    embed, asked, gate = embedder.embed, asyncio.Event(), asyncio.Event()

    async def embed_late(texts):
        asked.set()
        await gate.wait()
        return await embed(texts)

    monkeypatch.setattr(embedder, "embed", embed_late)
    working = asyncio.create_task(recollect.work(until_empty=True))
    await asked.wait()
    await conversation.update(state="archived")
    gate.set()
    await working
    assert rows_of(owner, VECTORS, ids) == 0


async def derive(mind, content, evidence, kind=Kind.THOUGHT):
    [made] = await mind.remember(NewMemory(content, kind, evidence=tuple(evidence), keywords=("derived",)))
    return made.id


async def test_a_deleted_conversation_takes_what_was_made_from_it_out_of_sight(mind, owner):
    conversation, ids = await converse_about_cats(mind)
    other, theirs = await converse_about_cats(mind, "dogs")
    alone = await derive(mind, "Cats sleep a lot.", ids[:2])
    deeper = await derive(mind, "All that sleeps is a cat.", [alone])
    shared = await derive(mind, "Cats and dogs sleep.", [ids[5], theirs[0]], Kind.SUMMARY)
    untouched = await derive(mind, "Dogs sleep too.", theirs[:1])
    before, counted, named = await see(mind, "sleep"), scope_row(owner), strengths(owner)

    assert (await conversation.delete()).state is DELETED
    hidden = {*ids, alone, deeper, shared}
    assert not hidden & (ids_of(await see(mind, "sleep")) | await read_all(mind))
    found = await mind.associate(Triple("derived", "", ""))
    assert {memory.id for memory in found[0].thoughts} == {untouched}
    for question in (conversation.history(100), conversation.segments(), mind.get(ids[0]), mind.get(shared)):
        with pytest.raises(NotFoundError):
            await question
    assert [each.id for each in (await mind.conversations()).conversations] == ["dogs"]
    assert [each.id for each in (await mind.conversations(DELETED)).conversations] == ["cats"]
    with pytest.raises(ConflictError, match="Restore it first"):
        await conversation.append(user("still there?"))
    with pytest.raises(ConflictError, match="Restore it first"):
        await conversation.update(state="archived")

    # What was made from both comes back only when both are back.
    await other.delete()
    await conversation.update(state="active")
    shown = await read_all(mind)
    assert {*ids, alone, deeper} <= shown
    assert not {shared, untouched, *theirs} & shown
    await other.update(state="active")
    assert await see(mind, "sleep") == before
    assert scope_row(owner) == counted
    assert strengths(owner) == named


async def test_what_is_deleted_is_no_evidence(mind):
    conversation, ids = await converse_about_cats(mind)
    await conversation.delete()
    with pytest.raises(Exception, match="evidence"):
        await derive(mind, "Cats sleep.", ids[:1])


@pytest.mark.promise("A deletion is seen at once, however much is left to do")
async def test_deletion_is_seen_at_once_however_much_is_left_to_do(mind, owner, monkeypatch):
    _, ids = await converse_about_cats(mind)
    alone = await derive(mind, "Cats sleep a lot.", ids[:2])
    deeper = await derive(mind, "All that sleeps is a cat.", [alone])
    place = await lifecycle.change(mind.access.parts.database, mind.access.scope, "cats", StateChange(DELETED, "test"))
    assert rows_of(owner, VECTORS, ids) == 6, "nothing has left the indexes yet"
    assert not {*ids, alone, deeper} & (ids_of(await see(mind, "sleep")) | await read_all(mind))
    with pytest.raises(Exception, match="evidence"):
        await derive(mind, "Late.", [deeper])
    monkeypatch.setattr(lifecycle, "CHUNK", 2)
    steps = []
    while step := await lifecycle.sync_chunk(mind.access.parts.database, place):
        steps.append((step.messages, step.last))
        assert not {*ids, alone, deeper} & (ids_of(await see(mind, "sleep")) | await read_all(mind))
    assert steps == [(2, False), (2, False), (2, False), (0, True)]
    assert rows_of(owner, VECTORS, [*ids, alone, deeper]) == 0


async def test_a_change_of_mind_half_way_ends_where_the_last_word_was(mind, owner, monkeypatch):
    monkeypatch.setattr(lifecycle, "CHUNK", 2)
    monkeypatch.setattr(verb, "SYNC_SECONDS", 0)
    conversation, ids = await converse_about_cats(mind)
    made = await derive(mind, "Cats sleep a lot.", [ids[0], ids[5]])
    before, counted = await see(mind, "sleep"), scope_row(owner)
    scope_id = owner.execute("select id from scopes").fetchone()[0]
    for state, chunks in (
        (Conversation.delete, 2),
        (restore, 1),
        (archive, 2),
        (Conversation.delete, 1),
        (restore, 0),
    ):
        await state(conversation)
        for _ in range(chunks):
            await lifecycle.sync_chunk(mind.access.parts.database, scope_id)
    await conversation.update(state="archived")
    while await lifecycle.sync_chunk(mind.access.parts.database, scope_id):
        pass
    assert made in await read_all(mind)
    assert not set(ids) & ids_of(await see(mind, "sleep"))
    await conversation.update(state="active")
    while await lifecycle.sync_chunk(mind.access.parts.database, scope_id):
        pass
    assert await see(mind, "sleep") == before
    assert scope_row(owner) == counted


@pytest.mark.promise("A worker finishes a change of state that a call only began")
async def test_the_worker_finishes_what_the_call_began(recollect, mind, owner, monkeypatch):
    monkeypatch.setattr(lifecycle, "CHUNK", 2)
    monkeypatch.setattr(verb, "SYNC_SECONDS", 0)
    conversation, ids = await converse_about_cats(mind)
    await conversation.update(state="archived")
    assert rows_of(owner, "memory_terms", ids) == 6
    await recollect.work(until_empty=True)
    assert rows_of(owner, "memory_terms", ids) == 0
    assert owner.execute("select synced, state from conversations").fetchone() == (True, "archived")
    assert "sync_state" not in {task for task, _, _ in await recollect.jobs.counts()}


async def test_a_worker_does_not_pass_by_what_was_queued_behind_a_running_job(recollect, mind, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG, "procrastinate.worker")
    monkeypatch.setattr(lifecycle, "CHUNK", 2)
    monkeypatch.setattr(verb, "SYNC_SECONDS", 0)
    sync_chunk, queued = lifecycle.sync_chunk, False

    async def as_the_sweep_comes(database, scope_id, **options):
        nonlocal queued
        if not queued:
            queued = True
            await until(lambda: "Stopping worker because wait=False" in caplog.text)
            async with database.transaction(scope_id >> 40) as connection:
                await lifecycle.defer_sync(connection, scope_id)
        return await sync_chunk(database, scope_id, **options)

    conversation, _ = await converse_about_cats(mind)
    await conversation.update(state="archived")
    monkeypatch.setattr(lifecycle, "sync_chunk", as_the_sweep_comes)
    await recollect.work(until_empty=True)
    assert queued
    assert "sync_state" not in {task for task, _, _ in await recollect.jobs.counts()}


@pytest.mark.promise("Two who sync the state of one conversation side by side do no harm")
async def test_syncing_side_by_side_does_no_harm(mind, owner, monkeypatch):
    monkeypatch.setattr(lifecycle, "CHUNK", 3)
    monkeypatch.setattr(verb, "SYNC_SECONDS", 60.0)
    conversation, ids = await converse_about_cats(mind, turns=20)
    counted = scope_row(owner)
    for state in (archive, restore, Conversation.delete, restore):
        await asyncio.gather(
            *[state(conversation) for _ in range(4)], *[converse_about_cats(mind, f"c{n}", turns=1) for n in range(3)]
        )
    assert rows_of(owner, "memory_terms", ids) == len(ids)
    assert scope_row(owner)[0] == counted[0] + 4 * 3 * 2
    total = owner.execute("select count(*) from memories where withheld is null").fetchone()[0]
    assert scope_row(owner)[0] == total


async def test_states_that_are_there_already_or_cannot_be_reached(mind):
    conversation, _ = await converse_about_cats(mind)
    assert (await conversation.update(state="active")).state is ACTIVE
    first = await conversation.update(state="archived")
    assert await conversation.update(state="archived") == first
    first = await conversation.delete()
    assert await conversation.delete() == first
    for ask in (archive, Conversation.purge):
        with pytest.raises(NotFoundError):
            await ask(mind.conversation("none"))


async def test_an_update_changes_all_that_it_names_or_nothing(mind):
    conversation, ids = await converse_about_cats(mind)
    changed = await conversation.update(name="Cats", metadata={"a": 1}, state="archived", close_segment=True)
    assert (changed.name, changed.metadata, changed.state, changed.threads) == ("Cats", {"a": 1}, ARCHIVED, ())
    assert [(each.first_number, each.last_number) for each in await conversation.segments()] == [(1, 6)]
    assert await conversation.update() == changed
    await conversation.delete()
    for wanted, error in (
        ({"name": "Dogs"}, NotFoundError),
        ({"name": "Dogs", "state": "archived"}, ConflictError),
        ({"close_segment": True}, NotFoundError),
    ):
        with pytest.raises(error):
            await conversation.update(**wanted)
    for state in ("deleted", "purging", PURGING):
        with pytest.raises(InvalidInputError, match="`delete`"):
            await conversation.update(name="Dogs", state=state)
    assert (await conversation.get()).name == "Cats"
    back = await conversation.update(name="Dogs", state="active")
    assert (back.name, back.state) == ("Dogs", ACTIVE)
    assert ids[0] in await read_all(mind)


async def test_a_key_that_may_only_read_changes_no_state(recollect):
    _, secret = await new_key(recollect, rights=(Right.READ,))
    mind = await recollect.authorize(secret, "test", "ada", "li")
    conversation = mind.conversation("cats")
    for question in (archive, restore, Conversation.delete, Conversation.purge):
        with pytest.raises(ForbiddenError):
            await question(conversation)
    assert await receipts_of(conversation) == []


async def test_a_new_model_finds_archived_memories_when_they_are_back(recollect, mind, owner):
    conversation, ids = await converse_about_cats(mind)
    await conversation.update(state="archived")
    space = await spaces.ensure_space(recollect.addresses.owner, "another", 32)
    await spaces.switch_space(recollect.addresses.owner, space.id)
    await conversation.update(state="active")
    assert rows_of(owner, VECTORS, ids) == 6
    assert rows_of(owner, "pending_embeddings", ids) == 6


def age(owner, conversation, days, column="idle_since"):
    owner.execute(
        f"update conversations set {column} = clock_timestamp() - %s * interval '1 day' where id = %s",
        [days, conversation],
    )


async def test_retention_moves_on_what_nobody_used(addresses, embedder, owner):
    settings = make_settings(embedder="fake", retention__archive_after_days=10, retention__delete_after_days=20)
    async with connected(settings, addresses, embedder) as running:
        mind, other = await running.mind("ada", "li"), await running.mind("bob", "li")
        for name in ("fresh", "idle", "old", "gone"):
            await converse_about_cats(mind, name, turns=1)
        await converse_about_cats(other, "kept", turns=1)
        await other.set_profile(Profile(archive_after_days=0, delete_after_days=0))
        await mind.conversation("gone").delete()
        for name, days in (("fresh", 9), ("idle", 11), ("old", 21), ("kept", 500)):
            age(owner, name, days)
        age(owner, "gone", 31, "changed_at")
        expected = {("idle", ACTIVE, ARCHIVED), ("old", ACTIVE, DELETED), ("gone", DELETED, PURGING)}
        due = await running.operator.retain(dry_run=True)
        assert {(each.conversation, each.state, each.becomes) for each in due} == expected
        assert [each.id for each in (await mind.conversations(DELETED)).conversations] == ["gone"]

        done = []
        assert await running.operator.retain(done.append) == due
        assert done == [1, 2, 3]
        found = dict(owner.execute("select id, state from conversations").fetchall())
        assert found == {"fresh": "active", "idle": "archived", "old": "deleted", "kept": "active"}
        [receipt] = await receipts_of(mind.conversation("gone"))
        assert (receipt.asked_by, receipt.removed["messages"]) == ("retention", 2)
        assert await running.operator.retain() == []
        age(owner, "idle", 21)
        await mind.conversation("old").update(state="active")
        assert [(each.conversation, each.state) for each in await running.operator.retain()] == [("idle", ARCHIVED)]


async def test_what_is_used_in_the_last_moment_stays(recollect, mind, owner):
    await converse_about_cats(mind, turns=1)
    found = owner.execute("select idle_since from conversations").fetchone()[0]
    await mind.conversation("cats").append(user("Wait!"))
    wanted = StateChange(DELETED, "retention", found)
    await lifecycle.change(mind.access.parts.database, mind.access.scope, "cats", wanted)
    assert (await mind.conversation("cats").get()).state is ACTIVE


async def test_the_worker_retains_by_the_clock(recollect, mind, owner):
    await converse_about_cats(mind, turns=1)
    age(owner, "cats", 3)
    duties = WorkerOptions(rules=RetentionRules(archive_after_days=2))
    app = build_app(recollect.parts, duties)
    async with app.open_async():
        await app.tasks["retain"].defer_async(timestamp=0)
        await app.run_worker_async(wait=False, install_signal_handlers=False, listen_notify=False)
    assert owner.execute("select state, synced from conversations").fetchone() == ("archived", True)


async def test_appends_write_to_no_index_of_conversations(addresses, owner):
    """By the statistics, which a connection writes when it is closed at the latest."""
    counters = "select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relname = 'conversations'"
    async with connected(Settings(embedder="fake"), addresses, FakeEmbedder()) as running:
        conversation = (await running.mind("ada", "li")).conversation("cats")
        for number in range(21):
            await conversation.append(NewMessage(Role.USER, f"cat {number}"))
    await until(lambda: owner.execute(counters).fetchone()[0] == 20)
    # One more where an hour ends meanwhile.
    assert owner.execute(counters).fetchone()[1] >= 19


async def test_profiles_carry_retention_through_http(recollect):
    _, secret = await new_key(recollect)
    async with http_client(recollect, secret) as http:
        body = {"agent": "ada", "archive_after_days": 7, "delete_after_days": 0.5, "purge_after_days": 0}
        assert (await http.put("/v1/profile", json=body)).status_code == 200
        found = (await http.get("/v1/profile", params={"agent": "ada"})).json()
        assert (found["archive_after_days"], found["delete_after_days"], found["purge_after_days"]) == (7, 0.5, 0)
        assert (await http.put("/v1/profile", json={"agent": "ada", "purge_after_days": -1})).status_code == 422
    mind = await recollect.mind("ada")
    assert await mind.profile() == Profile(
        StreamWeights(), archive_after_days=7, delete_after_days=0.5, purge_after_days=0
    )
