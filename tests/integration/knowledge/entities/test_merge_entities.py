"""One entity absorbs another and is split from it again; as of any moment they are what they were."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from recollect.errors import ConflictError, InvalidInputError, NotFoundError
from recollect.models import Cue
from recollect.models.knowledge import NewFact
from support.memories.past import versions_of

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
async def knowledge(mind):
    await mind.knowledge.add(
        [
            NewFact("Bill Smith", "works at", "Acme", valid_at=LONG_AGO),
            NewFact("William Smith", "lives in", "Berlin", valid_at=LONG_AGO),
            NewFact("William Smith", "works at", "Acme", valid_at=LONG_AGO),
            NewFact("Ada", "knows", "William Smith", valid_at=LONG_AGO),
        ]
    )
    return mind.knowledge


def written_at(owner):
    """When the last write was, as the scope counts its moments."""
    [(moment,)] = owner.execute("select last_written_at from scopes").fetchall()
    return moment


async def find(knowledge, **more):
    return {entity.name: entity for entity in (await knowledge.entities(**more)).entities}


async def ids(knowledge, *names):
    found = await find(knowledge)
    return [found[name].id for name in names]


async def tell(knowledge, entity, **more):
    return {(fact.subject, fact.text) for fact in (await knowledge.facts(entity, **more)).facts}


async def test_names_and_facts_go_to_the_one_that_is_kept(knowledge):
    bill, william = await ids(knowledge, "Bill Smith", "William Smith")
    ada = (await ids(knowledge, "Ada"))[0]
    merged = await knowledge.merge(bill, william)
    assert (merged.id, merged.name, merged.aliases, merged.merged_into) == (
        bill,
        "Bill Smith",
        ("William Smith",),
        None,
    )
    told = {
        (bill, "Bill Smith works at Acme"),
        (bill, "William Smith lives in Berlin"),
        (ada, "Ada knows William Smith"),
    }
    assert await tell(knowledge, bill) == told
    assert await tell(knowledge, william) == told
    assert "William Smith" not in await find(knowledge)
    assert (await knowledge.entities(ids=[william])).entities[0].merged_into == bill
    assert {*await find(knowledge, search="William")} == {"Bill Smith"}


async def test_as_of_before_the_merge_the_two_are_two(knowledge, owner):
    bill, william = await ids(knowledge, "Bill Smith", "William Smith")
    before = written_at(owner)
    await knowledge.merge(bill, william)
    while_merged = written_at(owner)
    await knowledge.split(william)
    for moment, apart in ((before, True), (while_merged, False), (None, True)):
        found = await find(knowledge, as_of=moment)
        assert ("William Smith" in found) is apart
        [known] = (await knowledge.entities(ids=[william], as_of=moment)).entities
        assert known.merged_into == (None if apart else bill)
        around = await knowledge.neighbors(william, as_of=moment)
        assert around.entity.id == (william if apart else bill)
        told = {relation.text for relation in around.relations}
        assert told == {"William Smith lives in Berlin", "Ada knows William Smith"} | (
            {"William Smith works at Acme"} if apart else {"Bill Smith works at Acme"}
        )


async def test_every_version_stays(knowledge):
    bill, william = await ids(knowledge, "Bill Smith", "William Smith")
    [fact] = (await knowledge.facts(william, "lives in")).facts
    [doubled] = (await knowledge.facts(william, "works at")).facts
    await knowledge.merge(bill, william)
    await knowledge.split(william)
    versions = await versions_of(knowledge, fact.id)
    assert [(each.subject, each.version) for each in versions] == [(william, 1), (bill, 2), (william, 3)]
    assert [(each.subject, each.version) for each in await versions_of(knowledge, doubled.id)] == [
        (william, 1),
        (william, 2),
    ]
    assert await tell(knowledge, bill) == {(bill, "Bill Smith works at Acme")}


async def test_what_is_learned_meanwhile_stays_with_the_one_that_was_kept(knowledge):
    bill, william = await ids(knowledge, "Bill Smith", "William Smith")
    await knowledge.merge(bill, william)
    [by_name, by_id] = await knowledge.add(
        [NewFact("William Smith", "likes", "tea"), NewFact(william, "likes", "coffee")]
    )
    assert (by_name.subject, by_id.subject) == (bill, bill)
    [fact] = (await knowledge.facts(bill, "lives in")).facts
    moved = await knowledge.end(fact.id, datetime(2024, 1, 1, tzinfo=UTC))
    await knowledge.split(william)
    assert {text for _, text in await tell(knowledge, bill, predicate="likes")} == {
        "William Smith likes tea",
        "William Smith likes coffee",
    }
    newest = (await versions_of(knowledge, fact.id))[-1]
    assert (newest.subject, newest.span) == (william, moved.span)


async def test_a_chain_of_merges_comes_apart_in_any_order(knowledge):
    await knowledge.add(NewFact("Will", "owns", "a boat", valid_at=LONG_AGO))
    bill, william, will = await ids(knowledge, "Bill Smith", "William Smith", "Will")
    await knowledge.merge(william, will)
    await knowledge.merge(bill, william)
    assert (bill, "Will owns a boat") in await tell(knowledge, will)
    await knowledge.split(will)
    assert await tell(knowledge, will) == {(will, "Will owns a boat")}
    await knowledge.split(william)
    assert await tell(knowledge, will) == {(will, "Will owns a boat")}
    assert len(await tell(knowledge, william)) == 3


async def test_recall_leads_from_an_absorbed_name_to_all_facts(mind, knowledge, owner):
    bill, william = await ids(knowledge, "Bill Smith", "William Smith")
    before = written_at(owner)
    await knowledge.merge(bill, william)
    cue = Cue("William Smith", channels=("graph",))
    assert "Bill Smith works at Acme" in {hit.memory.content for hit in (await mind.recall(cue)).hits}
    [direct] = [hit for hit in (await mind.recall(cue)).hits if hit.memory.content == "Bill Smith works at Acme"]
    assert direct.channels["graph"].score == pytest.approx(0.75)
    past = await mind.recall(Cue("Bill Smith", channels=("graph",), as_of=before))
    near = {hit.memory.content for hit in past.hits if hit.channels["graph"].score >= 0.75}
    assert near == {"Bill Smith works at Acme"}


async def test_what_cannot_be_merged_is_refused(knowledge):
    bill, william, ada = await ids(knowledge, "Bill Smith", "William Smith", "Ada")
    with pytest.raises(InvalidInputError):
        await knowledge.merge(bill, bill)
    with pytest.raises(NotFoundError):
        await knowledge.merge(bill, uuid4())
    with pytest.raises(NotFoundError):
        await knowledge.split(william)
    await knowledge.merge(bill, william)
    for pair in ((bill, william), (ada, william), (william, ada), (william, bill)):
        with pytest.raises(ConflictError):
            await knowledge.merge(*pair)


async def test_a_merge_is_logged_and_goes_with_its_entity(mind, knowledge, owner):
    bill, william = await ids(knowledge, "Bill Smith", "William Smith")
    await knowledge.merge(bill, william)
    [logged] = owner.execute(
        "select ids from changes where operation = 'entity' order by number desc limit 1"
    ).fetchall()
    assert logged == ([william],)
    versions = [each[0] for each in owner.execute("select id from memories where kind = 'fact'").fetchall()]
    await mind.forget(versions)
    assert owner.execute("select count(*) from entity_merges").fetchall() == [(0,)]
    assert owner.execute("select count(*) from entities").fetchall() == [(0,)]
