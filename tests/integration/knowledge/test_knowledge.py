"""Facts on the real store: stated, recognised, placed among those they contradict, and never overwritten."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import uuid4

import psycopg
import pytest
from psycopg import errors

from conftest import new_key
from recollect.core.text.names import similarity
from recollect.errors import ConflictError, InvalidInputError, NotFoundError
from recollect.models.knowledge import EntityType, NewFact, ValidTime
from recollect.store.knowledge import entities, facts
from support.memories.past import versions_of
from support.service.known_numbers import VECTORS, first_number

START = datetime(2020, 1, 1, tzinfo=UTC)


def day(number):
    return START + timedelta(days=number)


async def test_a_fact_is_stated_and_found(mind):
    [fact] = await mind.knowledge.add(NewFact("Ann", "lives in", "Oslo", valid_at=day(0)))
    assert (fact.text, fact.version, fact.span) == ("Ann lives in Oslo", 1, ValidTime(day(0)))
    memory = await mind.get(fact.memory_id)
    assert (memory.content, memory.kind, memory.created_at) == ("Ann lives in Oslo", "fact", fact.created_at)
    assert fact.id == fact.memory_id
    [listed] = (await mind.knowledge.facts()).facts
    assert listed == fact
    found = (await mind.knowledge.entities()).entities
    assert [(each.name, each.type) for each in found] == [("Ann", EntityType.OTHER), ("Oslo", EntityType.OTHER)]
    assert [hit.memory.id for hit in (await mind.recall("where does Ann live?")).hits] == [fact.memory_id]


async def test_a_correction_adds_a_version_and_closes_the_old_one(mind, owner):
    [oslo] = await mind.knowledge.add(NewFact("Ann", "lives in", "Oslo", valid_at=day(0)))
    [rome] = await mind.knowledge.add(NewFact("Ann", "lives in", "Rome", valid_at=day(100), replaces=(oslo.id,)))
    first, second = await versions_of(mind.knowledge, oslo.id)
    assert first.superseded_at == second.created_at == rome.created_at
    assert (first.span, second.span, second.superseded_at) == (ValidTime(day(0)), ValidTime(day(0), day(100)), None)
    assert [fact.text for fact in (await mind.knowledge.facts()).facts] == ["Ann lives in Rome"]
    assert {hit.memory.id for hit in (await mind.recall("where does Ann live?")).hits} == {rome.memory_id}
    then = (await mind.knowledge.facts(as_of=oslo.created_at, at=day(200))).facts
    assert [fact.text for fact in then] == ["Ann lives in Oslo"]
    before = (await mind.knowledge.facts(at=day(50))).facts
    assert [(fact.text, fact.version) for fact in before] == [("Ann lives in Oslo", 2)]
    memory = await mind.get(second.memory_id)
    assert set(memory.evidence) == {first.memory_id, rome.memory_id}
    assert (
        owner.execute("select count(*) from pending_embeddings join memories using (scope_id, id)").fetchone()[0] == 0
    )
    assert owner.execute("select memory_count from scopes").fetchone()[0] == 1
    assert owner.execute("select count(*) from withheld_vectors").fetchone()[0] == 2


async def test_the_same_fact_is_recognised_and_completed(mind, owner):
    [first] = await mind.knowledge.add(NewFact("Ann", "works_at", "Acme Corp.", valid_at=day(0)))
    [same] = await mind.knowledge.add(NewFact("ann", "works at", "acme corp", valid_at=day(5)))
    assert same == first
    [receipt] = await mind.remember("Ann said when she leaves")
    ended = NewFact("Ann", "worksAt", "Acme Corp", valid_at=day(1), invalid_at=day(50), evidence=(receipt.id,))
    [completed] = await mind.knowledge.add(ended)
    assert (completed.id, completed.version, completed.span) == (first.id, 2, ValidTime(day(0), day(50)))
    memory = await mind.get(completed.memory_id)
    assert set(memory.evidence) == {first.memory_id, receipt.id}
    assert (memory.content, memory.triple.predicate) == ("Ann works_at Acme Corp.", "works_at")
    assert owner.execute("select count(*) from memories where kind = 'fact'").fetchone()[0] == 2


async def test_evidence_is_added_and_trust_is_that_of_the_least_source(recollect, mind, owner):
    _, secret = await new_key(recollect, trust=30)
    weak = await recollect.authorize(secret, "http", "ada", "li")
    [one], [two] = await mind.remember("she said so"), await weak.remember("he said so")
    [fact] = await mind.knowledge.add(NewFact("Ann", "likes", "tea", evidence=(one.id, two.id)))
    assert (await mind.get(fact.memory_id)).trust == 30
    [other] = await weak.knowledge.add(NewFact("Ann", "likes", "milk"))
    assert (await mind.get(other.memory_id)).trust == 30
    [three] = await mind.remember("they said so")
    await mind.knowledge.add(NewFact("Ann", "likes", "tea", evidence=(three.id,)))
    assert set((await mind.get(fact.memory_id)).evidence) == {one.id, two.id, three.id}


async def test_the_same_key_states_once(mind):
    fact = NewFact("Ann", "lives in", "Oslo", text="Ann has a flat in Oslo.")
    first = await mind.knowledge.add(fact, idempotency_key="k")
    [rome] = await mind.knowledge.add(NewFact("Ann", "lives in", "Rome", replaces=(first[0].id,)))
    again = await mind.knowledge.add(fact, idempotency_key="k")
    assert [(each.memory_id, each.text) for each in again] == [(first[0].memory_id, "Ann has a flat in Oslo.")]
    assert [each.id for each in (await mind.knowledge.facts()).facts] == [rome.id]
    with pytest.raises(ConflictError):
        await mind.knowledge.add(NewFact("Ann", "lives in", "Bern"), idempotency_key="k")


async def test_one_call_changes_a_fact_once_whatever_it_states(mind):
    [oslo] = await mind.knowledge.add(NewFact("Ann", "lives in", "Oslo", valid_at=day(0)))
    stated = await mind.knowledge.add(
        [
            NewFact("Ann", "lives in", "Rome", valid_at=day(100), replaces=(oslo.id,)),
            NewFact("Ann", "lives in", "Bern", valid_at=day(50), replaces=(oslo.id,)),
            NewFact("Ann", "lives in", "Rome", invalid_at=day(120), valid_at=day(100)),
        ]
    )
    assert [fact.version for fact in stated] == [1, 1, 1]
    assert stated[2].id == stated[0].id
    versions = await versions_of(mind.knowledge, oslo.id)
    assert [(each.version, each.span) for each in versions] == [(1, ValidTime(day(0))), (2, ValidTime(day(0), day(50)))]
    [rome] = await versions_of(mind.knowledge, stated[0].id)
    assert rome.span == ValidTime(day(100), day(120))


async def test_a_fact_is_named_by_any_of_its_versions(mind):
    [oslo] = await mind.knowledge.add(NewFact("Ann", "lives in", "Oslo", valid_at=day(0)))
    ended = await mind.knowledge.end(oslo.id, day(90))
    assert (ended.version, ended.span, ended.id) == (2, ValidTime(day(0), day(90)), oslo.id)
    assert await mind.knowledge.end(ended.memory_id, day(90)) == ended
    [rome] = await mind.knowledge.add(NewFact("Ann", "lives in", "Rome", valid_at=day(60), replaces=(ended.memory_id,)))
    assert [fact.span.invalid_at for fact in await versions_of(mind.knowledge, ended.memory_id)] == [
        None,
        day(90),
        day(60),
    ]
    assert await versions_of(mind.knowledge, uuid4()) == []
    with pytest.raises(NotFoundError):
        await mind.knowledge.end(uuid4(), day(1))
    with pytest.raises(InvalidInputError):
        await mind.knowledge.end(rome.id, day(60))


async def test_what_ends_in_the_future_is_believed_and_found_until_then(mind):
    soon = datetime.now(UTC) + timedelta(days=30)
    [fact] = await mind.knowledge.add(NewFact("Ann", "rents", "a flat", valid_at=day(0), invalid_at=soon))
    assert [hit.memory.id for hit in (await mind.recall("Ann rents a flat")).hits] == [fact.memory_id]
    [over] = await mind.knowledge.add(NewFact("Ann", "rents", "a boat", invalid_at=day(9)))
    assert over.span == ValidTime(None, day(9))
    assert over.memory_id not in {hit.memory.id for hit in (await mind.recall("Ann rents a boat")).hits}
    assert [each.id for each in (await mind.knowledge.facts(at=day(3), predicate="rents")).facts] == [fact.id, over.id]


async def test_names_find_their_entities(mind):
    known = mind.knowledge
    [one] = await known.add(NewFact("Apple", "makes", "phones", subject_type=EntityType.ORGANIZATION))
    [two] = await known.add(NewFact("Ann", "eats", "apple", object_type=EntityType.THING))
    assert one.subject != two.object
    with pytest.raises(InvalidInputError, match="several entities"):
        await known.add(NewFact("Ann", "likes", "apple"))
    [three] = await known.add(NewFact("Ann", "likes", two.object))
    assert (three.text, three.object) == ("Ann likes apple", two.object)
    [four] = await known.add(NewFact("apple", "sells", "music", subject_type=EntityType.ORGANIZATION))
    assert four.subject == one.subject
    for wrong in (NewFact("Ann", "likes", uuid4()), NewFact("Ann", "likes", "ANN"), NewFact("Ann", " ", "tea")):
        with pytest.raises(InvalidInputError):
            await known.add(wrong)
    page = await known.entities(limit=2)
    rest = await known.entities(cursor=page.next_cursor, limit=50)
    names = [each.name for each in (*page.entities, *rest.entities)]
    assert names == ["Apple", "phones", "Ann", "apple", "music"]
    assert [each.name for each in (await known.entities("APP", type=EntityType.THING)).entities] == ["apple"]
    assert (await known.entities(ids=[one.subject])).entities[0].name == "Apple"


async def test_facts_are_listed_by_entity_and_page(mind):
    known = mind.knowledge
    stated = await known.add([NewFact("Ann", "likes", f"tea {number}") for number in range(5)])
    [other] = await known.add(NewFact("Bob", "knows", "Ann"))
    ann = stated[0].subject
    first = await known.facts(ann, limit=4)
    second = await known.facts(ann, limit=4, cursor=first.next_cursor)
    assert [fact.id for fact in (*first.facts, *second.facts)] == [*(fact.id for fact in stated), other.id]
    assert second.next_cursor is None
    assert [fact.id for fact in (await known.facts(other.subject, "KNOWS")).facts] == [other.id]


async def test_chinese_facts(mind):
    known = mind.knowledge
    [old] = await known.add(NewFact("张伟", "住在", "上海", valid_at=day(0)))
    assert old.text == "张伟住在上海"
    [same] = await known.add(NewFact("「张伟」", "住在", "上海。", valid_at=day(1)))
    assert same.id == old.id
    [new] = await known.add(NewFact("张伟", "住在", "深圳", valid_at=day(10), replaces=(old.id,)))
    assert [fact.text for fact in (await known.facts(new.subject)).facts] == ["张伟住在深圳"]
    assert [fact.text for fact in (await known.facts(as_of=old.created_at)).facts] == ["张伟住在上海"]


async def test_a_faded_fact_that_is_stated_again_is_remembered_again(mind, owner):
    [old] = await mind.knowledge.add(NewFact("Ann", "likes", "tea", valid_at=day(0)))
    scope = owner.execute("select id from scopes").fetchone()[0]
    owner.execute("select withhold_memories(%s, %s, 'faded')", [scope, [old.memory_id]])
    assert (await mind.recall("Ann likes tea")).hits == ()
    [new] = await mind.knowledge.add(NewFact("Ann", "likes", "tea"))
    assert (new.id, new.version, new.span) == (old.id, 2, old.span)
    assert [hit.memory.id for hit in (await mind.recall("Ann likes tea")).hits] == [new.memory_id]


async def test_vectors_are_inherited_and_else_queued(recollect, mind, embedder, owner):
    embedder.fail()
    [oslo] = await mind.knowledge.add(NewFact("Ann", "lives in", "Oslo", valid_at=day(0)))
    later = datetime.now(UTC) + timedelta(days=9)
    await mind.knowledge.end(oslo.id, later)
    assert (
        owner.execute("select count(*) from pending_embeddings join memories using (scope_id, id)").fetchone()[0] == 1
    )
    embedder.recover()
    await recollect.work(until_empty=True)
    calls = embedder.calls
    fresh = await mind.knowledge.end(oslo.id, later + timedelta(days=1))
    assert embedder.calls == calls
    assert owner.execute(f"select id from {VECTORS}").fetchall() == [(fresh.memory_id,)]


async def test_sixteen_writers_state_about_the_same_at_once(recollect, mind, owner):
    [oslo] = await mind.knowledge.add(NewFact("Ann", "lives in", "Oslo", valid_at=day(0)))

    async def write(number):
        place = f"place {number % 8}"
        stated = NewFact("Ann", "lives in", place, valid_at=day(10 + number % 8), replaces=(oslo.id,))
        return (await mind.knowledge.add(stated))[0]

    written = await asyncio.gather(*(write(number) for number in range(16)))
    assert len({fact.id for fact in written}) == 8
    versions = await versions_of(mind.knowledge, oslo.id)
    assert versions[-1].span == ValidTime(day(0), day(10))
    assert [fact.version for fact in versions] == list(range(1, len(versions) + 1))
    assert all(one.superseded_at == two.created_at for one, two in pairwise(versions))
    assert owner.execute("select count(*) from entities").fetchone()[0] == 10


async def test_the_constraints_fire_when_the_code_is_bypassed(mind, owner):
    [fact] = await mind.knowledge.add(NewFact("Ann", "lives in", "Oslo", valid_at=day(0), invalid_at=day(9)))
    copied = (
        "insert into beliefs (scope_id, id, lineage, version, subject_id, predicate, object_id, valid_at, invalid_at, "
        "created_at, superseded_at) select scope_id, gen_random_uuid(), {lineage}, {version}, subject_id, predicate, "
        "object_id, {valid}, {invalid}, created_at, {superseded} from beliefs where id = %s"
    )
    usual = {"lineage": "lineage", "version": 2, "valid": "valid_at", "invalid": "invalid_at", "superseded": "null"}
    refused = (
        ({"lineage": "gen_random_uuid()"}, errors.ExclusionViolation, "beliefs_said_once"),
        ({"superseded": "now() + interval '1 day'"}, errors.ExclusionViolation, "beliefs_one_at_a_time"),
        ({"version": 1, "superseded": "created_at"}, errors.UniqueViolation, "beliefs_scope_id_lineage_version_key"),
        ({"invalid": "valid_at", "superseded": "created_at"}, errors.CheckViolation, None),
        ({"superseded": "created_at - interval '1 day'"}, errors.CheckViolation, None),
    )
    for change, error, constraint in refused:
        with pytest.raises(error) as raised:
            owner.execute(copied.format(**(usual | change)), [fact.memory_id])
        assert constraint in {None, raised.value.diag.constraint_name}
    # Half-open: what begins where another ends says it once for every moment.
    touching = {"lineage": "gen_random_uuid()", "valid": "invalid_at", "invalid": "null"}
    owner.execute(copied.format(**(usual | touching)), [fact.memory_id])


async def test_a_clash_in_the_database_says_what_to_do(mind, owner):
    [fact] = await mind.knowledge.add(NewFact("Ann", "lives in", "Oslo", valid_at=day(0), invalid_at=day(9)))
    await mind.knowledge.add(NewFact("Ann", "lives in", "Oslo", valid_at=day(20)))
    with pytest.raises(ConflictError, match="Read the facts"):
        await mind.knowledge.end(fact.id, day(30))
    assert [each.span.invalid_at for each in await versions_of(mind.knowledge, fact.id)] == [day(9)]


async def test_nothing_is_seen_or_changed_across_scopes_and_tenants(recollect, mind):
    [fact] = await mind.knowledge.add(NewFact("Ann", "lives in", "Oslo", valid_at=day(0)))
    others = [
        await recollect.mind("ada", "wu"),
        await recollect.mind("bob", "li"),
        await recollect.mind("ada", "li", tenant="b"),
    ]
    for other in others:
        await other.remember("something, so that the scope is there")
        assert (await other.knowledge.facts()).facts == ()
        assert (await other.knowledge.entities()).entities == ()
        for wrong in (
            other.knowledge.add(NewFact("Ann", "lives in", "Rome", replaces=(fact.id,))),
            other.knowledge.add(NewFact(fact.subject, "lives in", "Rome")),
            other.knowledge.add(NewFact("Ann", "lives in", "Rome", evidence=(fact.memory_id,))),
        ):
            with pytest.raises(InvalidInputError):
                await wrong
        assert (await other.knowledge.entities(ids=[fact.subject])).entities == ()
        with pytest.raises(NotFoundError):
            await other.knowledge.end(fact.id, day(1))
        for about in (fact.subject, fact.id, fact.memory_id):
            assert (await other.knowledge.facts(about, at="any")).facts == ()
    assert (await mind.knowledge.facts()).facts == (fact,)


async def test_match_names_never_leaves_the_scope(recollect, mind, addresses):
    await mind.knowledge.add(NewFact("Jonathan Smith", "lives in", "Oslo"))
    asked = "select count(*) from match_names(%s, %s::text[], %s::real[], 5)"
    with psycopg.connect(addresses.service) as service:
        for tenant, expected in ((1, 1), (2, 0), ("", 0)):
            service.rollback()
            service.execute("select set_config('recollect.tenant', %s, true)", [str(tenant)])
            found = service.execute(asked, [first_number(mind), ["jonathan smyth"], [0.5]]).fetchone()[0]
            assert found == expected


async def test_similarity_is_that_of_its_twin_and_uses_its_index(mind, addresses, owner):
    names = ["Jonathan Smith", "Jonathan Smyth", "Jon Smith", "Catherine", "清华大学", "清华", "Café Zoë"]
    await mind.knowledge.add([NewFact(name, "is known to", "Ann") for name in names])
    asked = ["jonathan smith", "清华", "cafe zoe"]
    found = owner.execute(
        "select asked, normalised, similarity(normalised, asked) from entities, unnest(%s::text[]) as asked", [asked]
    ).fetchall()
    assert all(abs(alike - similarity(one, other)) < 1e-6 for one, other, alike in found)
    scope = owner.execute("select id from scopes").fetchone()[0]
    owner.execute(
        "insert into entities (scope_id, name, normalised, type) "
        "select %s, md5(n::text), md5(n::text), 'thing' from generate_series(1, 5000) n",
        [scope],
    )
    owner.execute("analyze entities")
    plan = owner.execute(
        "explain select id from entities where scope_id = %s order by normalised <-> 'jonathan smith' limit 5", [scope]
    ).fetchall()
    assert any("entities_by_trigram" in line for (line,) in plan)


async def test_names_and_facts_are_looked_up_by_their_indexes(recollect, mind, addresses, owner):
    [hub] = await mind.knowledge.add(NewFact("Ann", "knows", "Bob"))
    scope = owner.execute("select id from scopes").fetchone()[0]
    owner.execute(
        "insert into entities (scope_id, name, normalised, type) "
        "select %s, 'n' || n, 'n' || n, 'thing' from generate_series(1, 5000) n",
        [scope],
    )
    owner.execute(
        "insert into mentions (scope_id, source_id, entity_id, normalised, name) "
        "select scope_id, gen_random_uuid(), id, normalised, name from entities"
    )
    owner.execute(
        "insert into beliefs (scope_id, id, lineage, version, subject_id, predicate, object_id, created_at) "
        "select scope_id, id, id, 1, %s, 'knows', id, now() from entities where name like 'n%%'",
        [hub.subject],
    )
    owner.execute("vacuum analyze entities, mentions, beliefs")
    named = {"scope_id": scope, "names": ["n7", "n8"], "least": [0.6, 0.6], "most": 0, "without": []}
    pair = {"scope_id": scope, "subjects": [], "ones": [hub.subject], "others": [hub.object], "lineages": []} | {
        "objects": [],
        "asked": [],
    }
    with psycopg.connect(addresses.service) as service:
        service.execute("select set_config('recollect.tenant', '1', true)")
        plans = [
            "\n".join(line for (line,) in service.execute(f"explain analyze {query}", asked).fetchall())
            for query, asked in (
                (entities.QUERIES["candidates"], named),
                (facts.QUERIES["versions"], pair | {"newest": None}),
                (facts.QUERIES["versions"], pair | {"subjects": [hub.subject], "ones": [], "others": [], "newest": 40}),
            )
        ]
    assert "mentions_by_name" in plans[0]
    for plan in plans:
        assert "Seq Scan" not in plan
        assert max(int(float(number)) for number in re.findall(r"actual [^)]*rows=([\d.]+)", plan)) <= 100
