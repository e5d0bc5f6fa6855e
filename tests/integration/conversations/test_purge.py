"""A purge on the real store: what goes, what is made again, what a receipt says, and that no byte is left behind."""

from __future__ import annotations

import secrets
import subprocess

import numpy as np
import psycopg
import pytest

from conftest import addresses_of, execute
from recollect.core.memories.erasure import Restatement
from recollect.errors import ChatModelError, ConflictError, NotFoundError
from recollect.jobs.maintenance import delete_expired
from recollect.llm.fake import FakeEmbedder
from recollect.models.conversations import Attachment, ConversationState, NewMessage, Part, PartType
from recollect.models.memories import Kind, NewMemory, Role, Triple
from recollect.models.recall import Cue
from recollect.settings import Settings
from recollect.store.conversations import lifecycle
from recollect.store.database import rewrite
from recollect.store.embedded.account import find_programs
from recollect.store.embedded.cluster import Cluster
from recollect.store.memories import embeddings
from recollect.store.service.scopes import BEGINNING
from recollect.verbs.conversations import lifecycle as verb
from recollect.verbs.memories.rederive import rederive
from recollect.wiring import connected, prepare
from support.models.fake_chat import FakeChatModel
from support.programs.folders import open_folder
from support.service.known_numbers import VECTORS, first_number
from support.service.purge_receipts import receipts_of

PURGING = ConversationState.PURGING
SCOPED = "select table_name from information_schema.columns where column_name = 'scope_id' and table_schema = 'public'"


async def say(mind, name, *contents, **more):
    conversation = mind.conversation(name)
    said = await conversation.append([NewMessage(Role.USER, content, **more) for content in contents])
    return conversation, [each.id for each in said]


async def derive(mind, content, evidence, kind=Kind.THOUGHT, **more):
    [made] = await mind.remember(NewMemory(content, kind, evidence=tuple(evidence), **more))
    return made.id


async def known(mind):
    return {memory.id: memory for memory in (await mind.list(limit=200)).memories}


def mentions(owner, identity):
    """In which tables an id still stands, as a key or in a list; the change log says for a week that it went."""
    tables = [name for (name,) in owner.execute(SCOPED).fetchall() if name != "changes"]
    return {
        name
        for name in tables
        if owner.execute(f"select count(*) from {name} side where side::text like %s", [f"%{identity}%"]).fetchone()[0]
    }


@pytest.mark.promise("A purge takes all that was made from the conversation alone")
async def test_a_purge_takes_all_that_was_made_from_the_conversation_alone(mind, owner):
    conversation, ids = await say(mind, "cats", "one", "two", "three")
    other, theirs = await say(mind, "dogs", "four")
    alone = await derive(mind, "made of cats", ids[:2], keywords=("cats",))
    deeper = await derive(mind, "made of what was made", [alone])
    shared = await derive(mind, "made of both", [ids[0], theirs[0]], keywords=("both",), metadata={"why": "both"})
    above = await derive(mind, "made of the shared", [shared], Kind.SUMMARY)
    spared = await derive(mind, "made of dogs", theirs)
    found = await mind.recall(Cue("one", limit=1))
    await mind.recall(Cue("one", channels=("stream",), kinds=(Kind.MESSAGE,)))
    await mind.feedback(await mind.recall(Cue("made", channels=("stream",), limit=9)), [alone])
    await conversation.append(NewMessage(Role.USER, "again"), idempotency_key="k")
    assert found.hits

    await conversation.delete()
    receipt = await conversation.purge()
    assert receipt.finished_at is not None
    assert (receipt.conversation, receipt.asked_by) == ("cats", "library")
    removed = {"messages": 4, "derived": 2, "to_rederive": 2, "idempotency_keys": 1, "evidence": 4}
    removed |= {"vectors": 8, "terms": 8, "keywords": 2}
    assert removed.items() <= receipt.removed.items()
    assert receipt.removed["accesses"] >= 1
    assert receipt.removed["feedback"] >= 1

    with pytest.raises(NotFoundError):
        await conversation.get()
    assert set(await known(mind)) == {theirs[0], spared}
    for identity in (*ids, alone, deeper):
        assert mentions(owner, identity) == set()
    # What had more to rest on says nothing any more, and waits.
    for identity in (shared, above):
        row = owner.execute(
            "select content, speaker, subject, keywords, embedding_text, metadata, withheld "
            "from memories where id = %s",
            [identity],
        ).fetchone()
        assert row == ("", "", "", [], "", {}, "to_rederive")
        assert mentions(owner, identity) <= {"memories", "memory_features", "evidence"}
    overview = await mind.overview()
    assert (overview.to_rederive, overview.memories) == (2, 2)
    assert owner.execute("select memory_count from scopes").fetchone()[0] == 2
    assert owner.execute("select keyword from keyword_strengths").fetchall() == []
    assert await receipts_of(conversation) == [receipt]

    # Then the other one goes too, and with it all that waited.
    second = await other.purge()
    assert (second.removed["messages"], second.removed["derived"], second.removed["to_rederive"]) == (1, 3, 0)
    assert owner.execute("select count(*) from memories").fetchone()[0] == 0
    assert owner.execute("select memory_count, term_count from scopes").fetchone() == (0, 0)


async def test_purging_goes_from_any_state_and_hides_at_once(mind, owner, monkeypatch):
    monkeypatch.setattr(verb, "SYNC_SECONDS", 0)
    conversation, ids = await say(mind, "cats", "one", "two")
    await conversation.update(name="A name", metadata={"tag": "x"})
    await conversation.update(state="archived")
    receipt = await conversation.purge()
    assert receipt.finished_at is None
    assert await conversation.purge() == receipt
    assert (
        (await conversation.get()).state,
        (await conversation.get()).name,
        (await conversation.get()).metadata,
    ) == (PURGING, "", {})
    assert not set(ids) & set(await known(mind))
    for question in (
        conversation.update(state="active"),
        conversation.update(state="archived"),
        conversation.delete(),
        conversation.append(NewMessage(Role.USER, "late")),
    ):
        with pytest.raises(ConflictError):
            await question
    monkeypatch.setattr(verb, "SYNC_SECONDS", 600)
    assert (await conversation.purge()).finished_at is not None
    # The name is free again, and a conversation of that name is another one.
    await conversation.append(NewMessage(Role.USER, "again"))
    assert [message.number for message in (await conversation.history(50)).messages] == []
    assert len(await receipts_of(conversation)) == 1


async def purge_in_pieces(mind, monkeypatch, name, crash):
    """Purge with small steps, dying in some of them; return the receipt."""
    conversation, ids = await say(
        mind, name, *[f"{name} {number}" for number in range(9)], attachments=(Attachment("image"),)
    )
    other, theirs = await say(mind, f"{name}-other", "kept")
    both = await derive(mind, "both ends", [ids[0], ids[8]])
    await derive(mind, "more", [ids[1], ids[7], theirs[0], both])
    monkeypatch.setattr(lifecycle, "CHUNK", 2)
    erase, calls = lifecycle.erase, []

    async def dying(*arguments):
        await erase(*arguments)
        calls.append(1)
        if crash and len(calls) in {2, 3, 5}:
            raise RuntimeError("the worker dies")

    monkeypatch.setattr(lifecycle, "erase", dying)
    deaths = 0
    while True:
        try:
            receipt = await conversation.purge()
            assert receipt.finished_at is not None
            break
        except RuntimeError:
            deaths += 1
    monkeypatch.setattr(lifecycle, "erase", erase)
    assert deaths == (3 if crash else 0)
    assert (await other.get()).message_count == 1
    return receipt


@pytest.mark.promise("A purge that dies goes on, and counts nothing twice")
async def test_a_purge_that_dies_goes_on_and_counts_exactly(mind, monkeypatch):
    undisturbed = await purge_in_pieces(mind, monkeypatch, "calm", crash=False)
    disturbed = await purge_in_pieces(mind, monkeypatch, "wild", crash=True)
    assert undisturbed.removed == disturbed.removed
    assert disturbed.removed["messages"] == disturbed.removed["attachments"] == 9
    assert (disturbed.removed["derived"], disturbed.removed["to_rederive"]) == (1, 1)


def restating(prompt, _answer):
    notes = [line.partition(". ")[2] for line in prompt.splitlines() if line[:1].isdigit()]
    return Restatement(text="Left: " + " & ".join(notes), subject="notes", predicate="say", object=notes[0])


async def test_what_had_more_evidence_is_made_again_from_the_rest(addresses, embedder, owner):
    chat = FakeChatModel(restating)
    async with connected(Settings(embedder="fake"), addresses, embedder, chat) as running:
        mind = await running.mind("ada", "li")
        conversation, ids = await say(mind, "cats", "the secret")
        _, theirs = await say(mind, "dogs", "dogs bark")
        shared = await derive(mind, "both", [ids[0], theirs[0]], keywords=("old",), importance=7)
        above = await derive(mind, "from both", [shared], Kind.SUMMARY)
        owner.execute("update memories set trust = 40 where id = %s", [theirs[0]])
        await conversation.purge()
        assert not {shared, above} & set(await known(mind))
        chat.fail()
        owner.execute("delete from procrastinate_jobs")
        owner.execute("delete from procrastinate_events")
        chat.recover()
        # Without a job the hourly sweep sees to it.
        await delete_expired(running.parts.database, rederive=True)
        await running.work(until_empty=True)
        memories = await known(mind)
        assert memories[shared].content == "Left: dogs bark"
        assert memories[shared].evidence == (theirs[0],)
        assert (memories[shared].trust, memories[shared].importance, memories[shared].kind) == (40, 7, Kind.THOUGHT)
        assert (memories[above].content, memories[above].trust) == ("Left: Left: dogs bark", 40)
        hits = (await mind.recall(Cue("dogs bark", channels=("text",)))).hits
        assert {shared, above} <= {hit.memory.id for hit in hits}
        hits = (await mind.recall(Cue("dogs bark", channels=("vector",)))).hits
        assert {shared, above} <= {hit.memory.id for hit in hits}
        [found] = await mind.associate(Triple("notes", "say", ""))
        assert [memory.id for memory in found.thoughts] == [shared]
        overview = await mind.overview()
        assert (overview.to_rederive, overview.memories, overview.thoughts) == (0, 3, 1)
        assert all("secret" not in prompt for prompt in chat.prompts)


async def test_nothing_is_made_again_from_what_is_hidden(addresses, embedder):
    chat = FakeChatModel(restating)
    async with connected(Settings(embedder="fake"), addresses, embedder, chat) as running:
        mind = await running.mind("ada", "li")
        conversation, ids = await say(mind, "cats", "one")
        other, theirs = await say(mind, "dogs", "two")
        shared = await derive(mind, "both", [ids[0], theirs[0]])
        await other.delete()
        await conversation.purge()
        await running.work(until_empty=True)
        assert chat.calls == 0
        await other.update(state="active")
        await running.work(until_empty=True)
        assert (await mind.get(shared)).content == "Left: two"


async def test_what_the_model_cannot_word_keeps_nothing_else_waiting(addresses, embedder):
    chat = FakeChatModel(restating)
    async with connected(Settings(embedder="fake"), addresses, embedder, chat) as running:
        mind = await running.mind("ada", "li")
        conversation, ids = await say(mind, "cats", "one")
        _, theirs = await say(mind, "dogs", "two")
        first = await derive(mind, "first", [ids[0], theirs[0]])
        second = await derive(mind, "second", [ids[0], theirs[0]])
        await conversation.purge()
        chat.garble()
        scope_id = first_number(mind)
        with pytest.raises(ChatModelError):
            await rederive(running.parts, scope_id)
        assert set(await known(mind)) == {theirs[0], second}
        assert await rederive(running.parts, scope_id) == 1
        assert first in await known(mind)


async def test_a_vector_of_the_old_words_finds_no_memory_that_was_made_again(addresses, owner):
    embedder, chat = FakeEmbedder(), FakeChatModel(restating)
    async with connected(Settings(embedder="fake"), addresses, embedder, chat) as running:
        mind = await running.mind("ada", "li")
        embedder.fail()
        conversation, ids = await say(mind, "cats", "one")
        _, theirs = await say(mind, "dogs", "two")
        shared = await derive(mind, "old words", [ids[0], theirs[0]])
        embedder.recover()
        scope_id = first_number(mind)
        space = (await running.operator.spaces.list())[0][0]
        waiting = await embeddings.list_pending(running.parts.database, scope_id, BEGINNING, 10)
        late = np.stack([await embedder.embed([each.content]) for each in waiting])[:, 0]
        await conversation.purge()
        embedder.fail()
        await rederive(running.parts, scope_id)
        embedder.recover()
        await embeddings.store_pending(running.parts.database, space, waiting, late)
        stored = {identity for (identity,) in owner.execute(f"select id from {VECTORS}").fetchall()}
        assert stored == {theirs[0]}
        await running.work(until_empty=True)
        [row] = owner.execute(f"select embedding::real[] from {VECTORS} where id = %s", [shared]).fetchall()
        assert np.allclose(row[0], (await embedder.embed(["Left: two"]))[0], atol=1e-3)


class Haystack:
    """Everything a server keeps on disk but its write-ahead log, and what a dump says."""

    def __init__(self, cluster, database):
        self.cluster = cluster
        self.dsn = cluster.dsn(database)

    def files(self, needles):
        """Name the needles that stand in any file, and where."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute("checkpoint")
        found = {}
        for path in sorted(self.cluster.data.rglob("*")):
            if not path.is_file() or "pg_wal" in path.parts:
                continue
            content = path.read_bytes()
            for name, needle in needles.items():
                if needle in content:
                    found.setdefault(name, []).append(str(path.relative_to(self.cluster.data)))
        return found

    def dump(self, needles):
        """Name the needles that a dump holds."""
        program = find_programs() / "pg_dump"
        helps = subprocess.run([program, "--help"], check=True, capture_output=True, text=True).stdout
        more = ["--statistics"] if "--statistics " in helps else []
        text = subprocess.run([program, *more, "--dbname", self.dsn], check=True, capture_output=True).stdout
        assert b"COPY public.memories" in text
        assert not more or b"pg_restore_attribute_stats" in text
        return {name for name, needle in needles.items() if needle in text}


def secret():
    return "zq" + secrets.token_hex(12)


def plant(names):
    return {name: secret() for name in names}


async def plant_all(mind, planted, owner):
    """Put a secret wherever one can stand; return the conversation and the vectors that must go too."""
    conversation = mind.conversation("secretive")
    # Larger than a page holds in line, and of a kind that no compression can hide.
    filler = "".join(secrets.token_urlsafe(60) + "\n" for _ in range(400))
    await conversation.append(
        [
            NewMessage(
                Role.USER, f"{planted['content']} said", name=planted["name"], metadata={"m": planted["metadata"]}
            ),
            NewMessage(
                Role.ASSISTANT,
                parts=(Part(PartType.TEXT, planted["part"]), Part(PartType.TOOL_CALL, "{}", planted["tool"])),
                attachments=(Attachment("image", url=f"https://example.org/{planted['url']}"),),
                external_id=planted["external_id"],
            ),
            NewMessage(Role.USER, f"{planted['large']}\n{filler}"),
        ]
    )
    said = await conversation.append(NewMessage(Role.USER, planted["keyed"]), idempotency_key=planted["key"])
    await conversation.update(name=planted["title"], metadata={"note": planted["note"]})
    _, kept = await say(mind, "kept", "something else entirely")
    await derive(mind, planted["thought"], [said[0].id], keywords=(planted["keyword"],))
    await derive(mind, planted["shared"], [said[0].id, kept[0]], metadata={"x": planted["shared_metadata"]})
    for _ in range(3):
        recollection = await mind.recall(Cue(planted["content"], channels=("stream",), kinds=(Kind.MESSAGE,), limit=5))
        await mind.feedback(recollection, [recollection.hits[0].memory.id])
    return conversation, said[0].id


def vector_bytes(owner, identity):
    numbers = owner.execute(f"select embedding::real[] from {VECTORS} where id = %s", [identity]).fetchone()[0]
    return {"half": np.array(numbers, dtype="<f2").tobytes(), "single": np.array(numbers, dtype="<f4").tobytes()}


@pytest.mark.promise("After a purge and a rewrite of the tables no byte of a secret is left in dump or data files")
async def test_no_byte_of_a_secret_is_left_anywhere():
    names = "content name metadata part tool url external_id large keyed key title note thought keyword shared"
    planted = plant([*names.split(), "shared_metadata", "archived", "pending"])
    needles = {name: text.encode() for name, text in planted.items()}
    embedder = FakeEmbedder()
    with open_folder("secret") as folder, Cluster(folder / "postgres") as cluster:
        execute(cluster, "create database secret")
        addresses, haystack = addresses_of(cluster, "secret"), Haystack(cluster, "secret")
        await prepare(addresses, embedder)
        async with connected(Settings(embedder="fake"), addresses, embedder) as running:
            with psycopg.connect(addresses.owner, autocommit=True) as owner:
                mind = await running.mind("ada", "li")
                # Others lie around it, so that tables and pages do not vanish with it.
                await say(mind, "others", *[f"words of others, number {number}" for number in range(200)])
                conversation, identity = await plant_all(mind, planted, owner)
                vector = vector_bytes(owner, identity)
                archived, _ = await say(mind, "archived", planted["archived"])
                embedder.fail()
                pending, _ = await say(mind, "pending", planted["pending"])
                embedder.recover()
                await archived.update(state="archived")
                owner.execute("analyze")

                assert set(haystack.files(needles)) == set(planted), "the search finds what is there"
                assert haystack.files(vector), "also vectors"
                assert haystack.dump(needles) == set(planted)

                await conversation.delete()
                assert {"half", "single"} & set(haystack.files(vector))
                for each in (conversation, archived, pending):
                    assert (await each.purge()).finished_at is not None
                await running.work(until_empty=True)
                assert haystack.dump(needles) - {"keyword"} == set(), "no table holds it"
                assert haystack.files(needles), "a purge alone leaves bytes in the files"

                rewritten = []
                done = await running.operator.rewrite_tables(rewritten.append)
                assert done.left == ()
                assert {"memories", "messages", VECTORS, "pg_statistic"} <= {table.name for table in rewritten}
                assert haystack.dump(needles) == set()
                assert haystack.files(needles | vector) == {}
                assert len((await mind.conversation("others").history(10**6)).messages) == 0
                assert len((await mind.list(limit=200)).memories) == 200
                assert (await mind.recall("words of others, number 7")).hits


async def test_a_rewrite_says_what_it_could_not_do(recollect, mind, owner, monkeypatch):
    monkeypatch.setattr(rewrite, "MAX_ATTEMPTS", 2)
    monkeypatch.setattr(rewrite, "PAUSE_SECONDS", 0.01)
    conversation, _ = await say(mind, "cats", "one")
    listed = await recollect.operator.rewrite_tables(lambda _: None, dry_run=True)
    assert listed.left == ()
    with psycopg.connect(recollect.addresses.owner) as reader:
        reader.execute("set transaction isolation level repeatable read")
        reader.execute("select count(*) from procrastinate_periodic_defers")
        await conversation.purge()
        left = dict((await recollect.operator.rewrite_tables(lambda _: None)).left)
    assert "open transaction" in left["memories"]
    assert (await recollect.operator.rewrite_tables(lambda _: None)).left == ()

    owner.execute("create role rewriter login")
    dsn = recollect.addresses.owner.replace("user=postgres", "user=rewriter")
    left = dict((await rewrite.rewrite_tables(dsn, lambda _: None)).left)
    assert set(left) == {table.name for table in listed.tables} | {"checkpoint"}
    owner.execute("drop role rewriter")


async def test_an_owner_without_superuser_rights_can_rewrite_tables(recollect, mind, owner):
    owner.execute("create role keeper login")
    name = owner.info.dbname
    owner.execute(f"alter database {name} owner to keeper")
    owner.execute("grant pg_checkpoint to keeper")
    await say(mind, "cats", "one")
    dsn = recollect.addresses.owner.replace("user=postgres", "user=keeper")
    left = dict((await rewrite.rewrite_tables(dsn, lambda _: None)).left)
    assert left == {}
    owner.execute(f"alter database {name} owner to postgres")
    owner.execute("drop role keeper")


async def test_samples_that_the_planner_took_before_are_forgotten(owner):
    """To give a column the type that it has is how the migration forgets them on servers before 18."""
    owner.execute("create table sampled (word text)")
    owner.execute("insert into sampled select 'word ' || n % 10 from generate_series(1, 1000) n")
    owner.execute("analyze sampled")
    asked = "select count(*) from pg_statistic where starelid = 'sampled'::regclass"
    assert owner.execute(asked).fetchone()[0] == 1
    filenode = owner.execute("select pg_relation_filenode('sampled')").fetchone()
    owner.execute("alter table sampled alter word set statistics 0, alter word type text")
    owner.execute("analyze sampled")
    assert owner.execute(asked).fetchone()[0] == 0
    assert owner.execute("select pg_relation_filenode('sampled')").fetchone() == filenode
