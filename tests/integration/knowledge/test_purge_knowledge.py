"""What was learned from a conversation goes with it: names, descriptions, facts, versions, to the last byte."""

from __future__ import annotations

import json
import secrets
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from conftest import addresses_of, execute
from integration.conversations.test_purge import SCOPED, Haystack
from recollect.jobs.enrich import close_silent
from recollect.llm.fake import FakeEmbedder
from recollect.models.conversations import NewMessage
from recollect.models.knowledge import EntityType, NewFact, ValidTime
from recollect.models.memories import Kind, NewMemory, Role
from recollect.settings import Settings
from recollect.store.embedded.cluster import Cluster
from recollect.verbs.knowledge.enrich import enrich
from recollect.wiring import connected, prepare
from support.memories.past import versions_of
from support.models.fake_chat import FakeChatModel
from support.models.scripted_extractions import Script, entity, fact
from support.programs.folders import open_folder
from support.service.known_numbers import first_number

START = datetime(2020, 1, 1, tzinfo=UTC)
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def day(number):
    return START + timedelta(days=number)


async def learn(mind, script, conversation, entities, facts=(), text="", days=0):
    script.extraction(entities, facts)
    text = text or "We speak of " + " and ".join(each["name"] for each in entities)
    view = mind.conversation(conversation)
    at = NOON + timedelta(days=days)
    [said] = await view.append([NewMessage(Role.USER, text, occurred_at=at)])
    await view.update(close_segment=True)
    await enrich(mind.access.parts, first_number(mind))
    return view, said.id


@pytest.fixture
async def mind(running):
    return await running.mind("ada", "li")


async def work(running):
    """Let a worker do what waits, and what it finds waiting every five minutes."""
    await running.work(until_empty=True)
    await close_silent(running.parts.database, 30)
    await running.work(until_empty=True)


async def names(mind):
    return {each.name for each in (await mind.knowledge.entities()).entities}


async def texts(mind, **bounds):
    return {each.text for each in (await mind.knowledge.facts(**bounds)).facts}


def rows(owner, table):
    return owner.execute(f"select count(*) from {table}").fetchone()[0]


async def test_a_purge_takes_what_was_learned_from_the_conversation_alone(mind, script, owner):
    spoken, _ = await learn(mind, script, "a", [entity("Ann"), entity("Oslo")], [fact("Ann", "lives in", "Oslo")])
    await learn(mind, script, "b", [entity("Ann"), entity("Rome")], [fact("Ann", "visits", "Rome")], days=1)
    await spoken.purge()
    assert await names(mind) == {"Ann", "Rome"}
    assert await texts(mind) == {"Ann visits Rome."}
    assert (rows(owner, "mentions"), rows(owner, "beliefs where subject_id is not null")) == (2, 1)
    await mind.conversation("b").purge()
    assert [rows(owner, table) for table in ("entities", "mentions", "beliefs", "memories")] == [0, 0, 0, 0]


async def test_what_a_deleted_conversation_said_is_out_of_sight_and_comes_back(mind, script):
    conversation, _ = await learn(mind, script, "a", [entity("Ann"), entity("Oslo")], [fact("Ann", "lives in", "Oslo")])
    await learn(mind, script, "b", [entity("Ann", "person", "Annie")], days=1)
    [oslo] = (await mind.knowledge.entities("oslo")).entities
    await conversation.delete()
    assert await names(mind) == {"Ann"}
    assert await texts(mind) == set()
    assert (await mind.knowledge.entities(ids=[oslo.id])).entities == ()
    # Said again meanwhile, it is a fact of its own, and the one that comes back is not believed any more.
    [again] = await mind.knowledge.add(NewFact("Ann", "lives in", "Oslo", valid_at=day(0)))
    assert again.version == 1
    await conversation.update(state="active")
    assert [each.id for each in (await mind.knowledge.facts()).facts] == [again.id]
    assert await names(mind) == {"Ann", "Oslo"}


async def test_a_name_goes_with_the_mention_that_it_came_from(mind, script, owner):
    conversation, _ = await learn(mind, script, "a", [entity("Secretive Sam", "person", "Sam")])
    await learn(mind, script, "b", [entity("Sam"), entity("Rome", "place")], [fact("Sam", "visits", "Rome")], days=1)
    assert await names(mind) == {"Secretive Sam", "Rome"}
    await conversation.purge()
    assert await names(mind) == {"Sam", "Rome"}
    [sam] = (await mind.knowledge.entities("sam")).entities
    assert sam.aliases == ()
    assert owner.execute("select normalised from entities where name = 'Sam'").fetchall() == [("sam",)]
    # The name that is left may be another's by now: both keep it apart.
    other, _ = await learn(mind, script, "c", [entity("Hidden Hugo", "person", "Hugo")], days=2)
    await learn(mind, script, "d", [entity("Hugo"), entity("Rome", "place")], [fact("Hugo", "knows", "Rome")], days=3)
    owner.execute(
        "insert into entities (scope_id, name, normalised, type) "
        "select scope_id, 'Hugo', 'hugo', 'person' from entities where name = 'Rome'"
    )
    await other.purge()
    found = owner.execute("select name, normalised from entities where normalised like 'hugo%' order by 2").fetchall()
    assert [name for name, _ in found] == ["Hugo", "Hugo"]
    assert found[1][1].startswith("hugo (")


async def test_forgetting_one_message_takes_what_its_segment_said(mind, script, owner):
    _, said = await learn(mind, script, "a", [entity("Ann"), entity("Oslo")], [fact("Ann", "lives in", "Oslo")])
    await mind.forget([said])
    assert [rows(owner, table) for table in ("entities", "mentions", "beliefs", "segments")] == [0, 0, 0, 0]


async def test_without_the_reason_for_its_end_a_fact_is_believed_as_before(mind, script, owner):
    await learn(mind, script, "a", [entity("Ann"), entity("Oslo")], [fact("Ann", "lives in", "Oslo", "2020-01-01")])
    [before] = (await mind.knowledge.facts()).facts
    moved, _ = await learn(
        mind, script, "b", [entity("Ann"), entity("Rome")], [fact("Ann", "lives in", "Rome", "2026-01-01", None, [1])]
    )
    assert await texts(mind) == {"Ann lives in Rome."}
    assert {hit.memory.content for hit in (await mind.recall("Ann lives in")).hits if hit.memory.kind == "fact"} == {
        "Ann lives in Rome."
    }
    await moved.purge()
    [after] = await versions_of(mind.knowledge, before.id)
    assert after == before
    assert (await mind.knowledge.facts()).facts == (before,)
    hits = [hit for hit in (await mind.recall("Ann lives in")).hits if hit.memory.kind == "fact"]
    assert [hit.memory.id for hit in hits] == [before.memory_id]
    assert set(hits[0].channels) >= {"text", "vector"}
    assert rows(owner, "memories where withheld is not null") == 0
    in_sight = rows(owner, "memories")
    assert owner.execute("select memory_count from scopes").fetchone()[0] == in_sight


async def test_without_its_beginning_nothing_is_left_of_a_fact(mind, script, owner):
    first, _ = await learn(
        mind, script, "a", [entity("Ann"), entity("Oslo")], [fact("Ann", "lives in", "Oslo", "2020-01-01")]
    )
    await learn(
        mind, script, "b", [entity("Ann"), entity("Rome")], [fact("Ann", "lives in", "Rome", "2026-01-01", None, [1])]
    )
    await first.purge()
    assert await texts(mind) == await texts(mind, at=day(100)) | {"Ann lives in Rome."} == {"Ann lives in Rome."}
    assert owner.execute("select content from memories where content like '%Oslo%'").fetchall() == []
    assert "Oslo" not in await names(mind)


def evidence_of(owner, fact_id):
    found = owner.execute("select source_id from evidence where memory_id = %s", [fact_id]).fetchall()
    return {source for (source,) in found}


async def test_a_fact_that_is_said_elsewhere_too_is_learned_again_from_there_alone(running, mind, script, owner):
    told = [entity("Ann"), entity("Oslo")], [fact("Ann", "lives in", "Oslo", "2020-01-01")]
    first, said = await learn(mind, script, "a", *told, text="Ann of zqfirst and Oslo")
    other = [*told[0], entity("Rome")], [*told[1], fact("Ann", "visits", "Rome", "2021-01-01")]
    _, confirmed = await learn(mind, script, "b", *other, days=1)
    await learn(mind, script, "c", [entity("Bo"), entity("Rome")], [fact("Bo", "visits", "Rome")], days=2)
    [oslo, rome, bo] = (await mind.knowledge.facts()).facts
    assert evidence_of(owner, oslo.memory_id) == {said, confirmed}
    [thought] = await mind.remember(NewMemory("Ann is far away.", kind=Kind.THOUGHT, evidence=(oslo.memory_id,)))
    asked = len(script.asked)

    await first.purge()
    assert [each.id for each in (await mind.knowledge.facts()).facts] == [rome.id, bo.id]
    # Made from the fact alone, it goes with it and does not wait for ever.
    assert (
        rows(owner, "memories where withheld = 'to_rederive'")
        == rows(owner, f"memories where id = '{thought.id}'")
        == 0
    )
    states = owner.execute("select conversation_id, state from segments order by 1").fetchall()
    assert states == [("b", "closed"), ("c", "enriched")]
    await work(running)

    [kept, _, again] = (await mind.knowledge.facts()).facts
    assert (kept, again.text, again.version, again.span) == (rome, "Ann lives in Oslo.", 1, oslo.span)
    assert again.memory_id != oslo.memory_id
    assert evidence_of(owner, again.memory_id) == evidence_of(owner, kept.memory_id) == {confirmed}
    assert len(script.asked) == asked, "nothing is asked for that was paid for already"
    assert rows(owner, "segments where state = 'closed'") == 0
    assert rows(owner, "beliefs where subject_id is not null") == 3
    # The summary was made again as well, and one of them is believed.
    believed = "beliefs join segments on lineage = segments.id where conversation_id = 'b' and superseded_at is null"
    assert rows(owner, believed) == 1
    assert await names(mind) == {"Ann", "Oslo", "Rome", "Bo"}
    assert owner.execute("select memory_count from scopes").fetchone()[0] == rows(
        owner, "memories where withheld is null"
    )


async def test_of_a_stated_fact_nothing_is_left_with_some_of_its_evidence(running, mind, script, owner):
    first, said = await learn(mind, script, "a", [entity("Ann")], text="Ann tells a secret")
    _, other = await learn(mind, script, "b", [entity("Ann")], days=1)
    stated = NewFact("Ann zqnick", "zqowes", "zqlender", text="zqtext", valid_at=day(0), evidence=(said, other))
    [secret] = await mind.knowledge.add(stated)
    await mind.knowledge.end(secret.id, day(400))
    asked = len(script.asked)
    await first.purge()
    for _ in range(2):
        for (table,) in owner.execute(SCOPED).fetchall():
            held = owner.execute(f"select side::text from {table} side").fetchall()
            assert not any("zq" in row for (row,) in held), table
        assert await texts(mind) == await texts(mind, at=day(200)) == set()
        assert await names(mind) == {"Ann"}
        await work(running)
    assert len(script.asked) == asked
    assert rows(owner, "segments where state = 'enriched'") == 1


async def test_what_a_run_made_of_a_segment_is_what_is_learned_again(running, mind, script, owner):
    told = [entity("Ann"), entity("Oslo")], [fact("Ann", "lives in", "Oslo", "2020-01-01")]
    first, _ = await learn(mind, script, "a", *told)
    await learn(mind, script, "b", *told, days=1)
    better = json.dumps({"entities": [entity("Ann"), entity("Rome")], "facts": [fact("Ann", "visits", "Rome")]})
    owner.execute(
        "insert into extractions (scope_id, segment_id, run_id, model, prompt_version, content, applied_at) "
        "select scope_id, id, gen_random_uuid(), 'better', '2', "
        "jsonb_build_object('said', %s::text, 'shown', '[]'::jsonb), clock_timestamp() "
        "from segments where conversation_id = 'b'",
        [better],
    )
    await first.purge()
    await work(running)
    assert await texts(mind) == {"Ann visits Rome."}


async def test_a_stated_fact_that_is_forgotten_takes_its_names_and_leaves_what_it_ended(mind, owner):
    [oslo] = await mind.knowledge.add(
        NewFact("Ann", "lives in", "Oslo", valid_at=day(0), subject_type=EntityType.PERSON)
    )
    [rome] = await mind.knowledge.add(NewFact("Ann", "lives in", "Rome", valid_at=day(9), replaces=(oslo.id,)))
    assert set(await mind.forget([rome.memory_id])) > {rome.memory_id}
    assert await names(mind) == {"Ann", "Oslo"}
    [left] = (await mind.knowledge.facts()).facts
    assert (left.id, left.span, left.version) == (oslo.id, ValidTime(day(0)), 1)
    await mind.forget([oslo.memory_id])
    assert [rows(owner, table) for table in ("entities", "mentions", "beliefs", "memories")] == [0, 0, 0, 0]
    assert owner.execute("select memory_count from scopes").fetchone()[0] == 0


async def test_nothing_comes_back_that_is_said_by_another_fact_by_then(mind):
    [oslo] = await mind.knowledge.add(NewFact("Ann", "lives in", "Oslo", valid_at=day(0)))
    [rome] = await mind.knowledge.add(NewFact("Ann", "lives in", "Rome", valid_at=day(9), replaces=(oslo.id,)))
    [again] = await mind.knowledge.add(NewFact("Ann", "lives in", "Oslo", valid_at=day(20)))
    await mind.forget([rome.memory_id])
    assert {each.id for each in (await mind.knowledge.facts()).facts} == {again.id}


@pytest.mark.promise("After a purge no byte of a name that was learned is left")
async def test_no_byte_of_a_secret_name_is_left():
    planted = {name: "zq" + secrets.token_hex(12) for name in ("name", "alias", "description", "object", "text")}
    predicate = "zq" + secrets.token_hex(12)
    needles = {name: text.encode() for name, text in planted.items()} | {"predicate": predicate.encode()}
    embedder, script = FakeEmbedder(), Script()
    with open_folder("secret") as folder, Cluster(folder / "postgres") as cluster:
        execute(cluster, "create database secret")
        addresses, haystack = addresses_of(cluster, "secret"), Haystack(cluster, "secret")
        await prepare(addresses, embedder)
        async with connected(Settings(embedder="fake"), addresses, embedder, FakeChatModel(script)) as running:
            mind = await running.mind("ada", "li")
            for number in range(20):
                await mind.knowledge.add(NewFact(f"Person {number}", "knows", f"Person {number + 1}"))
            told = fact(planted["name"], predicate, planted["object"]) | {"text": planted["text"]}
            entities = [entity(planted["name"], "person", planted["alias"], description=planted["description"])]
            conversation, _ = await learn(mind, script, "secretive", entities, [told], text=json.dumps(planted))
            [stored] = (await mind.knowledge.facts(predicate=predicate)).facts
            await mind.knowledge.end(stored.id, NOON + timedelta(days=3))
            with psycopg.connect(addresses.owner, autocommit=True) as owner:
                owner.execute("analyze")
            assert haystack.dump(needles) == set(needles)
            assert set(haystack.files(needles)) == set(needles), "the search finds what is there"

            assert (await conversation.purge()).finished_at is not None
            await running.work(until_empty=True)
            with psycopg.connect(addresses.owner, autocommit=True) as owner:
                for (table,) in owner.execute(SCOPED).fetchall():
                    held = owner.execute(f"select side::text from {table} side").fetchall()
                    assert not any(needle.decode() in row for (row,) in held for needle in needles.values()), table
            assert (await running.operator.rewrite_tables(lambda _: None)).left == ()
            assert haystack.dump(needles) == set()
            assert haystack.files(needles) == {}
            assert len((await mind.knowledge.facts(limit=200)).facts) == 20
