"""Facts are followed hop by hop, in either direction, as they are believed and true at the asked times."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.conversations import NewMessage
from recollect.models.filters import Filter
from recollect.models.memories import Role
from recollect.store.knowledge.graph import WalkLimits
from recollect.verbs.knowledge import graph
from support.memories.fact_rows import LONG_AGO, NOW, open_facts

MARCH, MAY = datetime(2025, 3, 1, tzinfo=UTC), datetime(2025, 5, 1, tzinfo=UTC)


@pytest.fixture
async def rows(mind, owner):
    """Ada works at Acme, which lies in Berlin, where Bob lives; Bob knows Cem."""
    known = await open_facts(mind, owner)
    known.fact("Ada", "works at", "Acme")
    known.fact("Acme", "lies in", "Berlin")
    known.fact("Bob", "lives in", "Berlin")
    known.fact("Bob", "knows", "Cem")
    return known


async def walk(mind, rows, name, hops=3, beam=100, **times):
    bounds = WalkLimits(hops, beam, Filter(**times))
    return await graph.find_neighbors(mind.access.parts, mind.access.scope, rows.entities[name], bounds)


def depths(found):
    return {neighbor.entity.name: neighbor.depth for neighbor in found.neighbors}


def texts(found):
    return [relation.text for relation in found.relations]


async def test_facts_lead_to_entities_hop_by_hop_whichever_way_they_point(mind, rows):
    found = await walk(mind, rows, "Ada")
    assert (found.entity.name, depths(found)) == ("Ada", {"Acme": 1, "Berlin": 2, "Bob": 3})
    assert texts(found) == ["Ada works at Acme", "Acme lies in Berlin", "Bob lives in Berlin"]
    assert [neighbor.led_by for neighbor in found.neighbors] == rows.facts[:3]
    assert depths(await walk(mind, rows, "Bob", hops=2)) == {"Cem": 1, "Berlin": 1, "Acme": 2}


async def test_every_fact_comes_once_also_where_it_closes_a_circle(mind, rows):
    rows.fact("Cem", "lives in", "Berlin")
    rows.fact("Acme", "employs", "Ada")
    rows.fact("Ada", "likes", "Ada")
    found = await walk(mind, rows, "Ada")
    assert sorted(texts(found)) == sorted(set(texts(found)))
    assert depths(found) == {"Acme": 1, "Berlin": 2, "Bob": 3, "Cem": 3}
    assert texts(found)[:3] == ["Ada likes Ada", "Acme employs Ada", "Ada works at Acme"]
    around_berlin = await walk(mind, rows, "Berlin", hops=2)
    assert "Bob knows Cem" in texts(around_berlin)
    assert depths(around_berlin) == {"Cem": 1, "Bob": 1, "Acme": 1, "Ada": 2}


async def test_a_beam_follows_the_newest_facts_of_a_hop(mind, rows):
    for number in range(30):
        rows.fact("Ada", "met", f"somebody {number}")
    found = await walk(mind, rows, "Ada", hops=2, beam=12)
    assert [each for each in depths(found) if each.startswith("some")] == [f"somebody {n}" for n in range(29, 17, -1)]
    assert max(depths(found).values()) == 1, "the fact that goes on from here is older than the beam is wide"
    assert len((await walk(mind, rows, "Ada", hops=1, beam=100)).relations) == 31


async def test_only_what_is_believed_and_true_now_is_followed(mind, rows):
    rows.fact("Ada", "will join", "Zeta", valid_at=NOW + timedelta(days=9))
    rows.fact("Ada", "left", "Yotta", invalid_at=MAY)
    rows.fact("Ada", "wrongly in", "Xeno", created_at=LONG_AGO, superseded_at=MAY)
    rows.fact("Ada", "has always had", "Wings", valid_at=None)
    rows.fact("Ada", "rents until next week", "Vault", invalid_at=NOW + timedelta(days=7))
    assert set(depths(await walk(mind, rows, "Ada", hops=1))) == {"Acme", "Wings", "Vault"}


async def test_as_of_and_at_show_another_time(mind, rows):
    first = rows.fact("Ada", "lives in", "Paris", valid_at=LONG_AGO, created_at=MARCH, superseded_at=MAY)
    rows.fact("Ada", "lives in", "Paris", lineage=first, version=2, invalid_at=MARCH, created_at=MAY)
    rows.fact("Ada", "lives in", "Rome", valid_at=MARCH, created_at=MAY)
    for fact_id in rows.facts[4:6]:
        rows.withhold(fact_id, "past")

    async def homes(**times):
        found = await walk(mind, rows, "Ada", hops=1, **times)
        return {name for name in depths(found) if name != "Acme"}

    day = timedelta(days=1)
    assert await homes() == {"Rome"}
    assert await homes(as_of=MAY - day) == {"Paris"}
    assert await homes(as_of=MARCH - day) == set()
    assert await homes(at=MARCH - day) == {"Paris"}
    assert await homes(at=MARCH) == {"Rome"}, "what ends when the next begins is over by then"
    assert await homes(as_of=MAY - day, at=MAY) == {"Paris"}


@pytest.mark.parametrize(
    ("reason", "shown"),
    [("deleted", False), ("to_rederive", False), ("archived", True), ("faded", True), ("past", True)],
)
async def test_what_is_out_of_sight_is_not_followed(mind, rows, reason, shown):
    rows.withhold(rows.facts[0], reason)
    assert ("Ada" in depths(await walk(mind, rows, "Acme"))) is shown
    found = rows.connection.execute("select withheld_for from beliefs where id = %s", [rows.facts[0]]).fetchall()
    # A fact that lost some of its evidence goes, because nobody can say what is left of it.
    assert found == ([] if reason == "to_rederive" else [(reason,)])


async def test_a_fact_written_for_a_withheld_memory_is_withheld(mind, rows):
    rows.withhold(rows.facts[0], "deleted")
    rows.connection.execute("create temp table kept as select * from beliefs where id = %s", [rows.facts[0]])
    rows.connection.execute("update kept set withheld_for = null")
    rows.connection.execute("delete from beliefs where id = %s", [rows.facts[0]])
    rows.connection.execute("insert into beliefs select * from kept")
    assert depths(await walk(mind, rows, "Acme", hops=1)) == {"Berlin": 1}


async def test_facts_of_a_deleted_conversation_are_gone_at_once_and_back_again(mind, rows, owner):
    [said] = await mind.conversation("talk").append(NewMessage(Role.USER, "Ada moved in with Dee."))
    rows.fact("Ada", "lives with", "Dee", evidence=[said.id])
    owner.execute("update conversations set state = 'deleted', synced = false")
    assert "Dee" not in depths(await walk(mind, rows, "Ada", hops=1))
    owner.execute("update conversations set state = 'active', synced = true")
    assert "Dee" in depths(await walk(mind, rows, "Ada", hops=1))
    await mind.conversation("talk").delete()
    assert "Dee" not in depths(await walk(mind, rows, "Ada", hops=1))
    with pytest.raises(NotFoundError):
        await walk(mind, rows, "Dee")
    await mind.conversation("talk").update(state="active")
    assert depths(await walk(mind, rows, "Dee", hops=1)) == {"Ada": 1}


async def find_paths(mind, rows, start, end, hops=4, limit=10, **times):
    ends = rows.entities[start], rows.entities[end]
    found = await graph.list_paths(mind.access.parts, mind.access.scope, ends, hops, limit, Filter(**times))
    return ["-".join(entity.name for entity in path.entities) for path in found], found


async def test_paths_join_two_entities_the_shortest_first(mind, rows):
    rows.fact("Ada", "married", "Bob")
    names, found = await find_paths(mind, rows, "Ada", "Cem")
    assert names == ["Ada-Bob-Cem", "Ada-Acme-Berlin-Bob-Cem"]
    assert [relation.text for relation in found[0].relations] == ["Ada married Bob", "Bob knows Cem"]
    assert (await find_paths(mind, rows, "Cem", "Ada"))[0] == ["Cem-Bob-Ada", "Cem-Bob-Berlin-Acme-Ada"]
    assert (await find_paths(mind, rows, "Ada", "Cem", hops=3))[0] == ["Ada-Bob-Cem"]
    assert (await find_paths(mind, rows, "Ada", "Cem", limit=1))[0] == ["Ada-Bob-Cem"]
    assert (await find_paths(mind, rows, "Ada", "Cem", hops=1))[0] == []
    assert (await find_paths(mind, rows, "Ada", "Bob", hops=1))[0] == ["Ada-Bob"]
    assert (await find_paths(mind, rows, "Ada", "Cem", as_of=LONG_AGO - timedelta(days=1)))[0] == []


async def test_six_hops_are_the_longest_path(mind, owner):
    rows = await open_facts(mind, owner)
    for number in range(7):
        rows.fact(f"e{number}", "precedes", f"e{number + 1}")
    assert (await find_paths(mind, rows, "e0", "e6", hops=6))[0] == ["e0-e1-e2-e3-e4-e5-e6"]
    assert (await find_paths(mind, rows, "e0", "e7", hops=6))[0] == []


async def test_a_timeline_holds_every_version_in_the_order_of_the_world(mind, rows):
    first = rows.fact("Ada", "lives in", "Paris", valid_at=MARCH, created_at=MARCH, superseded_at=MAY)
    rows.fact("Ada", "lives in", "Paris", lineage=first, version=2, valid_at=MARCH, invalid_at=MAY, created_at=MAY)
    rows.fact("Rome", "is home of", "Ada", valid_at=MAY, created_at=MAY)
    rows.fact("Ada", "was born in", "Oslo", valid_at=None, created_at=MAY)
    rows.withhold(first, "past")

    async def read(limit=50, cursor=None, as_of=None):
        return await mind.knowledge.facts(rows.entities["Ada"], at="any", as_of=as_of, cursor=cursor, limit=limit)

    whole = await read()
    assert [(each.object_name, each.version) for each in whole.facts] == [
        ("Oslo", 1), ("Acme", 1), ("Paris", 1), ("Paris", 2), ("Ada", 1),
    ]  # fmt: skip
    assert [each.superseded_at for each in whole.facts[2:4]] == [MAY, None]
    pages, cursor = [], None
    while True:
        page = await read(limit=1, cursor=cursor)
        pages += page.facts
        if not (cursor := page.next_cursor):
            break
    assert tuple(pages) == whole.facts
    then = await read(as_of=MAY - timedelta(days=1))
    assert [each.text for each in then.facts] == ["Ada works at Acme", "Ada lives in Paris"]
    rows.withhold(rows.facts[0], "deleted")
    assert "Acme" not in {each.object_name for each in (await read()).facts}


async def test_versions_of_one_fact_are_in_the_order_of_writing(mind, rows):
    first = rows.fact("Ada", "lives in", "Paris", valid_at=MAY, created_at=MARCH, superseded_at=MAY)
    rows.fact("Ada", "lives in", "Paris", lineage=first, version=2, valid_at=MARCH, created_at=MAY)
    whole = await mind.knowledge.facts(first, at="any")
    assert [each.version for each in whole.facts] == [1, 2]
    page = await mind.knowledge.facts(first, at="any", limit=1)
    assert page.facts + (await mind.knowledge.facts(first, at="any", cursor=page.next_cursor)).facts == whole.facts
    timeline = await mind.knowledge.facts(rows.entities["Ada"], at="any")
    assert [each.version for each in timeline.facts if each.id == first] == [2, 1]


async def test_a_foreign_entity_is_as_unknown_as_a_made_up_one(recollect, mind, rows):
    other = await recollect.mind("ada", "zoe")
    stranger = await recollect.mind("ada", "li", tenant="another")
    known = rows.entities["Ada"], rows.entities["Acme"]
    for their, ids in ((other, known), (stranger, known), (mind, (uuid.uuid4(), known[1]))):
        asking = their.access
        with pytest.raises(NotFoundError):
            await graph.find_neighbors(asking.parts, asking.scope, ids[0], WalkLimits(1, 10, Filter()))
        with pytest.raises(NotFoundError):
            await graph.list_paths(asking.parts, asking.scope, ids, 4, 10, Filter())
        assert (await their.knowledge.facts(ids[0], at="any")).facts == ()


async def test_a_walk_never_leaves_its_scope(recollect, mind, rows, owner):
    """Another scope's facts about the same entities, as no verb would write them, are not followed."""
    neighbour = await open_facts(await recollect.mind("ada", "zoe"), owner)
    neighbour.fact("Ada", "owes", "Secret")
    owner.execute("set session_replication_role = replica")
    owner.execute("update beliefs set subject_id = %s where scope_id = %s", [rows.entities["Ada"], neighbour.scope_id])
    assert "Secret" not in depths(await walk(mind, rows, "Ada"))
    query = "select count(*) from walk_facts(%s, %s, 3, 100, 'infinity', now(), '{}', null)"
    async with recollect.parts.database.reading(mind.access.scope.tenant_id + 1) as connection:
        answer = await connection.execute(query, [rows.scope_id, [rows.entities["Ada"]]])
    assert (await answer.fetchone())["count"] == 0


@pytest.mark.parametrize(
    "bounds",
    [WalkLimits(0, 1, Filter()), WalkLimits(4, 1, Filter()), WalkLimits(1, 0, Filter()), WalkLimits(1, 501, Filter())],
)
async def test_a_walk_has_bounds(mind, rows, bounds):
    with pytest.raises(InvalidInputError):
        await graph.find_neighbors(mind.access.parts, mind.access.scope, rows.entities["Ada"], bounds)


async def test_paths_have_bounds(mind, rows):
    ada, acme = rows.entities["Ada"], rows.entities["Acme"]
    for ends, hops, limit in (((ada, ada), 4, 10), ((ada, acme), 7, 10), ((ada, acme), 0, 10), ((ada, acme), 4, 51)):
        with pytest.raises(InvalidInputError):
            await graph.list_paths(mind.access.parts, mind.access.scope, ends, hops, limit, Filter())
